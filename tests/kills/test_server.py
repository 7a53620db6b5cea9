"""The server is killed again and again while analysts ask: nothing is lost, nothing is charged twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'leakcap[server]'")
pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")

from argon2 import PasswordHasher
from benchmarks import server_holds_up

from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import export, verify
from leakcap.server import accounts
from tests.unit.server.running import filled

KILLS = int(os.environ.get("LEAKCAP_KILLS", "4"))
ANALYSTS, EACH, SHARE = ("ann", "bob"), 3, 0.001
OPENER = build_opener(ProxyHandler({}))


def started(home: Path) -> tuple[subprocess.Popen[bytes], str]:
    command = [sys.executable, "-m", "leakcap", "serve", "--home", str(home), "--port", "0", "--json"]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert made.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        part = made.stdout.readline().decode()
        assert part, "the server did not start"
        said += part
    made.stdout.close()  # it says nothing more
    return made, json.loads(said)["address"]


def asked(address: str, token: str, turn: int, key: str) -> bytes | None:
    """The answer's bytes; None where the server was not there, or ended meanwhile."""
    body = {"sql": f"select count(*) as n from people where age > {turn}", "share": SHARE, "request": key}
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with OPENER.open(
            Request(f"{address}/api/datasets/clinic/ask", json.dumps(body).encode(), head), timeout=90
        ) as one:
            return bytes(one.read())
    except (URLError, OSError):
        return None


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing_and_charges_nothing_twice(tmp_path: Path, own_key: Path) -> None:
    made = filled(tmp_path / "home")
    tokens = {name: made.token(name) for name in ANALYSTS}
    answers: dict[str, bytes] = {}
    where = [""]
    chance = random.Random(0)

    def analyst(name: str, first: int) -> None:
        """Sends every request until it is answered, then once more."""
        for turn in range(first, first + EACH * (KILLS + 1)):
            key = f"{name} {turn}"
            for again in range(2):
                found = None
                while found is None:
                    found = asked(where[0], tokens[name], turn, key)
                    time.sleep(0.05)
                assert again == 0 or answers[key] == found, "the same request gives the same bytes"
                answers[key] = found

    running, where[0] = started(tmp_path / "home")
    threads = [threading.Thread(target=analyst, args=(name, 30 * at)) for at, name in enumerate(ANALYSTS)]
    for one in threads:
        one.start()
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(1, 8))
            running.send_signal(signal.SIGKILL)
            running.wait()
            running, where[0] = started(tmp_path / "home")
        for one in threads:
            one.join(400)
    finally:
        running.kill()
        running.wait()
    assert not any(one.is_alive() for one in threads) and len(answers) == len(ANALYSTS) * EACH * (KILLS + 1)
    book = open_book(f"sqlite:///{tmp_path / 'home' / 'ledger.db'}")
    assert verify(book).whole
    charged: list[Any] = [row for row in export(book.account("clinic")) if row["charge"] > 0]
    assert len(charged) == len({row["text"] for row in charged}) == len(answers), "every question was charged once"
    assert sum(row["charge"] for row in charged) <= round(len(answers) * SHARE * TICKS) + len(answers)
    told = {json.loads(one)["number"]: json.loads(one)["rows"][0][0] for one in answers.values()}
    assert told == {row["number"]: row["numbers"][0] for row in charged}, "what was told is what the ledger keeps"


@pytest.mark.slow
def test_many_analysts_who_do_not_stop_asking_while_everything_is_killed() -> None:
    """A short form of `python -m benchmarks.server_holds_up 32 10 50`: workers are killed, too."""
    text, wrong = server_holds_up.held_up(analysts=6, minutes=0.4, kills=4)
    assert wrong == [] and "0 faults" in text


def two_answers(home: Path, more: list[tuple[int, float]]) -> tuple[str, dict[str, bytes]]:
    """The ledger of a server that was asked two questions, and more of which the answer is lost; and its answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_hasher", lambda: PasswordHasher(1, 64, 1))  # nobody signs in here
        program, bodies = filled(home).program("ann"), dict[str, bytes]()
    for turn, share in [(0, SHARE), (1, SHARE), *more]:
        sql = f"select count(*) as n from people where age > {turn}"
        body = program.post("/api/datasets/clinic/ask", json={"sql": sql, "share": share}).content
        bodies.setdefault(sql, body)
    return f"sqlite:///{home / 'ledger.db'}", bodies


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    return two_answers(tmp_path_factory.mktemp("server") / "home", [])


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ("nothing", ""),
        ("a charge twice", "charged 2 times"),
        ("an answer without a charge", "answered without a charge"),
        ("another answer", "different answers"),
        ("another number", "another number than the ledger's"),
        ("an answer that was lost", "charged without an answer"),
    ],
)
def test_what_is_looked_for_is_found(
    tmp_path: Path, whole: tuple[str, dict[str, bytes]], planted: str, words: str
) -> None:
    twice = planted == "a charge twice"
    ledger, bodies = two_answers(tmp_path / "home", [(1, 2 * SHARE)]) if twice else whole
    seen = server_holds_up.Seen()
    seen.bodies.update({sql: {body} for sql, body in bodies.items()})
    first, second = seen.bodies
    (body,) = seen.bodies[first]
    if planted == "an answer that was lost":
        del seen.bodies[second]
    if planted == "an answer without a charge":
        seen.bodies["select 1"] = {body}
    if planted == "another answer":
        seen.bodies[first] = {body, body + b" "}
    if planted == "another number":
        seen.bodies[first] = {body.replace(b'"rows":[[', b'"rows":[[1')}
    found = server_holds_up.faults(ledger, seen, "clinic", SHARE)
    assert (found == []) == (planted == "nothing") and words in " ".join(found)
