"""Budgets that are never lost or overspent: what was answered about a data set, in one transaction for every answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody import keys
from leakcap.custody.ledger.book import Account, Book, Entry, Open
from leakcap.custody.ledger.store import Header, Store, StoredEntry, Transaction
from leakcap.custody.postgres_server import POSTGRES
from leakcap.errors import InputError

__all__ = [
    "Account",
    "AccountAt",
    "Book",
    "Entry",
    "Header",
    "Open",
    "Store",
    "StoredEntry",
    "Transaction",
    "default_file",
    "default_place",
    "open_book",
]

SQLITE = "sqlite:///"


def open_book(place: str | Store | None = None) -> Book:
    """The ledger at a place: "sqlite:///file", "postgresql://...", or a store; None for the one beside the key."""
    if place is None:
        place = default_place()
    if not isinstance(place, str):
        return Book.open(place)
    if place.startswith(SQLITE):
        from leakcap.custody.ledger.sqlite import SqliteStore

        path = place.removeprefix(SQLITE)
        if not path:
            raise InputError("name the file of the ledger, such as ledger='sqlite:///ledger.db'")
        return Book.open(SqliteStore(Path(path)))
    if place.startswith(POSTGRES):
        from leakcap.custody.ledger.postgres import PostgresStore

        return Book.open(PostgresStore(place))
    raise InputError("ledger must be 'sqlite:///file' or 'postgresql://user@host/database'")


def default_place() -> str:
    """Where the variable LEAKCAP_LEDGER says, or beside the key."""
    return os.environ.get("LEAKCAP_LEDGER") or SQLITE + str(default_file())


@dataclass(frozen=True)
class AccountAt:
    """An account by its place: which ledger, which data set, and which state of its contents."""

    place: str | Store
    name: str
    version: str  # a digest of the contents
    by_rows: bool = False  # whether people are known by their rows, also where labels of these are given


def default_file() -> Path:
    """The file of the ledger beside the key."""
    key = keys.key_file().absolute()
    return key.with_name(key.name + ".ledger")
