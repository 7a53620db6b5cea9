"""What goes wrong on any day: one sentence that says what to do, and nothing is lost."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leakcap.custody.ledger import operations
from leakcap.errors import InputError
from leakcap.server import work
from leakcap.server.app import create_app
from leakcap.server.database import Database
from leakcap.server.sqlite_dialect import SqliteDialect
from leakcap.server.state import ServerState
from tests.unit.server.running import COUNT, Running, filled, form_word

ASK = "/api/datasets/clinic/ask"
ROWS = "".join(f"{at},{at % 50},{'x' * 400}{at}\n" for at in range(2000))
GIVEN = {"name": "visits", "unit": "person", "rows": "1", "cap": "60", "low1": "0", "high1": "50", "what": "register"}


def brought(running: Running, content: bytes, name: str = "visits.csv") -> tuple[Any, Any, dict[str, str]]:
    """A custodian's browser, what it is told of a file, and what its forms bring back."""
    carla = running.browser("carla")
    word = {"form_word": form_word(carla)}
    return carla, carla.post("/custody/register", files={"file": (name, content)}, data=word), word


def sentence(page: str) -> str:
    """What a page says of a mistake: our words alone."""
    assert "Traceback" not in page and "duckdb" not in page.lower()
    return page


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"person,cost\n", "has no rows"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "no CSV file of text"),
        (b'person,cost\n1,2\n"3,4\n5,6\n', "cannot be read from line 3 on"),
        (b"person,cost\n1,2\n3,4,5,6,7\n", "cannot be read from line 3 on"),
        (b"person;cost\n1;2\n3\n", "cannot be read from line 3 on"),
        (b"person,Person\n1,2\n3,4\n", "have the same name"),
    ],
    ids=["empty", "a head alone", "binary", "an open quote", "long", "short", "a name twice"],
)
def test_files_that_cannot_be_used_are_refused_in_a_sentence(running: Running, content: bytes, words: str) -> None:
    carla, told, _ = brought(running, content)
    if told.status_code == 303:  # it took a moment
        until_over(running, told)
        told = carla.get(told.headers["location"])
    else:
        assert told.status_code == 400
    assert words in sentence(told.text), told.text[-600:]
    assert list(running.state.uploads.folder.glob("*")) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"unit": ""}, "Choose the column that says whose row it is."),
        ({"unit": "nobody"}, "Choose the column that says whose row it is."),
        ({"name": "../x"}, "lower-case letters"),
        ({"cap": "200"}, "Write at most 100 % for the cap."),
        ({"rows": "many"}, "Write a number above 0"),
        ({"low1": "50", "high1": "0"}, "cost"),
        ({"low1": "a"}, "Write two numbers for the range of cost"),
    ],
    ids=["no unit", "a column that is not there", "a path", "a cap above 1", "words", "turned round", "a letter"],
)
def test_declarations_that_cannot_be_are_refused_and_the_file_waits(
    running: Running, wrong: dict[str, str], words: str
) -> None:
    carla, told, word = brought(running, b"person,cost\n" + b"".join(b"%d,%d\n" % (at, at % 50) for at in range(60)))
    step = running.place(told)
    found = carla.post(step, data=GIVEN | word | wrong)
    if found.status_code == 303:  # it took a moment
        place = found.headers["location"]
        while (piece := running.state.long_work.numbered(place.rsplit("/", 1)[1])).ended is None:
            time.sleep(0.05)
        assert piece.outcome == "failed"
        found = carla.get(place)
    assert words in sentence(found.text), found.text[-1500:]
    assert "visits" not in running.state.datasets.names() and carla.get(step).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        b"person;cost\n1;2,5\n3;4,5\n",
        b'person,note\n1,"a, b\nc"\n2,\n',
        b"\xef\xbb\xbfperson,cost\r\n1,2\r\n",
        b"person\n1\n",
    ],
)
def test_tables_as_people_have_them_are_taken(running: Running, content: bytes) -> None:
    carla, told, _ = brought(running, content)
    assert told.status_code == 303 and "person" in running.shown(carla, told).text


