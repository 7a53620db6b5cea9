"""Questions through the server: the answers of a session, paid for once, and the same bytes for ever."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody.ledger import Account, Book, open_book
from leakcap.server import asking, remote
from leakcap.server.app import create_app
from leakcap.server.policies import Policy, set_policy
from leakcap.server.wire import body_of, frame_of
from leakcap.sql.answer import SqlAnswer
from tests.unit.server.running import BY_SEX, COUNT, Running, filled, form_word

ASK, BUDGET = "/api/datasets/clinic/ask", "/api/datasets/clinic/budget"


def spent(program: Any) -> float:
    return program.get(BUDGET).json()["spent"]["share"]


def test_an_answer_has_the_frame_of_a_local_session(running: Running) -> None:
    found = running.program("ann").post(ASK, json={"sql": BY_SEX, "share": 0.05}).json()
    with running.state.datasets.session("clinic", "ann") as session:
        local = session.sql(BY_SEX, share=0.05)
    assert local.again, "the question was not charged to the same account"
    frame = frame_of(found)
    assert frame.equals(local.frame) and list(frame.dtypes) == list(local.frame.dtypes)
    assert found["numbers"] == ["age", "n"] and found["share"] == 0.05


def test_asking_again_costs_nothing_and_gives_the_same_bytes(running: Running) -> None:
    ann, bob = running.program("ann"), running.program("bob")
    first = ann.post(ASK, json={"sql": COUNT, "share": 0.02, "request": "a key"})
    before = spent(ann)
    for program, request in ((ann, "a key"), (ann, "another key"), (ann, None), (bob, None)):
        again = program.post(ASK, json={"sql": COUNT, "share": 0.02} | ({"request": request} if request else {}))
        assert again.content == first.content and again.headers["leakcap-stored"] == "yes"
    assert spent(ann) == before > 0


def test_a_key_belongs_to_one_question_of_one_account(running: Running) -> None:
    ann, bob = running.program("ann"), running.program("bob")
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.003, "request": "mine"}).status_code == 200
    other = ann.post(ASK, json={"sql": COUNT, "share": 0.004, "request": "mine"})
    assert other.status_code == 409 and other.json() == {"error": asking.OTHER_QUESTION}
    assert bob.post(ASK, json={"sql": COUNT, "share": 0.004, "request": "mine"}).status_code == 200


def test_a_preview_says_what_an_answer_takes_and_takes_nothing(running: Running) -> None:
    ann = running.program("ann")
    before = spent(ann)
    price = ann.post("/api/datasets/clinic/preview", json={"sql": BY_SEX, "share": 0.07}).json()
    assert spent(ann) == before and price["fits"] and not price["free"]
    answer = ann.post(ASK, json={"sql": BY_SEX, "share": 0.07}).json()
    assert price["share"] == pytest.approx(answer["share"]) == pytest.approx(spent(ann) - before)


def test_a_dashboard_with_stored_answers_alone_charges_nothing(running: Running) -> None:
    ann = running.program("ann")
    ann.post(ASK, json={"sql": COUNT, "share": 0.011})
    board, before = running.program("ann", stored_only=True), spent(ann)
    for _ in range(20):
        assert board.post(ASK, json={"sql": COUNT, "share": 0.011}).status_code == 200
        assert board.post(ASK, json={"sql": COUNT, "share": 0.012}).status_code == 403
    assert spent(ann) == before


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("where", ["before the charge", "after the charge"])
def test_a_crash_charges_once_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    made = filled(tmp_path)
    question = asking.SqlQuestion(COUNT, share=0.1)
    place = "_keep" if where == "after the charge" else "_remember"

    def dies(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(asking.Asking, place, dies)
        with pytest.raises(Killed):
            made.state.asking.answer("clinic", "ann", question, "key")
    again = Running(create_app(made.state.settings))  # another process opens the same folder
    ann = again.program("ann")
    charged = where == "after the charge"
    assert spent(ann) == pytest.approx(0.1 if charged else 0.0)
    first = ann.post(ASK, json={"sql": COUNT, "share": 0.1, "request": "key"})
    assert first.status_code == 200 and spent(ann) == pytest.approx(0.1)
    assert first.json()["share"] == pytest.approx(0.1), "what it took is told also where only its bytes were lost"
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.1, "request": "key"}).content == first.content
    assert len(ann.get("/api/datasets/clinic/answers").json()["answers"]) == 1


def test_nothing_is_handed_out_that_the_ledger_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = filled(tmp_path)
    seen: list[int] = []
    honest = asking.body_of

    def looks(answer: Any, share: float) -> bytes:
        with made.state.datasets.account("clinic").reading() as now:
            seen.append(now.number)
            assert any(one.number == answer.number for one in now.entries())
        return honest(answer, share)

    monkeypatch.setattr(asking, "body_of", looks)
    assert made.program("ann").post(ASK, json={"sql": COUNT, "share": 0.1}).status_code == 200
    assert seen


def test_many_at_once_pay_once_and_never_more_than_there_is(tmp_path: Path) -> None:
    made = filled(tmp_path)
    names = ("ann", "bob")
    programs = [made.program(name) for name in names for _ in range(3)]

    def ask(at: int) -> Any:
        return programs[at].post(ASK, json={"sql": COUNT, "share": 0.1})

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, range(6)))
    assert len({one.content for one in found if one.status_code == 200}) == 1
    assert spent(programs[0]) == pytest.approx(0.1)


def test_a_form_asks_what_it_says(running: Running) -> None:
    browser = running.browser("ann")
    fields = {
        "form_word": form_word(browser),
        "way": "form",
        "table": "people",
        "measure": "avg",
        "column": "age",
        "group1": "sex",
        "if1": "age",
        "how1": ">=",
        "value1": "18",
        "share": "5",
    }
    price = browser.post("/data/clinic/preview", data=fields).text
    assert "It takes 5\xa0% of the clock at most." in price and "&#34;age&#34; &gt;= 18" in price
    answer = browser.post("/data/clinic/ask", data=fields)
    page = browser.get(answer.headers["location"]).text
    assert "average of age" in page and '<circle cx="' in page and "95 % interval" in page
    assert browser.get(answer.headers["location"] + "/table.csv").text.startswith("sex,average of age")


@pytest.mark.parametrize(
    ("chosen", "sql"),
    [
        ({"measure": "count"}, 'select count(*) as n from "people"'),
        ({"measure": "count", "filters": [("sex", "=", "x' or '1'='1")]}, "\"sex\" = 'x'' or ''1''=''1'"),
        ({"measure": "count", "groups": ["age"]}, 'floor("age" / 20) * 20'),
        ({"measure": "count", "filters": [("vip", "=", "yes")]}, '"vip" = true'),
    ],
)
def test_what_is_typed_into_a_form_stays_a_value(running: Running, chosen: dict[str, Any], sql: str) -> None:
    from leakcap.server.form_questions import as_sql

    assert sql in as_sql(running.state.datasets.named("clinic").catalog, {"table": "people", **chosen})


@pytest.mark.parametrize(
    "chosen",
    [
        {"measure": "max", "column": "age"},
        {"measure": "avg", "column": "person"},
        {"measure": "count", "groups": ["person"]},
        {"measure": "count", "filters": [("age", "=", "1; drop table people")]},
        {"measure": "count", "filters": [("age", "or 1=1 --", "1")]},
        {"measure": "count", "table": "nothing"},
    ],
)
def test_a_form_refuses_what_it_does_not_offer(running: Running, chosen: dict[str, Any]) -> None:
    from leakcap.server.form_questions import as_sql

    with pytest.raises(lc.InputError):
        as_sql(running.state.datasets.named("clinic").catalog, {"table": "people", **chosen})


def test_a_remote_session_feels_like_a_local_one(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    through(running, monkeypatch)
    session = lc.connect("http://localhost", running.token("ann"), dataset="clinic")
    first = session.sql(BY_SEX, share=0.013)
    assert list(first.frame.columns) == ["sex", "age", "age low", "age high", "n", "n low", "n high"]
    assert not first.again and session.sql(BY_SEX, share=0.013).again
    assert isinstance(session.count(where="age < 50", share=0.005).value, float)
    assert list(session.mean("age", by="sex", share=0.005).frame["sex"]) == ["f", "m"]
    assert session.remaining.share + session.spent.share == pytest.approx(1)
    assert session.certificate.membership_success <= 0.7 and session.history[-1].analyst == "ann"
    assert session.preview_sql(COUNT, share=0.02)["share"] == pytest.approx(0.02)
    with pytest.raises(lc.InputError, match="Rows of people do not leave"):
        session.sql("select * from people")
    with pytest.raises(lc.InputError, match="it is called where"):
        session.sql(COUNT, filter="x")
    with pytest.raises(lc.InputError, match="name the data set"):
        lc.connect("http://localhost", running.token("ann"))
    with pytest.raises(remote.ServerError, match="Send a token"):
        lc.connect("http://localhost", "leakcap_wrong")
    with pytest.raises(lc.InputError, match="https"):
        lc.connect("http://example.org", "leakcap_x")
    assert "leakcap_" not in repr(session)


def test_quantiles_and_histograms_are_those_of_the_sql_that_they_are(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(running, monkeypatch)
    session = lc.connect("http://localhost", running.token("ann"), dataset="school")
    median = session.median("age", where="sex = 'f'", share=0.15)
    same = 'select quantile_cont("age", 0.5) as "age" from "people" where sex = \'f\''
    assert session.sql(same, share=0.15).again and 20 < median.value < 80
    assert session.quantile("age", 0.5, where="sex = 'f'", share=0.15).value == median.value
    assert list(session.median("age", by="sex", share=0.15).frame["sex"]) == ["f", "m"]
    bars = session.histogram("age", bins=10, share=0.15).frame
    assert list(bars["age from"]) == [0, 20, 40, 60, 80, 100] and bars["n"].sum() == pytest.approx(300, abs=250)
    price = session.preview("histogram", "age", bins=10, share=0.15)
    assert price["share"] == pytest.approx(0.15) and session.preview("median", "age", share=0.02)["fits"]
    for wrong in (
        lambda: session.quantile("age", 2),
        lambda: session.histogram("sex"),
        lambda: session.histogram("age", bins=0),
        lambda: session.preview("fit"),
        lambda: session.preview("median"),
        lambda: session.preview("count", nothing=1),
    ):
        with pytest.raises(lc.InputError):
            wrong()


def through(running: Running, patch: pytest.MonkeyPatch) -> None:
    """Requests of `lc.connect` reach the application without a network."""

    def asked(self: Any, request: Any) -> Any:
        client = running.client(headers={"Authorization": f"Bearer {self._token}"})
        path = request.full_url.removeprefix(self.address)
        found = client.request(request.get_method(), path, content=request.data, headers=dict(request.header_items()))
        if found.status_code >= 400:
            raise remote.ERRORS.get(found.status_code, remote.ServerError)(found.json()["error"])
        return found.json(), found.headers.get("leakcap-stored") == "yes"

    patch.setattr(remote._Server, "_answer", asked)


def test_answers_survive_their_way_as_they_are() -> None:
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(
        {"town": ["A", None], "day": pd.to_datetime(["2020-01-01", "2021-01-01"]).date, "n": [1.5, np.nan]}
    ).assign(**{"n low": [0.1, np.nan], "n high": [np.inf, np.nan]})
    answer = SqlAnswer(frame, share=0.1, number=3, again=False, numbers=("n",))
    found = frame_of(json.loads(body_of(answer, 0.1)))
    assert found["n"].tolist()[0] == 1.5 and np.isnan(found["n"][1]) and found["n high"][0] == np.inf
    assert found["town"].tolist()[0] == "A" and found["day"].tolist() == ["2020-01-01", "2021-01-01"]


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "planted: a sign that stays the same"])
def test_a_group_that_another_program_makes_counts_at_once(
    signed: bool, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, name = running.state, f"ivan-{signed}".lower()
    if not signed:
        monkeypatch.setattr(Book, "sign", lambda _: "the same")
    assert state.datasets.clock_of("clinic", name) == state.datasets.clock_of("clinic", "ann")
    account = open_book(state.settings.ledger_place).account("clinic")
    others = Policy.of(account).groups
    set_policy(account, who="carla", why="apart", groups={**others, f"of {name}": [name]})
    assert (state.datasets.clock_of("clinic", name) == f"of {name}") is signed


def test_a_ledger_that_nobody_writes_to_is_not_read_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("the ledger was read")

    before = running.state.datasets.clock_of("clinic", "ann")
    monkeypatch.setattr(Account, "reading", fail)
    assert running.state.datasets.clock_of("clinic", "ann") == before
