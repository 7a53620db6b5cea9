"""Accounts, tokens, work, answers and the audit log in PostgreSQL: the server does what it does with its own file."""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from leakcap.cli.serve import ServeOrder
from leakcap.cli.serve import run as serve
from leakcap.errors import InputError
from leakcap.server import long_work, moving, postgres_dialect
from leakcap.server.app import create_app
from leakcap.server.database import VERSION, Database
from leakcap.server.long_work import WorkWatch
from leakcap.server.moving import move_into
from leakcap.server.settings import ServerSettings
from tests.forked import said_by_a_fork
from tests.postgres import Server
from tests.unit.server.conftest import UNHURRIED
from tests.unit.server.running import BY_SEX, COUNT, PASSWORDS, Running, filled, form_word, started

ASK, BUDGET = "/api/datasets/clinic/ask", "/api/datasets/clinic/budget"
WORD = "s3" + "cret"
HASH = "A hash of a password"


@pytest.fixture
def running(tmp_path: Path, own_key: Path, database: str) -> Running:
    return filled(tmp_path / "home", UNHURRIED, database=database)


def again(running: Running) -> Running:
    """The same server, started once more."""
    return Running(create_app(running.state.settings))


def test_everything_is_there_after_a_restart_byte_for_byte(running: Running) -> None:
    browser, token = running.browser("ann"), running.token("ann")
    head = {"Authorization": f"Bearer {token}"}
    first = running.client(headers=head).post(ASK, json={"sql": BY_SEX, "share": 0.1, "request": "a key"})
    assert first.status_code == 200, first.text
    spent, cookies = running.client(headers=head).get(BUDGET).json(), dict(browser.cookies)
    log = running.state.audit_log.latest()
    assert "asked a question" in {one.what for one in log}
    after = again(running)
    ann = after.client(headers=head)
    for more in ({"request": "a key"}, {}):
        found = ann.post(ASK, json={"sql": BY_SEX, "share": 0.1, **more})
        assert found.content == first.content and found.headers["leakcap-stored"] == "yes"
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.1, "request": "a key"}).status_code == 409
    assert ann.get(BUDGET).json() == spent and spent["spent"]["share"] == pytest.approx(0.1)
    assert after.client(cookies=cookies).get("/tokens").status_code == 200, "the browser is still signed in"
    assert after.state.audit_log.latest()[-len(log) :] == log
    assert {path.name for path in running.state.settings.home.iterdir()} == {"datasets", "server.id"}


def test_who_may_what_is_as_it_was_said(running: Running) -> None:
    state = running.state
    assert [one.name for one in state.accounts.all()] == sorted(PASSWORDS)
    assert running.program("bob").post("/api/datasets/school/ask", json={"sql": COUNT}).status_code == 404
    token = running.token("ann")
    ann = running.client(headers={"Authorization": f"Bearer {token}"})
    assert ann.get("/api/datasets").status_code == 200
    (known,) = state.tokens.of("ann")
    assert state.tokens.revoke("ann", known.number) and not state.tokens.revoke("ann", 2**80)
    assert ann.get("/api/datasets").status_code == 401
    browser = running.browser("ann")
    state.accounts.close("ann")
    assert (
        browser.get("/tokens").status_code == 303
        and running.client().post("/login", data={"name": "ann", "password": PASSWORDS["ann"]}).status_code != 303
    )
    with pytest.raises(InputError, match="already"):
        state.accounts.add("ann", "analyst", PASSWORDS["ann"])


def test_strangers_may_write_any_letters(running: Running) -> None:
    for name in ("ann\0", "\0", "ann'; DROP TABLE accounts --", "%s", "ann%"):
        found = running.client().post("/login", data={"name": name, "password": PASSWORDS["ann"]})
        assert found.status_code < 500 and "leakcap" not in found.cookies
    assert running.browser("ann").get("/tokens").status_code == 200