def test_a_disk_that_fills_up_during_registration_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(tmp_path)
    carla, told, word = brought(made, f"person,cost,note\n{ROWS}".encode())
    step, honest = made.place(told), work.subprocess.Popen

    def no_room(command: list[str], **pipes: Any) -> Any:
        small = ["bash", "-c", 'ulimit -f 64; exec "$@"', "small", *command]
        return honest(small if "leakcap.server.work" in command else command, **pipes)

    with monkeypatch.context() as patch:
        patch.setattr(work.subprocess, "Popen", no_room)
        found = carla.post(step, data=GIVEN | word)
        if found.status_code == 303:
            until_over(made, found)
            found = carla.get(found.headers["location"])
    assert "may need too much memory or space" in sentence(found.text) or "make room" in found.text
    assert made.state.datasets.names() == ["clinic", "school"] and not list(made.state.datasets.folder.glob("visits*"))
    assert made.place(carla.post(step, data=GIVEN | word)) == "/custody/data/visits", "with room again it works"


def until_over(running: Running, found: Any) -> None:
    while not running.state.long_work.numbered(found.headers["location"].rsplit("/", 1)[1]).over:
        time.sleep(0.05)


def test_a_disk_without_room_for_the_servers_file_charges_nothing(tmp_path: Path) -> None:
    """Only what is written before the charge finds no room: a request's key. Asked again with room, it is answered."""
    made = filled(tmp_path)
    ann = made.program("ann")
    database = made.state.database
    pages = database.row("PRAGMA page_count")[0]
    honest = SqliteDialect._connection

    def full(dialect: SqliteDialect) -> Any:
        connection = honest(dialect)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    def question(at: int) -> dict[str, Any]:
        return {"sql": COUNT, "share": 0.1, "request": f"{at:0200}"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteDialect, "_connection", full)
        with pytest.raises(InputError, match="No space left on device"):
            filled_up(database)
        found = ann.post(ASK, json=question(0))
        assert found.status_code == 400 and "make room in its folder" in found.json()["error"]
        assert ann.get("/api/datasets/clinic/budget").json()["spent"]["share"] == 0
    assert ann.post(ASK, json=question(0)).status_code == 200
    assert ann.get("/api/datasets/clinic/budget").json()["spent"]["share"] == pytest.approx(0.1)


def filled_up(database: Database) -> None:
    """Fill what is free in the pages that there are."""
    for at in range(1000):
        database.write("INSERT INTO requests VALUES ('ann', 'clinic', ?, ?)", b"%0200d" % at, b"x" * 32)


def test_another_key_is_told_and_with_the_right_one_all_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "key"))
    made = filled(tmp_path / "home")
    token = made.token("ann")
    head = {"Authorization": f"Bearer {token}"}
    first = made.client(headers=head).post(ASK, json={"sql": COUNT, "share": 0.1})
    with monkeypatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(tmp_path / "another"))
        with pytest.raises(InputError, match="with another key"):  # before anything is answered
            create_app(made.state.settings)
    again = Running(create_app(made.state.settings)).client(headers=head)
    assert again.post(ASK, json={"sql": COUNT, "share": 0.1}).content == first.content
    assert again.get("/api/datasets/clinic/budget").json()["spent"]["share"] == pytest.approx(0.1)


def test_a_clock_that_was_set_back_frees_nothing_and_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(tmp_path)
    ann, browser = made.program("ann"), made.browser("ann")
    custodian = made.program("carla")
    day = {"why": "a test", "day": 0.15}
    assert custodian.post("/api/datasets/clinic/policies", json=day).status_code == 200
    first = ann.post(ASK, json={"sql": COUNT, "share": 0.1})
    honest = time.time
    monkeypatch.setattr(time, "time", lambda: honest() - 3 * 86_400)
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.1}).content == first.content
    assert ann.get("/api/datasets/clinic/budget").json()["spent"]["share"] == pytest.approx(0.1)
    assert ann.post(ASK, json={"sql": COUNT, "share": 0.1, "request": "again"}).headers["leakcap-stored"] == "yes"
    assert browser.get("/data").status_code in (200, 303)
    assert made.browser("ann").get("/data").status_code == 200
    assert made.browser("carla").get("/custody").status_code == 200


def test_a_server_is_not_started_with_a_ledger_that_does_not_know_its_data(tmp_path: Path) -> None:
    """There everybody would have a second coin, and a clock that nobody has spent."""
    made = filled(tmp_path / "home")
    made.state.close()
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with pytest.raises(InputError, match=r"nothing of the data set 'clinic'.*--ledger"):
        ServerState(replace(made.state.settings, ledger=other))
    assert ServerState(made.state.settings).datasets.names() == ["clinic", "school"]
    operations.forget(made.state.datasets.account("clinic"), who="carla", why="it is over")
    assert ServerState(made.state.settings).datasets.names() == ["clinic", "school"], "what was forgotten is known"
