"""The tables of a ledger and what is asked of them: one way to say it for all databases that speak SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leakcap.custody.ledger.store import Header, StoredEntry
from leakcap.errors import InputError

__all__ = ["HEADER", "NOTE", "STATEMENTS", "SqlTransaction", "header_of", "header_values", "statements"]

NOTE = "CUSTODIAN ONLY. What leakcap has answered, and what is left of every budget: without it nothing goes on."

# `BYTES` and `WHOLE` are put in by each database.
STATEMENTS = (
    "CREATE TABLE ledger (note TEXT NOT NULL, version WHOLE NOT NULL, name BYTES NOT NULL, salt BYTES NOT NULL, "
    "sealed WHOLE NOT NULL, key_check BYTES NOT NULL)",
    "CREATE TABLE accounts (account BYTES PRIMARY KEY)",
    "CREATE TABLE entries (account BYTES NOT NULL, number WHOLE NOT NULL, charge WHOLE NOT NULL, "
    "request BYTES, question BYTES NOT NULL, digest BYTES NOT NULL, beside BYTES NOT NULL, "
    "head BYTES NOT NULL, body BYTES, PRIMARY KEY (account, number))",
    "CREATE UNIQUE INDEX requests ON entries (account, request)",
    "CREATE INDEX questions ON entries (account, question)",
    "CREATE TABLE beside (account BYTES NOT NULL, name TEXT NOT NULL, content BYTES NOT NULL, "
    "PRIMARY KEY (account, name))",
)
BATCH = 64  # entries that are read at once
DAMAGED = "the ledger is damaged, an entry is not of its kind: bring it back from a copy"
HEADER = "SELECT version, name, salt, sealed, key_check FROM ledger"
COLUMNS = "number, charge, request, question, digest, beside, head, body"
ENTRY = f"SELECT {COLUMNS} FROM entries WHERE account = ? "


@dataclass(frozen=True)
class SqlTransaction:
    """One account in a transaction that somebody else begins and ends."""

    execute: Callable[..., Any]  # of a statement with question marks, and its values
    account: bytes

    def last(self) -> StoredEntry | None:
        return self._one("ORDER BY number DESC LIMIT 1")

    def row(self, number: int) -> StoredEntry | None:
        return self._one("AND number = ?", number)

    def rows(self) -> Iterator[StoredEntry]:
        number, more = 0, True
        while more:
            statement = f"{ENTRY} AND number > ? ORDER BY number LIMIT {BATCH}"
            found = self.execute(statement, (self.account, number)).fetchall()
            for entry in map(_row, found):
                yield entry
                number = entry.number
            more = bool(found)

    def head(self, number: int) -> bytes | None:
        statement = "SELECT head FROM entries WHERE account = ? AND number = ?"
        found = self.execute(statement, (self.account, number)).fetchone()
        return None if found is None else _bytes(found[0])

    def asked(self, request: bytes) -> StoredEntry | None:
        return self._one("AND request = ?", request)

    def answered(self, question: bytes) -> StoredEntry | None:
        return self._one("AND question = ? ORDER BY number DESC LIMIT 1", question)

    def value(self, name: str) -> bytes | None:
        found = self.execute("SELECT content FROM beside WHERE account = ? AND name = ?", (self.account, name))
        row = found.fetchone()
        return None if row is None else _bytes(row[0])

    def names(self) -> list[str]:
        found = self.execute("SELECT name FROM beside WHERE account = ? ORDER BY name", (self.account,)).fetchall()
        return [name.decode() if isinstance(name, bytes) else name for (name,) in found]

    def append(self, row: StoredEntry, values: Mapping[str, bytes | None]) -> None:
        if row.number == 1:
            self.execute("INSERT INTO accounts VALUES (?) ON CONFLICT DO NOTHING", (self.account,))
        self.execute(
            f"INSERT INTO entries (account, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.account,
                row.number,
                row.charge,
                row.request or None,  # so that requests are unique, and none is none
                row.question,
                row.digest,
                row.beside,
                row.head,
                row.body,
            ),
        )
        for name, content in values.items():
            if content is None:
                self.execute("DELETE FROM beside WHERE account = ? AND name = ?", (self.account, name))
            else:
                self.execute(
                    "INSERT INTO beside VALUES (?, ?, ?) "
                    "ON CONFLICT (account, name) DO UPDATE SET content = excluded.content",
                    (self.account, name, content),
                )

    def erase(self) -> None:
        self.execute("UPDATE entries SET body = NULL WHERE account = ?", (self.account,))

    def _one(self, which: str, *values: Any) -> StoredEntry | None:
        found = self.execute(ENTRY + which, (self.account, *values)).fetchone()
        return None if found is None else _row(found)


def _row(found: tuple[Any, ...]) -> StoredEntry:
    number, charge, request, question, digest, beside, head, body = found
    if not isinstance(number, int) or not isinstance(charge, int):
        raise InputError(DAMAGED)
    return StoredEntry(
        number=number,
        charge=charge,
        request=b"" if request is None else _bytes(request),
        question=_bytes(question),
        digest=_bytes(digest),
        beside=_bytes(beside),
        head=_bytes(head),
        body=None if body is None else _bytes(body),
    )


def statements(made: tuple[str, ...], whole: str, of_bytes: str) -> list[str]:
    """Statements with the words of a database for whole numbers and for bytes."""
    return [one.replace("BYTES", of_bytes).replace("WHOLE", whole) for one in made]


def header_values(header: Header) -> tuple[Any, ...]:
    """A row of the table `ledger`."""
    return NOTE, header.version, header.name, header.salt, int(header.sealed), header.check


def header_of(rows: list[tuple[Any, ...]]) -> Header | None:
    """The header in the rows that `HEADER` finds; None where they are not what was written."""
    if len(rows) != 1:
        return None
    version, name, salt, sealed, check = rows[0]
    if not isinstance(version, int) or sealed not in (0, 1):
        return None
    return Header(version, name=_bytes(name), salt=_bytes(salt), sealed=bool(sealed), check=_bytes(check))


def _bytes(content: object) -> bytes:
    """What databases give for bytes, and nothing else: of a number `bytes` would make room."""
    if not isinstance(content, (bytes, memoryview)):
        raise InputError(DAMAGED)
    return bytes(content)