def test_numbers_keep_every_digit_and_names_their_order(running: Running) -> None:
    state, before = running.state, time.time()
    for name in ("b.c", "b-c", "bc", "b_c"):
        state.accounts.add(name, "analyst", "correct horse battery")
    assert [one.name for one in state.accounts.all()] == sorted((*PASSWORDS, "b.c", "b-c", "bc", "b_c"))
    state.audit_log.add("ann", "looked", "é" * 300)
    (latest, *_) = state.audit_log.latest()
    assert before <= latest.at <= time.time() and latest.about == "é" * 300
    at = 1_700_000_000.123_456_7
    state.database.write("UPDATE events SET at = ? WHERE number = ?", at, latest.number)
    assert state.audit_log.latest()[0].at == at


def test_long_work_is_told_of_after_a_restart(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "SHORT", 0.05)
    carla = running.browser("carla")
    brought = carla.post(
        "/custody/register",
        files={"file": ("visits.csv", b"person,cost\n" + b"".join(b"%d,%d\n" % (at, at % 50) for at in range(300)))},
        data={"form_word": form_word(carla)},
    )
    step = running.place(brought)
    given = {"name": "visits", "unit": "person", "rows": "1", "cap": "60", "low1": "0", "high1": "50"}
    told = carla.post(step, data=given | {"what": "register", "form_word": form_word(carla)})
    assert running.place(told) == "/custody/data/visits"

    over = threading.Event()

    def waits(_: WorkWatch) -> str:
        over.wait()
        return "/custody"

    piece = running.state.long_work.begin("carla", "waiting", "x", waits, back="/custody")
    _, goes_on = running.state.long_work._now[piece.number]
    after = again(running)
    found = after.state.long_work.numbered(piece.number)
    assert found.over and found.words == long_work.SERVER_ENDED
    assert {one.outcome for one in after.state.long_work.all()} == {"done", "stopped"}
    assert "visits" in after.state.datasets.names()
    over.set()  # nobody else ends it: to the first server it is over, too
    goes_on.result()
    running.state.close()


def test_many_write_at_once_and_nothing_is_lost(running: Running) -> None:
    state = running.state
    with ThreadPoolExecutor(16) as pool:
        tokens = list(pool.map(lambda at: _or_refused(lambda: running.token("bob")), range(80)))
        list(pool.map(lambda at: state.audit_log.add("bob", "counted", str(at)), range(40)))
    made = [one for one in tokens if one]
    assert len(made) == len(state.tokens.of("bob")) == 50, "an account has 50 tokens at most, however they come"
    counted = [one for one in state.audit_log.latest() if one.what == "counted"]
    assert sorted(int(one.about) for one in counted) == list(range(40))
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: running.program("ann").post(ASK, json={"sql": COUNT, "share": 0.1}), range(4)))
    assert len({one.content for one in asked if one.status_code == 200}) == 1
    assert running.program("ann").get(BUDGET).json()["spent"]["share"] == pytest.approx(0.1)


def _or_refused(make: Any) -> str:
    try:
        return str(make())
    except InputError:
        return ""


def test_tables_of_an_earlier_version_are_brought_up_to_date_and_later_ones_refused(running: Running) -> None:
    token, tables = running.token("ann"), running.state.database
    with tables.writing() as now:
        now.execute("DROP TABLE work")
        now.execute("UPDATE server SET version = 1")
    after = again(running)
    assert after.state.database.row("SELECT version FROM server") == (VERSION,)
    assert after.state.long_work.all() == [] and after.browser("carla").get("/custody/work").status_code == 200
    head = {"Authorization": f"Bearer {token}"}
    assert len(after.client(headers=head).get("/api/datasets").json()["datasets"]) == 2
    for version, words in ((VERSION + 1, "a later version of leakcap"), (0, "is damaged or no server's")):
        tables.write("UPDATE server SET version = ?", version)
        with pytest.raises(InputError, match=words):
            again(running)


