"""The server's tables in one SQLite file of its folder, with a connection for every thread."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from leakcap.custody.private_files import write_private
from leakcap.custody.sqlite_file import CANNOT_WRITE
from leakcap.errors import InputError
from leakcap.server.dialects import Speaking

__all__ = ["SqliteDialect"]

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


class _Connection(sqlite3.Connection):
    """One that can be found again, to be closed."""


class SqliteDialect:
    """A file."""

    at_hand = True  # a write-ahead log: who reads waits for nobody

    def __init__(self, path: Path) -> None:
        """Make the file where there is none."""
        self.path = path
        self._threads = threading.local()
        self._open = weakref.WeakSet[_Connection]()
        if not path.exists():
            write_private(path, b"", exclusive=True)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        yield self._connection()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
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

    def version(self, now: Speaking) -> int:
        version, application = (
            int(now.execute(f"PRAGMA {one}").fetchone()[0]) for one in ("user_version", "application_id")
        )
        if application != APPLICATION and (version or application):
            raise InputError(
                f"{self.path} is no file of this server: move it away, or choose another folder with --home"
            )
        return version

    def change(self, now: Speaking, statements: Sequence[str], version: int) -> None:
        marks = f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {version}"
        for statement in (*statements, *marks):
            now.execute(statement)

    def close(self) -> None:
        """Close what every thread has open; whoever goes on opens it again."""
        for one in list(self._open):
            one.close()
        self._threads, self._open = threading.local(), weakref.WeakSet()

    def _connection(self) -> sqlite3.Connection:
        found: _Connection | None = getattr(self._threads, "connection", None)
        if found is None:
            # It is used in this thread, and closed in whichever ends the server.
            found = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, factory=_Connection, check_same_thread=False
            )
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
            self._open.add(found)
        return found
