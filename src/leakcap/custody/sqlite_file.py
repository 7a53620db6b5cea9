"""One SQLite file of the custodian's: every write is a transaction that survives kill -9 and power cuts, or never was.

A connection lives for one call, in one thread of one process: nothing is shared over a fork, and processes wait for
each other's writes. The rollback journal works on network file systems, where a write-ahead log would not.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.private_files import refuse_strangers, write_private
from leakcap.errors import InputError

__all__ = ["CANNOT_WRITE", "SECOND", "SqliteFile"]

# What whoever is told to start again must know.
SECOND = "If it was released, keep that value: a run in another folder makes a second release, with a secret of its own"

PATIENCE = 60.0  # seconds that a call waits for the writes of others
PRAGMAS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "journal_mode = DELETE",
    "synchronous = EXTRA",  # FULL, and the folder is flushed when the journal goes: then a commit stays a commit
    "fullfsync = ON",
    "secure_delete = ON",  # what is overwritten leaves no trace in free pages
    "temp_store = MEMORY",
)
BESIDE = ("-journal", "-wal", "-shm")  # what SQLite may put beside a file; the last two are not ours
CANNOT_WRITE = {
    "SQLITE_FULL": "No space left on device",
    "SQLITE_READONLY": "Read-only file or folder",
    "SQLITE_IOERR": "Input/output error",
    "SQLITE_CANTOPEN": "Permission denied, or it is gone",
    "SQLITE_PERM": "Permission denied",
}


@dataclass(frozen=True)
class SqliteFile:
    """A file with a given schema; anything else in its place is refused."""

    path: Path
    schema: tuple[str, ...]  # the statements that make it
    otherwise: str = "choose a folder on a local disk of your own"  # what to do where it cannot be written
    after_damage: str = SECOND

    def make(self, first: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Put the file in place with its first rows, whole; FileExistsError if it is there."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            for statement in self.schema:
                database.execute(statement)
            for statement, values in first:
                database.execute(statement, values)
            content = database.serialize()
        write_private(self.path, content, exclusive=True)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file; FileNotFoundError if there is none."""
        with self._connected() as database:
            database.execute("BEGIN")
            self._refuse_other_schemas(database)
            yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction: all of it is stored for good on the way out, or nothing of it."""
        with self._connected() as database:
            database.execute("BEGIN IMMEDIATE")
            self._refuse_other_schemas(database)
            yield database
            database.execute("COMMIT")

    def remove(self) -> None:
        """Remove the file, and then what SQLite has left beside it."""
        for path in (self.path, *self._beside()):
            with suppress(FileNotFoundError):
                path.unlink()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        self._refuse_strangers()
        try:
            # Never makes a file: one that was forgotten meanwhile stays forgotten.
            place = f"{self.path.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(place, uri=True, isolation_level=None, timeout=PATIENCE)) as database:
                database.text_factory = bytes
                for pragma in PRAGMAS:
                    database.execute(f"PRAGMA {pragma}")
                yield database
            return
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes a damaged schema
            message = self._in_words(getattr(error, "sqlite_errorname", ""))
        raise InputError(message)

    def _in_words(self, code: str) -> str:
        kind = "_".join(code.split("_")[:2])  # extended codes say more after the second word
        if kind in CANNOT_WRITE:
            reason = CANNOT_WRITE[kind]
            return f"cannot write {self.path} ({reason}): make room, or {self.otherwise}"
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return f"other processes are writing to {self.path} all the time: wait for them"
        return self._damaged()

    def _damaged(self) -> str:
        return f"{self.path} is damaged or no file of leakcap: bring it back from a copy. {self.after_damage}"

    def _refuse_other_schemas(self, database: sqlite3.Connection) -> None:
        known = database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        if known != [(statement.encode(),) for statement in self.schema]:
            raise InputError(self._damaged())

    def _refuse_strangers(self) -> None:
        """Before SQLite opens anything. By name: closing a handle of our own would drop the locks of this process."""
        _refuse_stranger(self.path)
        for path in self._beside():
            with suppress(FileNotFoundError):
                _refuse_stranger(path)

    def _beside(self) -> list[Path]:
        return [self.path.with_name(self.path.name + end) for end in BESIDE]


def _refuse_stranger(path: Path) -> None:
    try:
        state = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        reason = error.strerror
    else:
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{path} may have been written by somebody else: it is a link, or no file")
        refuse_strangers(path, state)
        return
    raise InputError(f"cannot read {path} ({reason}): name a folder that is yours")