def test_a_folder_and_a_database_of_two_servers_are_left_alone(running: Running, tmp_path: Path, postgres: Any) -> None:
    settings = running.state.settings
    kept = sorted((settings.home / "datasets").iterdir())
    with pytest.raises(InputError, match="not of the same server"):
        started(tmp_path / "elsewhere", database=settings.database)
    other = postgres.fresh(f"other_{time.monotonic_ns()}")
    with pytest.raises(InputError, match="not of the same server"):
        started(settings.home, database=other)
    with pytest.raises(InputError, match="name its database with --database"):
        started(settings.home)
    started(tmp_path / "file")
    with pytest.raises(InputError, match="start it without --database"):
        started(tmp_path / "file", database=other)
    assert sorted((settings.home / "datasets").iterdir()) == kept
    made = started(tmp_path / "new", database=other)
    assert made.state.accounts.all() == [] and again(made).state.accounts.all() == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"mysql://ann:{WORD}@there/x", "this is no address of a database: write --database postgresql://user@host"),
        (f"postgresql://ann:{WORD}@there:x/y?z=1", "this is no address of a database"),
        (f"postgresql://ann:{WORD}@127.0.0.1:1/x", "does not answer, or does not let this user in"),
    ],
    ids=["of something else", "not well formed", "nobody there"],
)
def test_an_address_that_is_wrong_is_told_in_a_sentence_without_its_password(
    tmp_path: Path, url: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("psycopg", reason="no psycopg here: pip install 'leakcap[dev]' brings it")
    order = ServeOrder(tmp_path, url, None, "127.0.0.1", 0, (), None, None, seconds=1, flight=None, demo=False)
    with caplog.at_level(logging.DEBUG), pytest.raises(InputError, match=words) as caught:
        serve(order, quiet=True)
    told = str(caught.value)
    assert WORD not in told + caplog.text + repr(order) and caught.value.__cause__ is None
    assert caught.value.__context__ is None, "what the driver says hangs on it"
    with pytest.raises(InputError, match="the demo leaves nothing behind"):
        serve(ServeOrder(None, url, None, "127.0.0.1", 0, (), None, None, seconds=1, flight=None, demo=True))


def test_a_wrong_password_or_database_and_a_user_who_may_nothing(tmp_path: Path, database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as there:
        there.execute("DROP ROLE IF EXISTS nothing")
        there.execute("CREATE ROLE nothing LOGIN")
    for url, words in (
        (database.replace("postgres@", f"nobody:{WORD}@"), "does not let this user in"),
        (re.sub(r"/test_\w+", "/gone", database), "does not let this user in"),
        (database.replace("postgres@", f"nothing:{WORD}@"), "may not write.*CREATE SCHEMA leakcap_server"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            Database(tmp_path / "home", url)
        told = "".join(traceback.format_exception(caught.value))
        assert WORD not in told and "psycopg" not in told and "permission denied" not in told
    assert not (tmp_path / "home" / "server.id").exists()


def test_a_connection_over_a_network_has_to_be_encrypted(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [postgres_dialect._on_this_machine(one) for one in ("", "127.0.0.1", "::1")] == [True] * 3
    assert not postgres_dialect._on_this_machine("192.0.2.7")
    monkeypatch.setattr(postgres_dialect, "_on_this_machine", lambda address: False)  # the tests' own has no TLS
    with pytest.raises(InputError, match=r"not encrypted.*sslmode=verify-full"):
        Database(tmp_path, database)


def test_a_database_that_goes_away_is_told_and_is_used_again_when_it_is_back(
    tmp_path: Path, own_key: Path, postgres: Server
) -> None:
    url = postgres.fresh(f"away_{time.monotonic_ns()}")
    made = filled(tmp_path / "home", UNHURRIED, database=url)
    ann, browser = made.program("ann"), made.browser("ann")
    first = ann.post(ASK, json={"sql": COUNT, "share": 0.1})
    postgres.stop()
    try:
        for told in (ann.post(ASK, json={"sql": COUNT, "share": 0.1}), browser.get("/tokens")):
            assert told.status_code == 400 and "server's database does not answer" in told.text.replace("&#39;", "'")
            assert "postgres" not in told.text and str(postgres.url) not in told.text and "away_" not in told.text
    finally:
        postgres.start()
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.1}).content == first.content
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.05}).status_code == 200
    assert ann.get(BUDGET).json()["spent"]["share"] == pytest.approx(0.15)
    assert browser.get("/tokens").status_code == 200


def test_a_connection_that_is_lost_while_something_is_stored_is_told(running: Running) -> None:
    import psycopg

    database = running.state.database

    def loses() -> None:
        with database.writing() as now:
            now.execute("UPDATE events SET about = 'changed'")
            (own,) = now.execute("SELECT pg_backend_pid()").fetchone()
            with psycopg.connect(running.state.settings.database or "", autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (own,))

    with pytest.raises(InputError, match="nobody knows whether it was"):
        loses()
    assert database.rows("SELECT about FROM events WHERE about = 'changed'") == []
    running.state.audit_log.add("ann", "went on")
    assert running.state.audit_log.latest()[0].what == "went on"


def test_what_fails_in_the_middle_was_never_stored(running: Running) -> None:
    database = running.state.database

    def fails() -> None:
        with database.writing() as now:
            now.execute("UPDATE accounts SET role = 'custodian'")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert {one.role for one in running.state.accounts.all() if one.name != "carla"} == {"analyst"}
    with pytest.raises(InputError, match="written twice"):
        database.write("INSERT INTO accounts VALUES ('ann', 'analyst', 'x', 0, NULL)")


def test_a_child_has_connections_of_its_own(running: Running) -> None:
    state = running.state
    state.audit_log.add("ann", "before")

    def child() -> str:
        state.audit_log.add("ann", "in the child")
        return state.audit_log.latest()[0].what

    assert said_by_a_fork(child) == "in the child"
    state.audit_log.add("ann", "after")
    assert [one.what for one in state.audit_log.latest()[:3]] == ["after", "in the child", "before"]


def test_a_server_moves_from_its_file_into_a_database(tmp_path: Path, own_key: Path, database: str) -> None:
    """Everything that was there is there afterwards, also what was answered; the ledger stays, and the file is kept."""
    home = tmp_path / "home"
    old = filled(home, UNHURRIED)
    token = old.token("ann")
    head = {"Authorization": f"Bearer {token}"}
    first = old.client(headers=head).post(ASK, json={"sql": BY_SEX, "share": 0.1, "request": "a key"})
    spent, log = old.client(headers=head).get(BUDGET).json(), old.state.audit_log.latest()
    with pytest.raises(InputError, match="is running"):
        move_into(home, database)
    old.state.close()
    assert move_into(home, database) > 10
    assert move_into(home, database) == 0, "once is enough"
    assert {path.name for path in home.iterdir()} >= {"datasets", "server.id", "server.db.moved", "ledger.db"}
    moved = Running(create_app(ServerSettings(home=home, hosts=("localhost",), database=database, limits=UNHURRIED)))
    ann = moved.client(headers=head)
    again = ann.post(ASK, json={"sql": BY_SEX, "share": 0.1, "request": "a key"})
    assert again.content == first.content and again.headers["leakcap-stored"] == "yes"
    assert ann.get(BUDGET).json() == spent and moved.state.audit_log.latest()[-len(log) :] == log
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.01}).status_code == 200
    assert moved.state.tokens.make("ann", "another", days=1), "numbers go on"
    with pytest.raises(InputError, match="has its accounts in PostgreSQL"):
        Database(home)
    other = tmp_path / "other"
    filled(other, UNHURRIED).state.close()
    with pytest.raises(InputError, match="name an empty one"):
        move_into(other, database)
    assert (other / "server.db").exists()


@pytest.mark.parametrize("step", ["before the database", "after the database", "after the file"])
def test_a_move_that_was_cut_off_is_gone_on_with(
    tmp_path: Path, own_key: Path, database: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    filled(home, UNHURRIED).state.close()

    def cut(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "before the database":
            patch.setattr(moving, "_copied", cut)
        else:
            honest = Path.rename
            ended = {"after the database": "server.db", "after the file": "server.id.next"}[step]
            patch.setattr(Path, "rename", lambda one, to: cut() if one.name == ended else honest(one, to))
        with pytest.raises(KeyboardInterrupt):
            move_into(home, database)
    move_into(home, database)
    moved = Running(create_app(ServerSettings(home=home, hosts=("localhost",), database=database, limits=UNHURRIED)))
    assert moved.state.datasets.names() == ["clinic", "school"]
    assert moved.program("ann").post(ASK, json={"sql": COUNT, "share": 0.01}).status_code == 200
