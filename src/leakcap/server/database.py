"""The server's own file: accounts, tokens, registered data sets, stored answers and the audit log.

No password, no token and no question is in it as text: of these it holds hashes, and of questions prints that are made
with the server's key. What was spent stands in the ledger, never here.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakcap.custody.private_files import private_folder, write_private
from leakcap.custody.sqlite_file import CANNOT_WRITE
from leakcap.errors import InputError

__all__ = ["Database"]

VERSION = 2
APPLICATION = 0x6C63_7372  # by which such a file is known
PATIENCE = 30.0  # seconds that a call waits for the writes of others
PRAGMAS = (
    "trusted_schema = OFF",
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",
    "foreign_keys = ON",
    "temp_store = MEMORY",
)
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
    """One SQLite file in the server's folder, with a connection for every thread."""

    def __init__(self, home: Path) -> None:
        """Open the file, or make it where there is none."""
        self.path = private_folder(home) / "server.db"
        self._threads = threading.local()
        if not self.path.exists():
            write_private(self.path, b"", exclusive=True)
        with self.writing() as now:
            version, application = (
                now.execute(f"PRAGMA {one}").fetchone()[0] for one in ("user_version", "application_id")
            )
            if not version and not application:
                version, application = 1, APPLICATION
                for statement in (*SCHEMA, f"PRAGMA application_id = {APPLICATION}"):
                    now.execute(statement)
            if application != APPLICATION:
                raise InputError(
                    f"{self.path} is no file of this server: move it away, or choose another folder with --home"
                )
            if not 0 < version <= VERSION:
                raise InputError(
                    f"{self.path} was made by a later version of leakcap: start that version, or choose another folder "
                    "with --home"
                )
            for old in range(version, VERSION):
                for statement in (*ADDED[old], f"PRAGMA user_version = {old + 1}"):
                    now.execute(statement)

    def key(self, name: str) -> bytes:
        """A key of this server, made on first use."""
        with self.writing() as now:
            now.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (name, secrets.token_bytes(32)))
            return bytes(now.execute("SELECT value FROM keys WHERE name = ?", (name,)).fetchone()[0])

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What a SELECT finds."""
        return self._connection().execute(statement, values).fetchall()

    def row(self, statement: str, *values: Any) -> Any:
        """The first row of it, or None."""
        return self._connection().execute(statement, values).fetchone()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: it is on the disk when the block ends, or never was."""
        connection = self._connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            reason = CANNOT_WRITE.get((error.sqlite_errorname or "").split("_IOERR_")[0])
        else:
            return
        raise InputError(
            f"the server's file cannot be written ({reason or 'it is damaged, or in use'}): make room in its folder, "
            "or bring it back from a copy"
        )

    def write(self, statement: str, *values: Any) -> int:
        """One statement as a transaction; how many rows it changed."""
        with self.writing() as now:
            return now.execute(statement, values).rowcount

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if found is None:
            found = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            try:
                for pragma in PRAGMAS:
                    found.execute(f"PRAGMA {pragma}")
            except sqlite3.DatabaseError:
                found.close()
                found = None
            if found is None:
                raise InputError(
                    f"{self.path} is damaged or no file of this server: bring it back from a copy, or choose another "
                    "folder with --home"
                )
            self._threads.connection = found
        return found
