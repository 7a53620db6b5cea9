"""What the server's database asks of SQLite and of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

__all__ = ["Dialect", "Speaking"]


class Speaking(Protocol):
    """Somebody who is spoken to in SQL, with question marks for values."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """A cursor."""


class Dialect(Protocol):
    """A kind of database. `at_hand`: a read waits for nobody, neither for another machine nor for who writes."""

    at_hand: bool

    def reading(self) -> AbstractContextManager[Speaking]:
        """For one SELECT."""

    def writing(self) -> AbstractContextManager[Speaking]:
        """For one transaction, after all that came before: it is on the disk when the block ends, or never was."""

    def version(self, now: Speaking) -> int:
        """Of the tables that are there; 0 where there are none. An `InputError` where they are somebody else's."""

    def change(self, now: Speaking, statements: Sequence[str], version: int) -> None:
        """Bring tables to a version, by statements in the words of SQLite."""

    def close(self) -> None:
        """Let go of everything; what is asked after that is asked anew."""
