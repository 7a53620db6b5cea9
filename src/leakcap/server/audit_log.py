"""The audit log: who did what, when, and how it ended. Never a question's text, a row, a token or a password."""

from __future__ import annotations

import time
from dataclasses import dataclass

from leakcap.server.database import Database

__all__ = ["AuditLog", "LoggedEvent"]

MOST = 500  # that are shown at a time


@dataclass(frozen=True)
class LoggedEvent:
    """One line of the log."""

    number: int
    at: float  # seconds since 1970, UTC
    who: str  # an account; empty where nobody was signed in
    what: str
    about: str  # a data set, an account, or the number of a token
    outcome: str


class AuditLog:
    """The log: it can be added to and read."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(self, who: str, what: str, about: str = "", outcome: str = "done") -> None:
        """Write down an event, with the time of this machine."""
        self.database.write(
            "INSERT INTO events (at, who, what, about, outcome) VALUES (?, ?, ?, ?, ?)",
            time.time(),
            who,
            what,
            about,
            outcome,
        )

    def latest(self, before: int | None = None) -> list[LoggedEvent]:
        """The latest events, newest first; those before a number, to leaf through them."""
        found = self.database.rows(
            "SELECT number, at, who, what, about, outcome FROM events WHERE number < ? ORDER BY number DESC LIMIT ?",
            2**62 if before is None else before,
            MOST,
        )
        return [LoggedEvent(*row) for row in found]
