"""Ledgers with three charges in them, in a file and in a database, and how to change them behind their back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakcap.custody.ledger import Account, Book, open_book
from tests.charges import charge, open_budget

BUDGET = 100
SECRET = b"a value beside the entries"


@dataclass(frozen=True)
class Place:
    """Where a ledger is."""

    url: str

    @property
    def path(self) -> Path:
        return Path(self.url.removeprefix("sqlite:///"))

    @property
    def in_file(self) -> bool:
        return self.url.startswith("sqlite")

    def edit(self, statement: str, *values: Any) -> None:
        """Change it by hand, without the key."""
        if self.in_file:
            with closing(sqlite3.connect(self.path)) as database, database:
                database.execute(statement, values)
            return
        import psycopg

        with psycopg.connect(self.url) as server:
            server.execute("SET search_path = leakcap")
            server.execute(statement.replace("?", "%s"), values)

    def account(self) -> Account:
        """As another process finds it."""
        return open_book(self.url).account("a crowd")


def filled(place: Place) -> Account:
    """Three charges, and a value beside them."""
    account = open_budget(open_book(place.url), BUDGET)
    for number in range(3):
        charge(account, f"request {number}")
    with account.writing() as now:
        now.put("value", SECRET)
        now.append("value", {})
    return account


def untouched(account: Account) -> None:
    """Nothing was lost, and nothing went through."""
    with account.reading() as now:
        assert [entry.kind for entry in now.entries()] == ["opened", "charge", "charge", "charge", "value"]
        assert now.state["spent"] == 3
        assert now.value("value") == SECRET


def with_a_value(account: Account, content: bytes) -> None:
    with account.writing() as now:
        now.put("large", content)
        now.append("large", {})


def walked(account: Account) -> None:
    """All that there is, looked at."""
    with account.reading() as now:
        list(now.entries())
        for name in now.names():
            now.value(name, fresh=True)


__all__ = ["Account", "Book", "Place", "charge", "filled", "untouched", "walked", "with_a_value"]
