"""Long work of custodians, beside all other requests: what is done now, how far it is, and what became of it.

Each piece runs in a process of its own, two at a time; two more, for which somebody looks at a form, do not wait behind
those. Each stands in the server's file from its beginning to its end, so
that a server that was ended in between says so when it is started again, in place of saying nothing.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as waited
from dataclasses import dataclass, field

from leakcap.server.database import Database
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal, as_sentence, defect_in_words
from leakcap.server.work import STOPPED

__all__ = ["LongWork", "PieceOfWork", "WorkWatch"]

LOG = logging.getLogger("leakcap.server")
AT_ONCE = 2
MOST_WAITING = 20
KEPT = 30 * 86_400.0  # seconds that what has ended is shown
SHORT = 1.5  # seconds: who begins what takes no longer need not look again
WAITING, RUNNING, DONE, FAILED, ENDED = "waiting", "running", "done", "failed", "stopped"
SERVER_ENDED = "The server ended before this did, and nothing of it is kept: begin it again."
TOO_MUCH = "Too much is waiting to be done already: stop something, or begin this again when it is done."


@dataclass(frozen=True)
class PieceOfWork:
    """One piece, as it stands. Custodian side."""

    number: str
    who: str
    what: str  # "registering a data set"
    about: str  # its name
    began: float  # seconds since 1970
    ended: float | None
    outcome: str  # waiting, running, done, failed, stopped
    words: str  # how far it is; or what went wrong, and what to do
    place: str  # where to look when it is done, or where it was begun

    @property
    def over(self) -> bool:
        return self.ended is not None


@dataclass(eq=False)
class WorkWatch:
    """What a piece of work is told, and tells, while it runs."""

    words: str = ""
    _kill: Callable[[], None] | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begins(self, kill: Callable[[], None]) -> None:
        with self._lock:
            self._kill = kill
        if self.stopped:  # it was stopped before there was a process
            kill()

    def says(self, words: str) -> None:
        self.words = words

    def stop(self) -> None:
        """End it, now or as soon as it begins."""
        self._stopped.set()
        with self._lock:
            kill = self._kill
        if kill is not None:
            kill()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()


class LongWork:
    """All of it, on one server."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._pool = ThreadPoolExecutor(AT_ONCE, "long-work")
        self._looks = ThreadPoolExecutor(AT_ONCE, "long-looks")
        self._now: dict[str, tuple[WorkWatch, Future[None]]] = {}
        self._lock = threading.Lock()
        database.write("DELETE FROM work WHERE ended < ?", time.time() - KEPT)
        database.write(
            "UPDATE work SET ended = ?, outcome = ?, words = ? WHERE ended IS NULL", time.time(), ENDED, SERVER_ENDED
        )

    def begin(
        self, who: str, what: str, about: str, task: Callable[[WorkWatch], str], *, back: str, look: bool = False
    ) -> PieceOfWork:
        """Begin a piece of work. What takes a moment is over when this returns.

        Args:
            who: begins it.
            what: it is, in words: "registering a data set".
            about: the name of what it is about.
            task: does it, and returns the address at which to look then. An error of the library keeps its words.
            back: the address from which it was begun.
            look: whether it keeps nothing but figures for a form that somebody fills in.
        """
        watch, number = WorkWatch(), secrets.token_hex(12)
        with self._lock:
            self._now = {key: one for key, one in self._now.items() if not one[1].done()}
            if len(self._now) >= MOST_WAITING:
                raise Refusal(429, TOO_MUCH, wait=60.0)
            self.database.write(
                "INSERT INTO work VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?)",
                *(number, who, what, about, time.time(), WAITING, "", back),
            )
            future = (self._looks if look else self._pool).submit(self._do, number, watch, task)
            self._now[number] = watch, future
        waited([future], timeout=SHORT)
        return self.numbered(number)

    def numbered(self, number: str) -> PieceOfWork:
        """A piece of work as it stands; a `Refusal` where there is none of this number."""
        row = self.database.row("SELECT * FROM work WHERE number = ?", number)
        if row is None:
            raise Refusal(404, NOT_THERE)
        return self._piece(row)

    def all(self) -> list[PieceOfWork]:
        """What is done now and was lately, newest first."""
        return [self._piece(row) for row in self.database.rows("SELECT * FROM work ORDER BY began DESC LIMIT 100")]

    def stop(self, number: str) -> PieceOfWork:
        """Stop a piece of work; one that is over stays as it is."""
        piece, now = self.numbered(number), self._now.get(number)
        if now is not None and not piece.over:
            watch, future = now
            watch.stop()
            if future.cancel():  # it had not begun
                self._over(number, ENDED, STOPPED)
            else:
                waited([future], timeout=10.0)
        return self.numbered(number)

    def close(self) -> None:
        """Stop all of it, before the server ends."""
        for number, (_, future) in list(self._now.items()):
            if not future.done():
                self.stop(number)
        for pool in (self._pool, self._looks):
            pool.shutdown(wait=False)

    def _do(self, number: str, watch: WorkWatch, task: Callable[[WorkWatch], str]) -> None:
        self.database.write("UPDATE work SET outcome = ? WHERE number = ?", RUNNING, number)
        try:
            if watch.stopped:
                raise Refusal(400, STOPPED)
            place = task(watch)
        except Exception as error:
            found = as_refusal(error)
            if found.status >= 500:
                LOG.error("long work failed: %s", defect_in_words(error))
            self._over(number, ENDED if watch.stopped else FAILED, found.words)
        else:
            self._over(number, DONE, "", place)

    def _over(self, number: str, outcome: str, words: str, place: str | None = None) -> None:
        self.database.write(
            "UPDATE work SET ended = ?, outcome = ?, words = ?, place = coalesce(?, place) WHERE number = ?",
            *(time.time(), outcome, as_sentence(words), place, number),
        )

    def _piece(self, row: tuple[str, str, str, str, float, float | None, str, str, str]) -> PieceOfWork:
        number, who, what, about, began, ended, outcome, words, place = row
        now = self._now.get(number)
        return PieceOfWork(
            number,
            who,
            what,
            about=about,
            began=began,
            ended=ended,
            outcome=outcome,
            words=words or (now[0].words if now and ended is None else ""),
            place=place,
        )
