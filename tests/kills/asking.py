"""Processes that ask a session questions, one after the other, and are killed; and what must hold whenever one was."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import leakcap as lc
from leakcap.custody import heads
from leakcap.custody.ledger.budgets import EVERYBODY
from leakcap.custody.ledger.postgres import PostgresStore
from leakcap.custody.ledger.sqlite import SqliteStore
from leakcap.noise import OperatingSystem

ROWS = np.random.default_rng(3).normal(size=(30, 1))
SHARE = 1e-6  # so that a million answers fit
STATEMENTS = ("BEGIN", "INSERT INTO entries", "INSERT INTO beside", "COMMIT")
STEPS = [
    *((when, statement) for statement in STATEMENTS for when in ("before", "after")),
    ("before", "head"),
    ("amid", "head"),
    ("after", "head"),
]


def session(place: str) -> lc.Session:
    return lc.Session(ROWS, cap=0.6, ledger=place, name="rows")


def ask(own: lc.Session, number: int) -> lc.sessions.answers.Answer:
    """The question of a number, with its request: another share makes it another question."""
    return own.count(share=SHARE * (1 + 1e-5 * number), request=f"question {number}")


@dataclass(frozen=True)
class Asker:
    """A process that asks on and on, and tells of every answer through a pipe."""

    child: int
    hears: int

    def killed(self, answers: int, seconds: float) -> None:
        """Kill it so long after so many answers."""
        while answers and os.read(self.hears, 1):
            answers -= 1
        time.sleep(seconds)
        os.kill(self.child, signal.SIGKILL)
        self.died()

    def died(self) -> None:
        """Wait until it has killed itself."""
        os.close(self.hears)
        assert os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]) == -signal.SIGKILL


def asker(place: str, told: Path, first: int, dying: Callable[[], None] = lambda: None) -> Asker:
    """Asks from a question on, and writes down what it was told."""
    hears, tells = os.pipe()
    child = os.fork()
    if child:
        os.close(tells)
        return Asker(child, hears)
    try:
        OperatingSystem().below(2)  # tests draw from streams with a seed: processes must not draw alike
        log = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        own = session(place)
        dying()
        for number in range(first, first + 10_000):
            os.write(log, f"{number} {float(ask(own, number))!r}\n".encode())
            os.write(tells, b".")
    finally:
        os._exit(1)


def told_in(path: Path) -> dict[int, set[str]]:
    """What was told, by question: one answer each, if all is well."""
    found: dict[int, set[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        number, _, value = line.partition(" ")
        found.setdefault(int(number), set()).add(value)
    return found


def check(place: str, told: dict[int, set[str]]) -> int:
    """No answer is uncharged, changed or given twice otherwise, and the chain is whole; how many answers there are."""
    from leakcap.custody.ledger.accounts import Spent

    own = session(place)
    with own._desk.account.reading() as now:
        answers = [entry for entry in now.entries() if entry.kind == "answer"]
        assert sum(entry.charge for entry in answers) == now.state.get("declared", {}).get(EVERYBODY, 0)
        ticks = Spent.read(now, EVERYBODY).ticks
    asked = Counter(entry.body["question"] for entry in answers)
    assert not asked or max(asked.values()) == 1, "a question was charged twice"
    charged = sum(entry.charge for entry in answers)  # beside it everybody pays for the sampler: 85 ticks an answer
    everybody = ticks - charged
    assert not answers or (everybody.min() == everybody.max() >= 0), "an uncharged answer"
    assert not answers or everybody.max() < 0.5 * charged / len(answers), "somebody was charged twice"
    values = [repr(float(entry.body["numbers"][0])) for entry in answers]
    for number, given in told.items():
        assert len(given) == 1, "a question was answered twice, otherwise"
        assert given <= {values[number]}, "an answer was given that the ledger does not hold"
    return len(answers)


@contextmanager
def _watched(opened: Any, begin: tuple[str, ...], hook: Callable[[str, str], None]) -> Iterator[Any]:
    for statement in begin:
        hook("before", statement)
    with opened as database:
        for statement in begin:
            hook("after", statement)
        yield _Watching(database, hook)


class _Watching:
    """A connection that tells of every statement, before and after."""

    def __init__(self, database: Any, hook: Callable[[str, str], None]) -> None:
        self._database, self._hook = database, hook

    def execute(self, statement: str, *values: Any, **how: Any) -> Any:
        self._hook("before", statement)
        found = self._database.execute(statement, *values, **how)
        self._hook("after", statement)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def dying_at(when: str, step: str) -> Callable[[], None]:
    """Makes a process kill itself at a step of the next question that it asks."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hook(now: str, statement: str) -> None:
        reading = "READ ONLY" in statement or statement == "BEGIN"
        if now == when and statement.startswith(step) and not reading:
            die()

    def prepare() -> None:
        if step != "head":
            for store in (SqliteStore, PostgresStore):
                plain = store._connected
                store._connected = lambda self, *begin, plain=plain: _watched(plain(self, *begin), begin, hook)  # type: ignore[method-assign]
            return
        write, sync = heads._write, os.fdatasync
        if when == "amid":
            os.fdatasync = lambda handle: die()  # type: ignore[assignment]
            return

        def dying(*given: Any) -> None:
            if when == "before":
                die()
            write(*given)
            sync(given[0].handle)
            die()

        heads._write = dying

    return prepare
