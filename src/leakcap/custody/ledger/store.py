"""What a ledger needs of a database: accounts, each with a row of entries that only grows, and values beside them.

A store knows bytes and numbers, and no privacy words: sealing, hash chains and budgets are the ledger's. One
transaction sees and changes one account, alone: another waits until it is through. `leakcap.testing.check_store` tries
all that is asked here on any store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["VERSION", "Header", "Store", "StoredEntry", "Transaction"]

VERSION = 1  # of the tables; a ledger of a later one is refused


@dataclass(frozen=True)
class Header:
    """Which ledger this is."""

    version: int
    name: bytes  # drawn when it was made
    salt: bytes  # from which, with the user's key, its own key is made
    sealed: bool
    check: bytes  # by which the right key is known

    @property
    def digest(self) -> bytes:
        """Of all that stays as it is when tables are brought to another version."""
        return hashlib.sha256(b"leakcap ledger %d" % self.sealed + self.name + self.salt + self.check).digest()


@dataclass(frozen=True)
class StoredEntry:
    """One entry of an account. Rows are numbered from 1 without gaps and are never changed.

    No two rows of an account have one number, and no two one request: a store refuses the second.
    """

    number: int
    charge: int  # 10^-12 of a clock; 0 for what is no answer
    request: bytes  # by which a retry is known; empty for none
    question: bytes  # by which the same question is known; empty for none
    digest: bytes  # of `body`
    beside: bytes  # digest of all values beside the entries, after this one
    head: bytes  # of the chain, this entry included
    body: bytes | None  # None once it was forgotten


class Transaction(Protocol):
    """One account, as it is now. What is written is stored for good when the block ends, all of it or nothing."""

    def last(self) -> StoredEntry | None:
        """The latest entry, or None where the account is new."""
        ...

    def row(self, number: int) -> StoredEntry | None:
        """One entry."""
        ...

    def head(self, number: int) -> bytes | None:
        """The head of one entry: cheaper than the whole of it."""
        ...

    def rows(self) -> Iterator[StoredEntry]:
        """All entries, in order."""
        ...

    def asked(self, request: bytes) -> StoredEntry | None:
        """The entry of a request, or None."""
        ...

    def answered(self, question: bytes) -> StoredEntry | None:
        """The latest entry of a question, or None."""
        ...

    def value(self, name: str) -> bytes | None:
        """What lies beside the entries under a name."""
        ...

    def names(self) -> list[str]:
        """The names of all values."""
        ...

    def append(self, row: StoredEntry, values: Mapping[str, bytes | None]) -> None:
        """Write an entry and put values beside the entries; None takes a value away.

        An error where an entry has this number or this request already.
        """
        ...

    def erase(self) -> None:
        """Take away the bodies of all entries that there are."""
        ...


class Store(Protocol):
    """Where accounts are kept."""

    @property
    def place(self) -> str:
        """Where it is, for messages: without passwords."""
        ...

    def header(self) -> Header | None:
        """Of this ledger, or None where there is none yet."""
        ...

    def make(self, header: Header) -> None:
        """Make the tables, unless another process was faster."""
        ...

    def migrate(self, steps: Mapping[int, tuple[str, ...]]) -> None:
        """Bring older tables to `VERSION`, all steps or none; `steps` maps a version to the statements after it."""
        ...

    def accounts(self) -> list[bytes]:
        """All that have entries."""
        ...

    def reading(self, account: bytes) -> AbstractContextManager[Transaction]:
        """One state of an account, to look at."""
        ...

    def writing(self, account: bytes) -> AbstractContextManager[Transaction]:
        """An account, alone, for one transaction."""
        ...

    def sign(self) -> object | None:
        """The same only while nobody has written anything, in whichever process; None where reading alone tells."""
        ...

    def scrub(self) -> None:
        """Leave no trace of what was erased, as far as this database can."""
        ...

    def close(self) -> None:
        """Let go of the database; it opens again when it is used."""
        ...
