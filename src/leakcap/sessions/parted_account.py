"""The account of data in partitions: rows are dealt by its keys, while they are read for the first and only time."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from leakcap.caps import Cap
from leakcap.cluster.parted import Partitions, Shards, dealt
from leakcap.custody.ledger import AccountAt, Book, Store, open_book
from leakcap.custody.ledger.accounts import Opened, Secret, known_secret, name_of, open_account
from leakcap.errors import InputError
from leakcap.planning.released import warn_of_second_secret
from leakcap.sessions.clock import Clock
from leakcap.sessions.terms import Terms

__all__ = ["Parted", "refuse_backend"]


@dataclass(frozen=True, eq=False)
class Parted:
    """How a session over partitions is opened."""

    caps: tuple[Cap, ...]
    design: str
    unit: Any
    ledger: str | Store | AccountAt | None
    name: str | None
    rows_per_unit: int | None
    terms: Terms
    worlds: int | None = None  # how many are listed

    def opened(self, parts: Partitions) -> tuple[Opened, Shards]:
        """The account, and its people."""
        if self.unit is not None and not isinstance(self.unit, str):
            raise InputError("unit must be the name of a column: every partition brings its own part of it")
        if self.terms.quiet and self.unit is not None and self.rows_per_unit is None:
            raise InputError(
                "a pool cap or an analyst with unit= needs rows_per_unit=, the most rows that one person may bring: "
                "further ones are left out"
            )
        if isinstance(self.ledger, AccountAt) or (self.ledger is not None and self.name is None):
            raise InputError("data in partitions go by their name in the ledger: give ledger= its address, and name=")
        book = Book.in_memory() if self.ledger is None else open_book(self.ledger)
        known = None if self.name is None else known_secret(book, self.name)
        secret = known or Secret(secrets.token_bytes(32))
        keys = self.terms.secret(secret)
        listed = self.worlds is not None
        shards = dealt(parts, unit=self.unit, most=self.rows_per_unit, key=keys.key, named=listed)
        if self.terms.seed is None:
            warn_of_second_secret(frozenset(shards.contents), remember=self.ledger is None)
        clock = None if listed else Clock.of(self.caps)
        opened = open_account(
            book,
            self.name if self.name is not None else name_of(shards.version),
            design="pool" if self.terms.everybody else self.design,
            caps=self.caps,
            version=shards.version,
            named=self.unit is not None,
            numbers=shards.people,
            clock=(0.0, 0.0) if clock is None else (clock.square, clock.distance),
            worlds=self.worlds,
            always=self.terms.always,
            contents=() if self.ledger is None else shards.contents,
            secret=secret,
        )
        if opened.secret != secret:
            raise InputError("another process opened this account just now: open it again")
        return opened, shards


def refuse_backend(backend: Any, *, worlds: bool) -> None:
    """An InputError where one is named for sums over one table, which nobody needs to share out."""
    if backend is not None and not worlds:
        raise InputError("backend= is for data in partitions and for worlds: give lc.partitions(...), or leave it out")
