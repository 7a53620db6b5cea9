"""The server's own database: accounts, tokens, registered data sets, stored answers and the audit log.

No password, no token and no question is in it as text: of these it holds hashes, and of questions prints that are made
with the server's key. What was spent stands in the ledger, never here. It is a SQLite file in the server's folder, or a
PostgreSQL database; which folder belongs to that stands in both, since each names what lies in the other.
"""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from leakcap.custody.private_files import private_folder, read_private, write_private
from leakcap.errors import InputError
from leakcap.server.dialects import Dialect, Speaking
from leakcap.server.sqlite_dialect import SqliteDialect

__all__ = ["Database"]

VERSION = 2
FILE, MARK, ROWS = "server.db", "server.id", "datasets"  # in the folder; a mark where the database is elsewhere
SCHEMA = (
    "CREATE TABLE keys (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE accounts (name TEXT PRIMARY KEY, role TEXT NOT NULL, hash TEXT NOT NULL, made REAL NOT NULL, "
    "closed REAL)",
    "CREATE TABLE signed_in (print BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts, began REAL NOT NULL, "
    "latest REAL NOT NULL)",
    "CREATE TABLE tokens (number INTEGER PRIMARY KEY AUTOINCREMENT, print BLOB UNIQUE NOT NULL, "
    "account TEXT NOT NULL REFERENCES accounts, label TEXT NOT NULL, datasets TEXT, stored_only INTEGER NOT NULL, "
    "made REAL NOT NULL, until REAL NOT NULL)",
    "CREATE TABLE datasets (name TEXT PRIMARY KEY, file TEXT NOT NULL, cap REAL NOT NULL, design TEXT NOT NULL, "
    "about TEXT NOT NULL, made REAL NOT NULL)",
    "CREATE TABLE may_ask (account TEXT NOT NULL REFERENCES accounts, dataset TEXT NOT NULL REFERENCES datasets, "
    "PRIMARY KEY (account, dataset))",
    "CREATE TABLE answers (id TEXT PRIMARY KEY, dataset TEXT NOT NULL, clock TEXT NOT NULL, question BLOB NOT NULL, "
    "number INTEGER, body BLOB NOT NULL, at REAL NOT NULL, UNIQUE (dataset, clock, question))",
    "CREATE TABLE requests (account TEXT NOT NULL, dataset TEXT NOT NULL, request BLOB NOT NULL, "
    "question BLOB NOT NULL, PRIMARY KEY (account, dataset, request))",
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, "
    "what TEXT NOT NULL, about TEXT NOT NULL, outcome TEXT NOT NULL)",
)
WORK = (
    "CREATE TABLE work (number TEXT PRIMARY KEY, who TEXT NOT NULL, what TEXT NOT NULL, about TEXT NOT NULL, "
    "began REAL NOT NULL, ended REAL, outcome TEXT NOT NULL, words TEXT NOT NULL, place TEXT NOT NULL)"
)
ADDED = {1: (WORK,)}  # what a file of an older version lacks, by that version


class Database:
    """The tables, wherever they are."""

    def __init__(self, home: Path, url: str | None = None) -> None:
        """Open them, or make them where there are none; `url` of a PostgreSQL database, None for a file."""
        self._dialect = _dialect(private_folder(home), url)
        with self.writing() as now:
            version = self._dialect.version(now)
            if not 0 <= version <= VERSION:
                raise InputError(
                    f"{home / FILE if url is None else 'the database'} was made by a later version of leakcap: start "
                    f"that version, or choose another {'folder with --home' if url is None else 'with --database'}"
                )
            if not version:
                version = 1
                self._dialect.change(now, SCHEMA, version)
            for old in range(version, VERSION):
                self._dialect.change(now, ADDED[old], old + 1)
            if url is not None:
                _refuse_other_folder(home, now)

    @property
    def at_hand(self) -> bool:
        """Whether a read ends at once: of a file, which no write of others holds up."""
        return self._dialect.at_hand

    def key(self, name: str) -> bytes:
        """A key of this server, made on first use."""
        with self.writing() as now:
            now.execute("INSERT INTO keys VALUES (?, ?) ON CONFLICT DO NOTHING", (name, secrets.token_bytes(32)))
            return bytes(now.execute("SELECT value FROM keys WHERE name = ?", (name,)).fetchone()[0])

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What a SELECT finds."""
        with self._dialect.reading() as now:
            return list(now.execute(statement, values).fetchall())

    def row(self, statement: str, *values: Any) -> Any:
        """The first row of it, or None."""
        with self._dialect.reading() as now:
            return now.execute(statement, values).fetchone()

    def writing(self) -> AbstractContextManager[Speaking]:
        """One transaction: it is on the disk when the block ends, or never was."""
        return self._dialect.writing()

    def close(self) -> None:
        """Let go of the file or the connections."""
        self._dialect.close()

    def write(self, statement: str, *values: Any) -> int:
        """One statement as a transaction; how many rows it changed."""
        with self.writing() as now:
            return int(now.execute(statement, values).rowcount)


def _dialect(home: Path, url: str | None) -> Dialect:
    """The one that was asked for, unless the folder is of a server that uses the other."""
    if url is None:
        if (home / MARK).exists():
            raise InputError(
                f"{home} is of a server that has its accounts in PostgreSQL: name its database with --database, or "
                "choose another folder with --home"
            )
        return SqliteDialect(home / FILE)
    if (home / FILE).exists():
        raise InputError(
            f"{home} is of a server that has its accounts in {FILE}: start it without --database, or choose another "
            "folder with --home"
        )
    from leakcap.server.postgres_dialect import PostgresDialect

    return PostgresDialect(url)


def _refuse_other_folder(home: Path, now: Speaking) -> None:
    """Neither is touched where they are of two servers: what one does not know is swept out of the other."""
    there, found = home / MARK, now.execute("SELECT value FROM keys WHERE name = 'folder'").fetchone()
    mark = read_private(there) if there.exists() else None
    if found is not None and mark == bytes(found[0]):
        return
    if found is not None or (home / ROWS).exists():
        raise InputError(
            f"{home} and this database are not of the same server: name what belongs together with --home and "
            "--database, or bring it back from a copy"
        )
    mark = secrets.token_hex(16).encode()
    write_private(there, mark)  # first: should the server end here, there is nothing yet in either
    now.execute("INSERT INTO keys VALUES ('folder', ?)", (mark,))
