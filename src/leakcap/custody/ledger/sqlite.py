"""A ledger in one SQLite file: every write is a transaction that survives kill -9 and power cuts, or never was.

The connection stays open, in one process: after a fork the child opens its own. Writers queue at a lock of their own
(`queue`), which also keeps threads of one process apart.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leakcap.custody.ledger.queue import queued
from leakcap.custody.ledger.store import VERSION, Header
from leakcap.custody.ledger.tables import STATEMENTS, SqlTransaction, header_of, header_values
from leakcap.custody.private_files import private_folder, refuse_strangers, write_private
from leakcap.errors import InputError

__all__ = ["SqliteStore"]

PATIENCE = 60.0  # seconds that a call waits for what does not queue, such as a copy being made
PRAGMAS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "synchronous = FULL",  # a commit is on the disk before anybody sees an answer
    "fullfsync = ON",
    "secure_delete = ON",  # what is overwritten leaves no trace in free pages
    "temp_store = MEMORY",
)
CANNOT_WRITE = {
    "SQLITE_FULL": "No space left on device",
    "SQLITE_READONLY": "Read-only file or folder",
    "SQLITE_IOERR": "Input/output error",
    "SQLITE_CANTOPEN": "Permission denied, or it is gone",
    "SQLITE_PERM": "Permission denied",
}


class SqliteStore:
    """Accounts in a file."""

    def __init__(self, path: Path) -> None:
        """`path` need not exist yet; nothing is opened before it is used."""
        self.path = path.absolute()
        self._lock = threading.Lock()  # one thread at a time uses the connection
        self._open: tuple[int, sqlite3.Connection] | None = None
        self._place: Any = None  # which file it was opened as

    @property
    def place(self) -> str:
        return str(self.path)

    def header(self) -> Header | None:
        if not os.path.lexists(self.path):
            return None
        with self._connected() as database:
            rows = database.execute("SELECT version, name, salt, sealed FROM ledger").fetchall()
        found = header_of(rows)
        if found is None:
            raise InputError(self._damaged())
        return found

    def make(self, header: Header) -> None:
        with suppress(FileExistsError):  # another process was first: its file counts
            made = sqlite3.connect(":memory:", isolation_level=None)
            for statement in _schema():
                made.execute(statement)
            made.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", header_values(header))
            content = made.serialize()
            made.close()
            if not self.path.parent.exists():
                private_folder(self.path.parent)
            write_private(self.path, content, exclusive=True)

    def accounts(self) -> list[bytes]:
        with self._connected() as database:
            return [account for (account,) in database.execute("SELECT account FROM accounts ORDER BY rowid")]

    @contextmanager
    def reading(self, account: bytes) -> Iterator[SqlTransaction]:
        with self._connected() as database:
            database.execute("BEGIN")
            try:
                yield SqlTransaction(database.execute, account)
            finally:
                database.execute("ROLLBACK")

    @contextmanager
    def writing(self, account: bytes) -> Iterator[SqlTransaction]:
        with queued(self.path.with_name(self.path.name + ".lock")), self._connected() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield SqlTransaction(database.execute, account)
                database.execute("COMMIT")
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            if self._open is not None and self._open[0] == os.getpid():
                self._open[1].close()
            self._open = None

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._connection()
            return
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes a damaged schema
            message = self._in_words(getattr(error, "sqlite_errorname", ""))
        raise InputError(message)

    def _connection(self) -> sqlite3.Connection:
        """That of this process, opened if need be: the file may have been put in another's place meanwhile."""
        own = _identity(self.path)
        if self._open is not None and self._open[0] == os.getpid() and self._place == own:
            return self._open[1]
        # One from before a fork is the parent's to close; so its object is kept, and never used again.
        self._kept = self._open
        if own is None:
            raise InputError(f"the ledger {self.path} is missing: bring it back from a copy")
        for end in ("", "-wal", "-shm", "-journal"):
            _refuse_stranger(self.path.with_name(self.path.name + end))
        # Never makes a file: one that was removed stays removed.
        database = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE, check_same_thread=False
        )
        for pragma in PRAGMAS:
            database.execute(f"PRAGMA {pragma}")
        self._refuse_other_schemas(database)
        if database.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise InputError(f"{self.path} lies on a disk that a ledger cannot use: choose a folder on a local disk")
        self._place, self._open = own, (os.getpid(), database)
        return database

    def _refuse_other_schemas(self, database: sqlite3.Connection) -> None:
        known = {row[0] for row in database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        if known != set(_schema()):
            version = None
            with suppress(sqlite3.Error):
                version = database.execute("SELECT version FROM ledger").fetchone()
            if version and isinstance(version[0], int) and version[0] > VERSION:
                raise InputError(
                    f"{self.path} was written by a later version of leakcap: use that, or a ledger of its own"
                )
            raise InputError(self._damaged())

    def _in_words(self, code: str) -> str:
        kind = "_".join(code.split("_")[:2])  # extended codes say more after the second word
        if kind in CANNOT_WRITE:
            return (
                f"cannot write the ledger {self.path} ({CANNOT_WRITE[kind]}): nothing was answered. Make room, or see "
                "that you may write there"
            )
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return f"other programs have been holding {self.path} for {PATIENCE:g} seconds: wait for them"
        return self._damaged()

    def _damaged(self) -> str:
        return f"the ledger {self.path} is damaged, or no ledger: bring it back from a copy"


def _schema() -> list[str]:
    return [statement.replace("BYTES", "BLOB").replace("WHOLE", "INTEGER") for statement in STATEMENTS]


def _identity(path: Path) -> Any:
    try:
        state = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _refuse_stranger(path: Path) -> None:
    try:
        state = os.lstat(path)
    except OSError:
        return
    refuse_strangers(path, state)
