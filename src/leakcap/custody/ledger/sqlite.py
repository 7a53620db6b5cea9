"""A ledger in one SQLite file: every write is a transaction that survives kill -9 and power cuts, or never was.

The connection stays open, in one process: after a fork the child opens its own. Writers queue at a lock of their own
(`queue`), which also keeps threads of one process apart. On a local disk it has a write-ahead log, one sync for an
answer; on a network disk, where machines cannot share that, it has a rollback journal. Which of them is decided when
the file is made, and never changed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leakcap.custody.ledger.disks import on_network
from leakcap.custody.ledger.migrations import steps_after
from leakcap.custody.ledger.queue import queued
from leakcap.custody.ledger.store import VERSION, Header
from leakcap.custody.ledger.tables import HEADER, STATEMENTS, SqlTransaction, header_of, header_values, statements
from leakcap.custody.locks import forks
from leakcap.custody.private_files import private_folder, refuse_strangers, write_private
from leakcap.custody.sqlite_file import CANNOT_WRITE
from leakcap.errors import InputError
from leakcap.ground.processes import refuse_copy, this_process

__all__ = ["SqliteStore"]

PATIENCE = 60.0  # seconds that a call waits for what does not queue, such as a copy being made
PRAGMAS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "synchronous = EXTRA",  # a commit is on the disk before anybody sees an answer, and stays one
    "fullfsync = ON",
    "secure_delete = ON",  # what is overwritten leaves no trace in free pages
    "temp_store = MEMORY",
    "wal_autocheckpoint = 2000",  # pages: 32 MB, so that clocks of many people are not written twice for every answer
)
PAGE = 16_384  # bytes: clocks of 100,000 people are 50 pages
LOGGED = b"\x02\x02"  # versions in the header of a file that has a write-ahead log (SQLite's file format, 1.3.3)
WORDS = {"whole": "INTEGER", "of_bytes": "BLOB"}
# Connections from before a fork are their parent's to close: SQLite must never see them closed here.
_inherited: list[sqlite3.Connection] = []


class SqliteStore:
    """Accounts in a file."""

    def __init__(self, path: Path) -> None:
        """`path` need not exist yet; nothing is opened before it is used."""
        self.path = Path(os.path.abspath(path))
        self._lock = threading.Lock()  # one thread at a time uses the connection
        self._open: sqlite3.Connection | None = None
        self._file: Any = None  # which one the connection is to
        self._header: Header | None = None  # of the ledger that was there first
        forks(self)

    @property
    def place(self) -> str:
        return str(self.path)

    def header(self) -> Header | None:
        if self._header is None and not os.path.lexists(self.path):
            return None
        with self._connected() as database:
            self._header = self._header_in(database)
            return self._header

    def make(self, header: Header) -> None:
        with suppress(FileExistsError):  # another process was first: its file counts
            made = sqlite3.connect(":memory:", isolation_level=None)
            made.execute(f"PRAGMA page_size = {PAGE}")
            for statement in statements(STATEMENTS, **WORDS):
                made.execute(statement)
            made.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", header_values(header))
            content = made.serialize()
            made.close()
            if not self.path.parent.exists():
                private_folder(self.path.parent)
            if not on_network(self.path.parent):
                content = content[:18] + LOGGED + content[20:]
            write_private(self.path, content, exclusive=True)

    def migrate(self, steps: Mapping[int, tuple[str, ...]]) -> None:
        with queued(self._queue), self._connected() as database, _transaction(database):
            header = self._header_in(database)
            todo = steps_after(header.version, steps)
            if todo is None:
                raise InputError(self._damaged())
            for statement in statements(tuple(todo), **WORDS):
                database.execute(statement)
            database.execute("UPDATE ledger SET version = ?", (VERSION,))
            self._refuse_other_schemas(database)
        self._header = None

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
        begun = this_process()

        def execute(statement: str, values: tuple[Any, ...]) -> Any:
            refuse_copy(begun)  # a child must not touch the connection
            return database.execute(statement, values)

        with queued(self._queue), self._connected() as database, _transaction(database):
            yield SqlTransaction(execute, account)

    def sign(self) -> tuple[sqlite3.Connection, int, int]:
        with self._connected() as database:
            # The first number tells of the writes of others, the second of those through this connection.
            (version,) = database.execute("PRAGMA data_version").fetchone()
            return database, version, database.total_changes

    def scrub(self) -> None:
        with queued(self._queue), self._connected() as database:
            busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise InputError(
                f"other programs are reading {self.path}, so that what was erased still lies beside it: end them, and "
                "open the ledger once more"
            )

    def close(self) -> None:
        with self._lock:
            self._close()

    def forked(self) -> None:
        """In a child: the connection is the parent's, and a thread that is not here may seem to hold the lock."""
        if self._open is not None:
            _inherited.append(self._open)
            self._closing.detach()
        self._open, self._lock = None, threading.Lock()

    @property
    def _queue(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")

    def _close(self) -> None:
        if self._open is not None:
            self._closing()
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
        if self._open is not None and self._file == own:
            return self._open
        self._close()
        if own is None:
            raise InputError(f"the ledger {self.path} is missing, or may not be read: bring it back from a copy")
        for end in ("", "-wal", "-shm", "-journal"):
            _refuse_stranger(self.path.with_name(self.path.name + end))
        # Never makes a file: one that was removed stays removed.
        database = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE, check_same_thread=False
        )
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        self._file, self._open = own, database
        self._closing = weakref.finalize(self, database.close)
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        for pragma in PRAGMAS:
            database.execute(f"PRAGMA {pragma}")
        header = self._header_in(database)
        if header.version == VERSION:
            self._refuse_other_schemas(database)
        if self._header is not None and header.digest != self._header.digest:
            raise InputError(
                f"another ledger was put in the place of {self.path}: bring back the one that was in use, or start "
                "again with the other"
            )
        if database.execute("PRAGMA journal_mode").fetchone() == ("wal",) and on_network(self.path):
            raise InputError(
                f"the ledger {self.path} was made on a local disk and lies on a network file system now, where it is "
                "not safe: bring it back to a local disk, or use a database with ledger='postgresql://...'"
            )

    def _header_in(self, database: sqlite3.Connection) -> Header:
        found = header_of(database.execute(HEADER).fetchall())
        if found is None:
            raise InputError(self._damaged())
        return found

    def _refuse_other_schemas(self, database: sqlite3.Connection) -> None:
        known = {row[0] for row in database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        if known != set(statements(STATEMENTS, **WORDS)):
            raise InputError(self._damaged())

    def _in_words(self, code: str) -> str:
        kind = "_".join(code.split("_")[:2])  # extended codes say more after the second word
        if kind in CANNOT_WRITE:
            return (
                f"cannot write the ledger {self.path} ({CANNOT_WRITE[kind]}): nothing was answered. Make room, or see "
                "that you may write it, its folder, and what lies beside it"
            )
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return f"other programs have been holding {self.path} for {PATIENCE:g} seconds: wait for them"
        if kind == "SQLITE_CONSTRAINT":
            return f"an entry of {self.path} was written twice, and the second refused: ask again"
        return self._damaged()

    def _damaged(self) -> str:
        return f"the ledger {self.path} is damaged, or no ledger: bring it back from a copy"


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    begun = this_process()
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        refuse_copy(begun)
        database.execute("COMMIT")
    finally:
        if begun == this_process() and database.in_transaction:
            database.execute("ROLLBACK")


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
