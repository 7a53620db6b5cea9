"""The journal of releases: which runs were released, and as what. It lies beside the key; once spent, always spent.

A checkpoint can be copied, or brought back from a backup, so it cannot know alone whether its run was released. The
journal does: a release is written down here before anybody sees it, under the salt that all copies of a checkpoint
share, together with a digest of what is released. Whichever copy comes first is the release; another gives nothing, or
the same value again. A run remembers the journal it was begun with, so that a journal which was removed is missed.

It is no secret: it holds digests of random salts and of released values. All entries are counted in one sum, so damage
is seen; whoever may write in the key's folder can still bring back an earlier journal as a whole.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.keys import key_file
from leakcap.custody.sqlite_file import SqliteFile
from leakcap.errors import InputError

__all__ = ["Journal", "journal_file"]

NOTE = "CUSTODIAN ONLY. Which runs leakcap has released: without this file none of them can be resumed."
SCHEMA = (
    "CREATE TABLE journal (note TEXT NOT NULL, name BLOB NOT NULL, total BLOB NOT NULL)",
    # About 80 bytes for a run, for ever: 4 MB after ten releases a day for fifteen years.
    "CREATE TABLE spent (run BLOB PRIMARY KEY, release BLOB NOT NULL) WITHOUT ROWID",
)
NOTHING_SPENT = bytes(32)
PLACE = "name a key file in a folder of your own that stays, with LEAKCAP_KEY"
OLDER = "What was released after that copy was made must not be released again"


def journal_file() -> Path:
    """Where the journal lies."""
    key = key_file().absolute()
    return key.with_name(key.name + ".journal")


@dataclass(frozen=True)
class Journal:
    """What was released with one key."""

    path: Path
    name: bytes  # drawn when it was made

    @classmethod
    def open(cls) -> Journal:
        """The journal beside the key, a new one if there is none."""
        path = journal_file()
        if not os.path.lexists(path):
            _make(path)
        with _reading(path) as database:
            return cls(path, _header(database, path)[0])

    @classmethod
    def named(cls, name: bytes) -> Journal:
        """The journal that a run was begun with; an InputError where it is not there."""
        path = journal_file()
        if not os.path.lexists(path):
            raise InputError(
                f"the journal {path} is missing: only it knows whether this run was released. Bring it back from a "
                f"copy, or set LEAKCAP_KEY to the key that this run was begun with. {OLDER}"
            )
        found = cls.open()
        if found.name != name:
            raise InputError(
                f"{path} is not the journal that this run was begun with, and does not know whether it was released: "
                f"set LEAKCAP_KEY to the key of that time, or bring that journal back from a copy. {OLDER}"
            )
        return found

    def entry(self, run: bytes) -> bytes | None:
        """The digest of what a run was released as, or None if it was not."""
        with _reading(self.path) as database:
            return self._entries(database).get(run)

    def enter(self, run: bytes, release: bytes) -> bytes:
        """Write down for good what a run is released as, unless something was; what is written down."""
        with _writing(self.path) as database:
            known = self._entries(database).get(run)
            if known is None:
                database.execute("INSERT INTO spent VALUES (?, ?)", (run, release))
                total = _sum(_header(database, self.path)[1], _digest(run, release))
                database.execute("UPDATE journal SET total = ?", (total,))
        return release if known is None else known

    def _entries(self, database: sqlite3.Connection) -> dict[bytes, bytes]:
        """All of them: one that was damaged or lost is missed."""
        name, total = _header(database, self.path)
        if name != self.name:
            raise InputError(_damaged(self.path))
        entries: dict[bytes, bytes] = dict(database.execute("SELECT run, release FROM spent"))
        if {bytes} != {bytes, *map(type, entries), *map(type, entries.values())}:
            raise InputError(_damaged(self.path))
        if _sum(NOTHING_SPENT, *(_digest(run, release) for run, release in entries.items())) != total:
            raise InputError(_damaged(self.path))
        return entries


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        first = NOTE, secrets.token_bytes(32), NOTHING_SPENT
        with suppress(FileExistsError):  # another process was first: its journal counts
            _file(path).make([("INSERT INTO journal VALUES (?, ?, ?)", first)])
        return
    raise InputError(f"cannot write the journal {path} ({reason}): {PLACE}")


def _file(path: Path) -> SqliteFile:
    return SqliteFile(path, SCHEMA, otherwise=PLACE, after_damage=OLDER)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with _file(path).reading() as database:
            yield database
        return
    except (FileNotFoundError, NotADirectoryError):
        pass
    raise InputError(_gone(path))


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with _file(path).writing() as database:
            yield database
        return
    except (FileNotFoundError, NotADirectoryError):
        pass
    raise InputError(_gone(path))


def _header(database: sqlite3.Connection, path: Path) -> tuple[bytes, bytes]:
    """Name and total."""
    rows = database.execute("SELECT name, total FROM journal").fetchall()
    if len(rows) != 1 or not all(isinstance(part, bytes) and len(part) == 32 for part in rows[0]):
        raise InputError(_damaged(path))
    return rows[0][0], rows[0][1]


def _digest(run: bytes, release: bytes) -> bytes:
    return hashlib.sha256(len(run).to_bytes(8, "big") + run + release).digest()


def _sum(*digests: bytes) -> bytes:
    """Bit by bit: the order in which entries came does not matter."""
    total = 0
    for digest in digests:
        total ^= int.from_bytes(digest, "big")
    return total.to_bytes(32, "big")


def _damaged(path: Path) -> str:
    return f"the journal {path} is damaged: bring it back from a copy. {OLDER}"


def _gone(path: Path) -> str:
    return f"the journal {path} was removed meanwhile: bring it back from a copy. {OLDER}"
