"""The vault of a custodian folder: named values in one SQLite file, sealed where the `vault` extra is installed.

Each vault seals with a key of its own, derived from the user's key and from a salt in the file. A value is bound to
its name, and the file knows which values it holds: none can be exchanged, taken away or brought back unnoticed, short
of bringing back the whole file.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from leakcap.custody import keys
from leakcap.custody.private_files import PART, private_folder, sweep_parts
from leakcap.custody.sealing import Seal
from leakcap.custody.sqlite_file import SqliteFile
from leakcap.errors import InputError

__all__ = ["FILE", "LARGEST", "LOCK", "Vault"]

FILE, LOCK = "checkpoint.sqlite", "lock"
EARLIER = "vault.json"  # in a folder of an earlier version, which had a file for every value
NOTE = "CUSTODIAN ONLY. What lies here tells who may have taken part: do not publish, share or log it."
LARGEST = 900_000_000  # bytes of one value; SQLite takes 10^9
SCHEMA = (
    # `titles` is the sealed sum of the marks of all titles.
    "CREATE TABLE vault (note TEXT NOT NULL, salt BLOB, titles BLOB NOT NULL)",
    # `mark` finds a name without telling it, `title` is the sealed name, and `content` is bound to its title.
    "CREATE TABLE entries (mark BLOB PRIMARY KEY, title BLOB NOT NULL, content BLOB NOT NULL)",
)
NO_TITLES = bytes(32)


@dataclass(frozen=True)
class Vault:
    """The values of one custodian folder, by name."""

    folder: Path
    key: bytes | None = field(repr=False)  # None: not sealed, guarded against damage only

    @classmethod
    def open(cls, folder: Path) -> Vault:
        """The vault in a folder, a new one if the folder is new or empty."""
        if os.name != "posix":
            raise InputError("custodian files need an owner and a mode: use Linux, macOS, or WSL on Windows")
        file = folder / FILE
        if not os.path.lexists(file):
            _refuse_earlier_versions(folder)
            others = folder.is_dir() and any(not path.name.endswith(PART) for path in folder.iterdir())
            if others and not file.exists():  # looked up again: another process may have made the vault meanwhile
                raise InputError(f"{folder} holds other files: choose a new or an empty folder")
            _make(private_folder(folder))
        return cls.existing(folder)

    @classmethod
    def existing(cls, folder: Path) -> Vault:
        """The vault in a folder that has one; nothing is changed."""
        try:
            with _file(folder).reading() as database:
                header = database.execute("SELECT salt FROM vault").fetchall()
        except (FileNotFoundError, NotADirectoryError):
            header = None
        if header is None:
            _refuse_earlier_versions(folder)
            raise InputError(f"{folder} holds no checkpoint")
        salt = header[0][0] if len(header) == 1 else 0
        if not (salt is None or isinstance(salt, bytes)):
            raise InputError(f"{folder / FILE} is damaged: bring it back from a copy, or start again elsewhere")
        return cls(folder, None if salt is None else keys.derived_key(salt))

    def write(self, name: str, content: bytes, exclusive: bool = False) -> None:
        """Store a value for good; FileExistsError if `exclusive` and there is one."""
        if len(content) > LARGEST:
            raise InputError(f"an answer of {len(content):,} bytes is too large for a checkpoint: leave checkpoint out")
        mark, title = self._mark(name), self._seal.closed(name.encode(), b"title")
        closed = self._seal.closed(content, title)
        try:
            with _file(self.folder).writing() as database:
                if exclusive and name in self._names(database):
                    raise FileExistsError(name)
                self._retitle(database, database.execute(TITLE, (mark,)).fetchone(), title)
                database.execute("REPLACE INTO entries VALUES (?, ?, ?)", (mark, title, closed))
            return
        except FileNotFoundError:
            pass
        raise self._gone()

    def read(self, name: str) -> bytes | None:
        """What was written under a name, or None. Damage raises: half a value is never taken for a whole one."""
        try:
            with _file(self.folder).reading() as database:
                row = database.execute(ROW, (self._mark(name),)).fetchone()
                if row is None and name in self._names(database):
                    raise self._damaged()
        except FileNotFoundError:
            row = ()
        if row == ():
            raise self._gone()
        return None if row is None else self._opened(name, *row)

    def names(self, start: str = "") -> list[str]:
        """Names that begin with `start`, in order."""
        try:
            with _file(self.folder).reading() as database:
                return sorted(name for name in self._names(database) if name.startswith(start))
        except FileNotFoundError:
            pass
        raise self._gone()

    def contents(self, names: list[str]) -> Iterator[bytes]:
        """The values under names that there are, one after the other: together they may be larger than memory."""
        for name in names:
            content = self.read(name)
            if content is None:
                raise self._damaged()
            yield content

    def sweep(self) -> None:
        """Remove what processes that were killed left half-written."""
        sweep_parts(self.folder)

    def forget(self) -> None:
        """Remove all that leakcap has put here, the salt first: without it sealed values cannot be opened any more."""
        _file(self.folder).remove()
        for path in (self.folder / LOCK, *self.folder.glob(f".*{PART}")):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files stay, and so does the folder
            self.folder.rmdir()

    @property
    def _seal(self) -> Seal:
        return Seal(self.key)

    def _mark(self, name: str) -> bytes:
        return self._seal.mark(b"name " + name.encode())

    def _names(self, database: sqlite3.Connection) -> list[str]:
        """All names, from a pass over the entries which sees if any was taken away, added or brought back."""
        titles = [title for (title,) in database.execute("SELECT title FROM entries NOT INDEXED")]
        names = [self._seal.opened(title, b"title") for title in titles]
        total = NO_TITLES
        for title in titles:
            total = _sum(total, self._title_mark(title))
        if None in names or total != self._total(database):
            raise self._damaged()
        return [name.decode() for name in names if name is not None]

    def _retitle(self, database: sqlite3.Connection, before: tuple[bytes] | None, title: bytes) -> None:
        """Count a title, and no longer the one before."""
        total = _sum(self._total(database), self._title_mark(title))
        if before:
            total = _sum(total, self._title_mark(before[0]))
        database.execute("UPDATE vault SET titles = ?", (self._seal.closed(total, b"titles"),))

    def _total(self, database: sqlite3.Connection) -> bytes:
        headers = database.execute("SELECT titles FROM vault").fetchall()
        total = self._seal.opened(headers[0][0], b"titles") if len(headers) == 1 else None
        if total is None:
            raise self._damaged()
        return total

    def _title_mark(self, title: object) -> bytes:
        if not isinstance(title, bytes):
            raise self._damaged()
        return self._seal.mark(b"title " + title)

    def _opened(self, name: str, title: object, stored: object) -> bytes:
        if self._seal.opened(title, b"title") == name.encode() and isinstance(title, bytes):
            content = self._seal.opened(stored, title)
            if content is not None:
                return content
        raise self._damaged()

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.folder / FILE} does not open with this key: it was damaged, changed by hand, or sealed with "
            "another key. Bring it back from a copy, or start again elsewhere"
        )

    def _gone(self) -> InputError:
        return InputError(f"{self.folder} holds no checkpoint any more: it was removed or forgotten meanwhile")


ROW = "SELECT title, content FROM entries WHERE mark = ?"
TITLE = "SELECT title FROM entries WHERE mark = ?"


def _file(folder: Path) -> SqliteFile:
    return SqliteFile(folder / FILE, SCHEMA)


def _make(folder: Path) -> None:
    salt = secrets.token_bytes(32) if keys.can_seal() else None
    seal = Seal(None if salt is None else keys.derived_key(salt))
    header = NOTE, salt, seal.closed(NO_TITLES, b"titles")
    with suppress(FileExistsError):  # another process was first: its file counts
        _file(folder).make([("INSERT INTO vault VALUES (?, ?, ?)", header)])


def _refuse_earlier_versions(folder: Path) -> None:
    if (folder / EARLIER).exists():
        raise InputError(
            f"{folder} holds a checkpoint of an earlier version of leakcap: finish it with the version that began it, "
            "or begin in another folder"
        )


def _sum(one: bytes, other: bytes) -> bytes:
    """Bit by bit without carry, so that adding a mark again takes it away."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(32, "big")
