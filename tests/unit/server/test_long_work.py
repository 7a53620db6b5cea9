"""Long work of custodians: beside other requests, stopped when asked, and told of after a restart."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from leakcap.errors import InputError
from leakcap.server import long_work, register_pages, work
from leakcap.server.app import create_app
from leakcap.server.long_work import WorkWatch
from tests.unit.server.running import COUNT, PASSWORDS, Running, filled, form_word, started

FILE = {"file": ("visits.csv", b"person,cost\n" + b"".join(b"%d,%d\n" % (at, at % 50) for at in range(300)))}
GIVEN = {"name": "visits", "unit": "person", "rows": "1", "cap": "60", "low1": "0", "high1": "50", "what": "register"}
HANGS = ["-c", "import sys, time; print('half way', file=sys.stderr, flush=True); time.sleep(40)"]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Processes of long work do nothing, for ever, once somebody appends to what this gives; those there were."""
    there: list[Any] = []
    honest = subprocess.Popen

    def begun(command: list[str], **pipes: Any) -> Any:
        hangs = there and "leakcap.server.work" in command
        made = honest([command[0], *HANGS] if hangs else command, **pipes)
        if hangs:
            there.append(made)
        return made

    monkeypatch.setattr(work.subprocess, "Popen", begun)
    return there


def custodian(home: Path) -> tuple[Running, Any, str, str]:
    """A server, a custodian's browser, the word of its forms, and the address of a file that it brought."""
    made = filled(home)
    carla = made.browser("carla")
    word = form_word(carla)
    return made, carla, word, made.place(carla.post("/custody/register", files=FILE, data={"form_word": word}))


def until(true: Any) -> None:
    for _ in range(1000):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")


def test_others_are_answered_meanwhile_and_it_can_be_stopped(
    tmp_path: Path, hanging: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "SHORT", 0.1)
    made, carla, word, step = custodian(tmp_path)
    hanging.append("from now on")
    place = carla.post(step, data=GIVEN | {"form_word": word}).headers["location"]
    number = place.removeprefix("/custody/work/")
    assert made.program("ann").post("/api/datasets/clinic/ask", json={"sql": COUNT, "share": 0.01}).status_code == 200
    program = made.program("carla")
    until(lambda: program.get(f"/api/work/{number}").json()["words"] == "half way")
    shown = carla.get(place)
    assert shown.headers["refresh"] and "It is being done. half way" in shown.text and "Stop it" in shown.text
    assert "running" in carla.get("/custody/work").text
    assert carla.post(f"{place}/stop", data={"form_word": word}).headers["location"] == place
    assert hanging[1].poll() is not None, "its process goes on"
    over = program.get(f"/api/work/{number}").json()
    assert over["outcome"] == "stopped" and over["words"].endswith("begin it again when you like.") and over["ended"]
    assert "refresh" not in carla.get(place).headers and made.state.datasets.names() == ["clinic", "school"]
    assert carla.get(step).status_code == 200, "the file still waits"
    assert not list(made.state.datasets.folder.glob("visits*"))
    assert program.post(f"/api/work/{number}/stop").json() == over, "what is over stays as it is"
    made.state.close()


def test_what_is_done_leads_to_what_was_made(tmp_path: Path) -> None:
    made, carla, word, step = custodian(tmp_path)
    place = carla.post(step, data=GIVEN | {"form_word": word}).headers["location"]
    program = made.program("carla")
    until(lambda: program.get("/api/work").json()["work"][0]["ended"])
    one, looked = program.get("/api/work").json()["work"]
    assert (looked["what"], looked["outcome"]) == ("looking a file through", "done")
    assert (one["outcome"], one["place"], one["who"]) == ("done", "/custody/data/visits", "carla")
    assert place in (one["place"], f"/custody/work/{one['number']}")
    assert carla.get(f"/custody/work/{one['number']}").headers["location"] == one["place"]
    assert "visits" in made.state.datasets.names() and carla.get(step).status_code == 404


