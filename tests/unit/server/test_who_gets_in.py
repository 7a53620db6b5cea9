"""Every route, asked by everybody in every state of a token or cookie: nothing but what it should.

The routes come from the application: one that is not in the table fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.routing import APIRoute

from tests.unit.server.running import BY_SEX, COUNT, PASSWORDS, Running, form_word, started

# Who a route is for. Programs come with a token, browsers with a cookie; neither is worth anything at the other's door.
PUBLIC, PAGE, ANALYSTS_PAGE, CUSTODIANS_PAGE = "public", "page", "analyst's page", "custodian's page"
LIST, READS, PAYS, CUSTODIANS = "list", "reads", "pays", "custodian's"
KINDS = {
    ("GET", "/login"): PUBLIC,
    ("POST", "/login"): PUBLIC,
    ("GET", "/static/{print}/{name}"): PUBLIC,
    ("GET", "/"): PAGE,
    ("POST", "/logout"): PAGE,
    ("GET", "/tokens"): PAGE,
    ("POST", "/tokens"): PAGE,
    ("POST", "/tokens/revoke"): PAGE,
    ("GET", "/data"): ANALYSTS_PAGE,
    ("GET", "/data/{name}"): ANALYSTS_PAGE,
    ("POST", "/data/{name}/preview"): ANALYSTS_PAGE,
    ("POST", "/data/{name}/ask"): ANALYSTS_PAGE,
    ("GET", "/data/{name}/answers"): ANALYSTS_PAGE,
    ("GET", "/data/{name}/answers/{answer}"): ANALYSTS_PAGE,
    ("GET", "/data/{name}/answers/{answer}/table.csv"): ANALYSTS_PAGE,
    ("GET", "/data/{name}/certificate"): ANALYSTS_PAGE,
    ("GET", "/data/{name}/certificate/file"): ANALYSTS_PAGE,
    ("GET", "/custody"): CUSTODIANS_PAGE,
    ("GET", "/custody/data/{name}"): CUSTODIANS_PAGE,
    ("GET", "/custody/data/{name}/ledger"): CUSTODIANS_PAGE,
    ("POST", "/custody/data/{name}/policies"): CUSTODIANS_PAGE,
    ("GET", "/custody/released"): CUSTODIANS_PAGE,
    ("GET", "/custody/released.csv"): CUSTODIANS_PAGE,
    ("GET", "/custody/analysts"): CUSTODIANS_PAGE,
    ("POST", "/custody/analysts"): CUSTODIANS_PAGE,
    ("POST", "/custody/analysts/{name}"): CUSTODIANS_PAGE,
    ("GET", "/custody/events"): CUSTODIANS_PAGE,
    ("GET", "/custody/audit"): CUSTODIANS_PAGE,
    ("GET", "/custody/audit/{name}"): CUSTODIANS_PAGE,
    ("POST", "/custody/audit/{name}"): CUSTODIANS_PAGE,
    ("GET", "/custody/audit/{name}/page"): CUSTODIANS_PAGE,
    ("GET", "/custody/data/{name}/audit"): CUSTODIANS_PAGE,
    ("GET", "/custody/data/{name}/audit/page"): CUSTODIANS_PAGE,
    ("POST", "/custody/data/{name}/audit"): CUSTODIANS_PAGE,
    ("GET", "/custody/register"): CUSTODIANS_PAGE,
    ("POST", "/custody/register"): CUSTODIANS_PAGE,
    ("GET", "/custody/register/{upload}"): CUSTODIANS_PAGE,
    ("POST", "/custody/register/{upload}"): CUSTODIANS_PAGE,
    ("GET", "/custody/publish"): CUSTODIANS_PAGE,
    ("POST", "/custody/publish"): CUSTODIANS_PAGE,
    ("GET", "/custody/publish/{upload}"): CUSTODIANS_PAGE,
    ("POST", "/custody/publish/{upload}"): CUSTODIANS_PAGE,
    ("GET", "/custody/publish/finished/{name}"): CUSTODIANS_PAGE,
    ("GET", "/custody/publish/finished/{name}/page"): CUSTODIANS_PAGE,
    ("GET", "/custody/publish/finished/{name}/public.zip"): CUSTODIANS_PAGE,
    ("GET", "/api/datasets"): LIST,
    ("GET", "/api/datasets/{name}/schema"): READS,
    ("GET", "/api/datasets/{name}/budget"): READS,
    ("GET", "/api/datasets/{name}/answers"): READS,
    ("GET", "/api/datasets/{name}/answers/{answer}"): READS,
    ("GET", "/api/datasets/{name}/certificate"): READS,
    ("POST", "/api/datasets/{name}/preview"): PAYS,
    ("POST", "/api/datasets/{name}/ask"): PAYS,
    ("GET", "/api/ledger"): CUSTODIANS,
    ("GET", "/api/releases"): CUSTODIANS,
    ("GET", "/api/analysts"): CUSTODIANS,
    ("POST", "/api/analysts"): CUSTODIANS,
    ("GET", "/api/datasets/{name}/policies"): CUSTODIANS,
    ("POST", "/api/datasets/{name}/policies"): CUSTODIANS,
    ("GET", "/api/events"): CUSTODIANS,
    ("GET", "/api/work"): CUSTODIANS,
    ("GET", "/api/work/{number}"): CUSTODIANS,
    ("POST", "/api/work/{number}/stop"): CUSTODIANS,
    ("GET", "/custody/work"): CUSTODIANS_PAGE,
    ("GET", "/custody/work/{number}"): CUSTODIANS_PAGE,
    ("POST", "/custody/work/{number}/stop"): CUSTODIANS_PAGE,
}
OPEN = {200, 201, 303}
TO_SIGN_IN = "/login?then="

# What each visitor gets at each kind of route; "in" stands for all that is no refusal.
NOBODY = {
    PUBLIC: "in",
    PAGE: 401,
    ANALYSTS_PAGE: 401,
    CUSTODIANS_PAGE: 401,
    LIST: 401,
    READS: 401,
    PAYS: 401,
    CUSTODIANS: 401,
}
ALLOWED: dict[str, dict[str, Any]] = {
    "nobody": NOBODY,
    "made-up token": NOBODY,
    "ended token": NOBODY,
    "revoked token": NOBODY,
    "token of a closed account": NOBODY,
    "token of an earlier password": NOBODY,
    "token as a password": NOBODY,
    "tampered cookie": NOBODY,
    "cookie signed with another key": NOBODY,
    "cookie of long ago": NOBODY,
    "cookie after signing out": NOBODY,
    "cookie of a closed account": NOBODY,
    "cookie after a new password": NOBODY,
    "analyst's token": NOBODY | {LIST: "in", READS: "in", PAYS: "in", CUSTODIANS: 403},
    "token for another data set": NOBODY | {LIST: "in", READS: 404, PAYS: 404, CUSTODIANS: 403},
    "analyst without data": NOBODY | {LIST: "in", READS: 404, PAYS: 404, CUSTODIANS: 403},
    "stored answers only": NOBODY | {LIST: "in", READS: "in", PAYS: 403, CUSTODIANS: 403},
    "custodian's token": NOBODY | {LIST: "in", READS: 403, PAYS: 403, CUSTODIANS: "in"},
    "custodian's token for one data set": NOBODY | {LIST: 403, READS: 403, PAYS: 403, CUSTODIANS: 403},
    "custodian's token for stored answers": NOBODY | {LIST: 403, READS: 403, PAYS: 403, CUSTODIANS: 403},
    "analyst's browser": NOBODY | {PAGE: "in", ANALYSTS_PAGE: "in", CUSTODIANS_PAGE: 403},
    "browser without data": NOBODY | {PAGE: "in", ANALYSTS_PAGE: 404, CUSTODIANS_PAGE: 403},
    "custodian's browser": NOBODY | {PAGE: "in", ANALYSTS_PAGE: 403, CUSTODIANS_PAGE: "in"},
    "form from elsewhere": NOBODY | {PAGE: 403, ANALYSTS_PAGE: 403, CUSTODIANS_PAGE: 403},
}


def routes(app: Any) -> list[tuple[str, str]]:
    found = [(method, one.path) for one in app.routes if isinstance(one, APIRoute) for method in one.methods]
    assert found, "the application has no routes of its own"
    return found


def test_every_route_is_in_the_table_and_all_in_the_table_are_routes(running: Running) -> None:
    others = {getattr(one, "path", "") for one in running.app.routes if not isinstance(one, APIRoute)}
    assert set(routes(running.app)) == set(KINDS)
    assert others == {"/api/openapi.json"}


def test_a_route_that_is_not_in_the_table_is_noticed(tmp_path: Any) -> None:
    made = started(tmp_path)
    made.app.add_api_route("/api/rows", lambda: "all of them")
    assert set(routes(made.app)) - set(KINDS) == {("GET", "/api/rows")}


def visitors(running: Running) -> dict[str, Callable[[], Any]]:
    state = running.state

    def cookie(value: str) -> Any:
        return running.client(cookies={"leakcap": value})

    def ended() -> Any:
        made = running.program("ann")
        state.database.write(
            "UPDATE tokens SET until = ? WHERE number = (SELECT max(number) FROM tokens)", time.time() - 1
        )
        return made

    def revoked() -> Any:
        made = running.program("ann")
        assert state.tokens.revoke("ann", state.tokens.of("ann")[-1].number)
        return made

    def of_closed(kind: str) -> Any:
        name = f"gone-{time.monotonic_ns()}"
        PASSWORDS[name] = "correct horse gone"
        state.accounts.add(name, "analyst", PASSWORDS[name])
        state.accounts.allow(name, frozenset(("clinic",)))
        made = running.program(name) if kind.endswith("token") else running.browser(name)
        if kind in ("password", "renewed token"):
            state.accounts.renew(name, "another correct horse")
        else:
            state.accounts.close(name)
        return made

    def signed_out() -> Any:
        made = running.browser("ann")
        kept = made.cookies["leakcap"]
        assert made.post("/logout", data={"form_word": form_word(made)}).status_code == 303
        return cookie(kept)

    def tampered() -> Any:
        kept = running.browser("ann").cookies["leakcap"]
        return cookie(kept[:5] + ("A" if kept[5] != "A" else "B") + kept[6:])

    def of_long_ago() -> Any:
        made = running.browser("ann")
        state.database.write("UPDATE signed_in SET began = began - 1e6 WHERE account = 'ann'")
        return made

    def forged() -> Any:
        from itsdangerous import TimestampSigner

        return cookie(TimestampSigner(b"x" * 32, salt="signed in").sign("a" * 43).decode())

    return {
        "nobody": running.client,
        "made-up token": lambda: running.client(headers={"Authorization": f"Bearer leakcap_{'a' * 43}"}),
        "ended token": ended,
        "revoked token": revoked,
        "token of a closed account": lambda: of_closed("token"),
        "token of an earlier password": lambda: of_closed("renewed token"),
        "token as a password": lambda: running.client(headers={"Authorization": f"Basic {running.token('ann')}"}),
        "tampered cookie": tampered,
        "cookie signed with another key": forged,
        "cookie of long ago": of_long_ago,
        "cookie after signing out": signed_out,
        "cookie of a closed account": lambda: of_closed("cookie"),
        "cookie after a new password": lambda: of_closed("password"),
        "analyst's token": lambda: running.program("ann"),
        "token for another data set": lambda: running.program("ann", datasets=["school"]),
        "analyst without data": lambda: running.program("eve"),
        "stored answers only": lambda: running.program("ann", stored_only=True),
        "custodian's token": lambda: running.program("carla"),
        "custodian's token for one data set": lambda: running.program("carla", datasets=["clinic"]),
        "custodian's token for stored answers": lambda: running.program("carla", stored_only=True),
        "analyst's browser": lambda: running.browser("ann"),
        "browser without data": lambda: running.browser("eve"),
        "custodian's browser": lambda: running.browser("carla"),
        "form from elsewhere": lambda: running.browser("carla"),
    }


@pytest.fixture(scope="module")
def answer_id(running: Running) -> str:
    found = running.program("ann").post("/api/datasets/clinic/ask", json={"sql": BY_SEX, "share": 0.01})
    return found.headers["location"].rsplit("/", 1)[1]


BODIES = {
    "/api/datasets/{name}/preview": {"sql": COUNT, "share": 0.01},
    "/api/analysts": {"name": "zoe", "password": "a long password"},
    "/api/datasets/{name}/policies": {"why": "a test", "day": 1.0},
}
FORMS = {
    "/data/{name}/preview": {"way": "sql", "sql": COUNT, "share": "1"},
    "/data/{name}/ask": {"way": "sql", "sql": COUNT, "share": "1"},
    "/tokens": {"label": "x", "days": "1"},
    "/tokens/revoke": {"number": "999999"},
    "/custody/analysts": {"name": "yan"},
    "/custody/analysts/{name}": {"what": "allow", "dataset": "clinic"},
    "/custody/data/{name}/policies": {"why": "a test", "day": "100"},
    "/custody/data/{name}/audit": {"trials": "200"},
}


def got(client: Any, method: str, path: str, *, answer: str, word: str) -> int:
    if path in ("/custody/register", "/custody/publish") and method == "POST":
        found = client.post(path, files={"file": ("a.csv", b"person,age\n1,2\n")}, data={"form_word": word})
        return 401 if found.headers.get("location", "").startswith(TO_SIGN_IN) else found.status_code
    name = "bob" if "analysts" in path else "clinic"
    asked = {"sql": f"select count(*) as n{time.monotonic_ns()} from people", "share": 0.0001}
    address = path.format(name=name, answer=answer, print="0" * 16, upload="0" * 24, number="0" * 24)
    if method == "GET":
        found = client.get(address)
    elif path.startswith("/api"):
        found = client.post(address, json=asked if path.endswith("/ask") else BODIES.get(path))
    else:
        found = client.post(address, data=FORMS.get(path, {}) | {"form_word": word})
    to_sign_in = found.status_code == 303 and found.headers["location"].startswith(TO_SIGN_IN)
    return 401 if to_sign_in else found.status_code


@pytest.mark.parametrize("visitor", ALLOWED)
def test_nobody_gets_more_than_they_should(running: Running, answer_id: str, visitor: str) -> None:
    make = visitors(running)[visitor]
    client, word, wrong = make(), "0" * 64, []
    if "browser" in visitor:
        word = form_word(client)
    for (method, path), kind in KINDS.items():
        if path in ("/logout", "/login") or (path, method) == ("/static/{print}/{name}", "GET"):
            continue  # below
        if visitor == "form from elsewhere" and method == "GET":
            continue
        found, expected = got(client, method, path, answer=answer_id, word=word), ALLOWED[visitor][kind]
        if path == "/data" and visitor == "browser without data":
            expected = "in"  # an empty list
        if path == "/tokens/revoke" and expected == "in":
            expected = 404  # there is none of this number
        waits = ("{upload}", "/finished/", "/audit/", "{number}")
        if any(part in path for part in waits) and expected == "in":
            expected = 404  # no such file waits, and no such work is done
        taken = (path, visitor) == ("/custody/analysts", "custodian's browser") and found == 400
        if not (found in OPEN or taken if expected == "in" else found == expected):
            wrong.append((method, path, found, expected))
    assert not wrong


def test_everybody_may_see_the_page_to_sign_in_and_style_sheets(running: Running) -> None:
    client = running.client()
    assert client.get("/login").status_code == 200
    sheets = [part.split('"')[0] for part in client.get("/login").text.split('"/static/')[1:]]
    assert len(sheets) == 3
    for sheet in sheets:
        assert client.get(f"/static/{sheet}").status_code == 200
    assert client.get(f"/static/{sheets[0].split('/')[0]}/../../settings.py").status_code == 404
    assert client.get("/static/0000000000000000/pages.css").status_code == 404


def test_a_refusal_is_the_same_for_data_that_are_not_there_and_data_of_others(running: Running) -> None:
    eve, bob = running.program("eve"), running.browser("bob")
    for path in ("/api/datasets/{}/schema", "/api/datasets/{}/budget", "/api/datasets/{}/answers/00"):
        there, gone = eve.get(path.format("clinic")), eve.get(path.format("nothing"))
        assert there.status_code == gone.status_code == 404 and there.content == gone.content
    there, gone = bob.get("/data/school"), bob.get("/data/nothing")
    assert there.status_code == gone.status_code == 404 and there.content == gone.content


def test_answers_of_another_group_are_not_there(running: Running, answer_id: str) -> None:
    custodian = running.program("carla")
    state = running.state
    state.accounts.add("grace", "analyst", "correct horse grace")
    state.accounts.allow("grace", frozenset(("clinic",)))
    done = custodian.post("/api/datasets/clinic/policies", json={"why": "apart", "groups": {"apart": ["grace"]}})
    assert done.status_code == 200
    grace, bob = running.program("grace"), running.program("bob")
    assert bob.get(f"/api/datasets/clinic/answers/{answer_id}").status_code == 200, "they share a clock"
    assert grace.get(f"/api/datasets/clinic/answers/{answer_id}").status_code == 404
    assert grace.get("/api/datasets/clinic/answers").json() == {"answers": []}
    assert grace.get("/api/datasets/clinic/budget").json()["spent"]["share"] == 0


def test_a_token_is_no_way_around_the_data_sets_of_its_account(running: Running) -> None:
    state = running.state
    state.accounts.add("hugo", "analyst", "correct horse hugo")
    state.accounts.allow("hugo", frozenset(("clinic",)))
    hugo = running.program("hugo", datasets=["clinic", "school"])
    assert hugo.get("/api/datasets/clinic/schema").status_code == 200
    assert hugo.get("/api/datasets/school/schema").status_code == 404, "never was the account's"
    state.accounts.allow("hugo", frozenset())
    assert hugo.get("/api/datasets/clinic/schema").status_code == 404, "is not the account's any more"
    assert hugo.get("/api/datasets").json() == {"datasets": []}
