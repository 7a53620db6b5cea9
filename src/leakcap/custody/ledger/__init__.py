"""Budgets that are never lost or overspent: what was answered about a data set, in one transaction for every answer."""

from __future__ import annotations

from pathlib import Path

from leakcap.custody import keys
from leakcap.custody.ledger.book import Account, Book, Entry, Open
from leakcap.custody.ledger.store import Header, Store, StoredEntry, Transaction
from leakcap.errors import InputError

__all__ = [
    "Account",
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

SQLITE, POSTGRES = "sqlite:///", ("postgresql://", "postgres://")


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
    """Beside the key."""
    return SQLITE + str(default_file())


def default_file() -> Path:
    """The file of the ledger beside the key."""
    key = keys.key_file().absolute()
    return key.with_name(key.name + ".ledger")