def test_what_fails_says_what_to_do_and_the_file_still_waits(tmp_path: Path) -> None:
    made, carla, word, step = custodian(tmp_path)
    found = carla.post(step, data=GIVEN | {"form_word": word, "name": "clinic"})
    words = "There is a data set &#39;clinic&#39; already: choose another name."
    assert found.status_code == 400 and words in found.text
    assert made.program("carla").get("/api/work").json()["work"][0]["outcome"] == "failed"
    assert carla.get(step).status_code == 200


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_server_that_is_started_again_says_what_it_did_not_finish(
    tmp_path: Path, hanging: list[Any], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(long_work, "SHORT", 0.1)
    made, carla, word, step = custodian(tmp_path)
    hanging.append("from now on")
    place = carla.post(step, data=GIVEN | {"form_word": word}).headers["location"]
    until(lambda: len(hanging) > 1)
    if how == "ended":
        made.state.close()
        assert hanging[1].poll() is not None
    again = Running(create_app(made.state.settings))
    shown = again.browser("carla").get(place).text
    assert ("The server ended before this did" if how == "killed" else "This was stopped") in shown
    assert again.program("carla").get("/api/work").json()["work"][0]["outcome"] == "stopped"
    made.state.close()


def test_the_process_ends_with_the_server_that_waits_for_it() -> None:
    """Its input ends when the server does, however that ends."""
    with subprocess.Popen(
        [work.sys.executable, "-P", "-m", "leakcap.server.work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"do": "command", "words": ["demo"]}\n')
        process.stdin.close()
        assert process.wait(60) == 1


def test_a_file_that_was_left_half_made_is_removed_and_others_stay(tmp_path: Path) -> None:
    import os

    made = filled(tmp_path)
    folder = made.state.datasets.folder
    for name, age in (("old-1.duckdb", 7200), ("old-1.duckdb.wal", 7200), ("new-2.duckdb", 0)):
        (folder / name).write_bytes(b"part")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    for kept in made.state.database.rows("SELECT file FROM datasets"):
        os.utime(folder / kept[0], (time.time() - 7200, time.time() - 7200))
    again = Running(create_app(made.state.settings))
    assert sorted(one.name.split("-")[0] for one in folder.iterdir()) == ["clinic", "new", "school"]
    assert again.program("ann").get("/api/datasets/clinic/schema").status_code == 200


def test_what_cannot_be_registered_leaves_no_part_behind(tmp_path: Path) -> None:
    made = filled(tmp_path)

    def fills_up(path: str) -> None:
        for end in ("", ".wal"):
            Path(path + end).write_bytes(b"part")
        raise InputError("the disk is full")

    before = sorted(made.state.datasets.folder.iterdir())
    with pytest.raises(InputError, match="full"):
        made.state.datasets.adopt("visits", fills_up, success=0.6)
    assert sorted(made.state.datasets.folder.iterdir()) == before and len(before) >= 2


def test_two_at_a_time_and_no_more_than_can_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "SHORT", 0.0)
    made = started(tmp_path)
    made.state.accounts.add("carla", "custodian", PASSWORDS["carla"])
    go, now, most = threading.Event(), [0], [0]

    def task(_: WorkWatch) -> str:
        now[0] += 1
        most[0] = max(most[0], now[0])
        go.wait(30)
        now[0] -= 1
        return "/custody"

    pieces = [made.state.long_work.begin("carla", "waiting", str(at), task, back="/") for at in range(20)]
    with pytest.raises(long_work.Refusal, match="Too much is waiting"):
        made.state.long_work.begin("carla", "waiting", "one more", task, back="/")
    assert made.state.long_work.stop(pieces[-1].number).outcome == "stopped", "before it began"
    until(lambda: most == [2])
    go.set()
    until(lambda: all(one.over for one in made.state.long_work.all()))
    assert most == [2] and sorted({one.outcome for one in made.state.long_work.all()}) == ["done", "stopped"]


def test_work_has_a_limit_in_time_and_a_defect_tells_nothing(tmp_path: Path, hanging: list[Any]) -> None:
    hanging.append("from now on")
    with pytest.raises(InputError, match=r"took longer than 0\.3 seconds"):
        work.done({"do": "columns", "file": "x", "table": "t"}, 0.3)
    assert hanging[1].poll() is not None
    made = started(tmp_path)

    def fails(_: WorkWatch) -> str:
        raise ValueError("a row: Mrs. Miller")

    piece = made.state.long_work.begin("carla", "failing", "x", fails, back="/")
    assert piece.outcome == "failed" and "Miller" not in piece.words and "The server failed" in piece.words
    assert register_pages.SECONDS <= 900


def test_forms_are_looked_at_beside_other_requests_and_hold_what_was_written(
    tmp_path: Path, hanging: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What declarations cost, and what promises do, wait for nothing that takes long, and can be stopped."""
    monkeypatch.setattr(long_work, "SHORT", 0.1)
    made, carla, word, step = custodian(tmp_path)
    published = made.place(carla.post("/custody/publish", files=FILE, data={"form_word": word}))
    hanging.append("from now on")
    compare = {"fn": "mean", "columns": "cost", "cap": "60", "unit": "person", "low1": "0", "high1": "50"}
    begun = [carla.post(step, data=GIVEN | {"form_word": word, "name": f"set{at}"}) for at in range(2)]
    looks = [
        carla.post(step, data=GIVEN | {"form_word": word, "what": "check", "about": "Costs of visits"}),
        carla.post(published, data=compare | {"form_word": word, "what": "compare"}),
    ]
    places = [one.headers["location"] for one in (*begun, *looks)]
    until(lambda: len(hanging) == 5)
    program = made.program("carla")
    until(lambda: {one["words"] for one in program.get("/api/work").json()["work"] if not one["ended"]} == {"half way"})
    for place in places:
        assert carla.post(f"{place}/stop", data={"form_word": word}).headers["location"] == place
    for form, words in ((step, "Costs of visits"), (published, 'value="cost" checked')):
        shown = carla.get(form).text
        assert words in shown and 'id="price"' not in shown
    assert word.encode() not in b"".join(one.read_bytes() for one in made.state.uploads.folder.glob("*.form.json"))
    made.state.close()
