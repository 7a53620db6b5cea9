"""The vault of a custodian folder: named values in one SQLite file, sealed where the `vault` extra is installed.

Each vault seals with a key of its own, derived from the user's key and from a salt in the file. A value is bound to
its name, and the file knows which values it holds: none can be exchanged, taken away or brought back unnoticed, short
of bringing back the whole file (which the `journal` sees if it was released). Without the extra the values can be read
by whoever has the file, but none can be written without the key: what a checkpoint holds is unpickled, so a file that
somebody else made is never opened.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from leakcap.custody import keys
from leakcap.custody.private_files import PART, private_folder, sweep_parts
from leakcap.custody.sealing import PLAIN_BEFORE, SEALED, Seal
from leakcap.custody.sqlite_file import SECOND, SqliteFile
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
    key: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    sealed: bool = True

    @classmethod
    def open(cls, folder: Path) -> Vault:
        """The vault in a folder, a new one if the folder is new or empty."""
        if os.name != "posix":
            raise InputError("custodian files need an owner and a mode: use Linux, macOS, or WSL on Windows")
        folder = folder.absolute()  # the same place for ever, wherever the process goes
        file = folder / FILE
        if not os.path.lexists(file):
            _refuse_earlier_versions(folder)
            if _holds_others(folder) and not file.exists():  # again: another process may have made the vault meanwhile
                raise InputError(f"{folder} holds other files: choose a new or an empty folder")
            _make(private_folder(folder))
        elif stat.S_IMODE(folder.stat().st_mode) & 0o077:  # moved, or brought back from a copy
            private_folder(folder)
        return cls.existing(folder)

    @classmethod
    def existing(cls, folder: Path) -> Vault:
        """The vault in a folder that has one; nothing is changed."""
        folder = folder.absolute()
        try:
            with _file(folder).reading() as database:
                header = database.execute("SELECT salt, titles FROM vault").fetchall()
        except (FileNotFoundError, NotADirectoryError):
            header = None
        if header is None:
            _refuse_earlier_versions(folder)
            raise InputError(f"{folder} holds no checkpoint")
        salt, titles = header[0] if len(header) == 1 else (None, b"")
        if isinstance(titles, bytes) and titles.startswith(PLAIN_BEFORE):
            raise InputError(
                f"{folder / FILE} is bound to no key, and may have been put there by somebody else: opening it would "
                "run what they wrote. If an earlier version of leakcap began it, finish it with that version"
            )
        if not isinstance(salt, bytes) or not isinstance(titles, bytes):
            raise InputError(f"{folder / FILE} is damaged: bring it back from a copy. {SECOND}")
        sealed = titles.startswith(SEALED)
        return cls(folder, keys.derived_key(salt, sealed), salt, sealed)

    @property
    def run(self) -> bytes:
        """Tells this run from all others, and so do its copies: by it the journal knows what was released."""
        return hashlib.sha256(b"leakcap run " + self.salt).digest()

    def write(self, name: str, content: bytes, exclusive: bool = False) -> None:
        """Store a value for good; FileExistsError if `exclusive` and there is one."""
        if len(content) > LARGEST:
            raise InputError(f"an answer of {len(content):,} bytes is too large for a checkpoint: leave checkpoint out")
        mark, title = self._mark(name), self._seal.closed(name.encode(), b"title")
        closed = self._seal.closed(content, title)
        try:
            with _file(self.folder).writing() as database:
                if exclusive and name in self._titles(database):
                    raise FileExistsError(name)
                self._retitle(database, database.execute(TITLE, (mark,)).fetchone(), title)
                database.execute("REPLACE INTO entries VALUES (?, ?, ?)", (mark, title, closed))
            return
        except FileNotFoundError:
            pass
        raise self._gone()

    def read(self, name: str) -> bytes | None:
        """What was written under a name, or None. Damage raises: half a value is never taken for a whole one."""
        return self._read(name, {})

    def names(self, start: str = "") -> list[str]:
        """Names that begin with `start`, in order."""
        try:
            with _file(self.folder).reading() as database:
                return sorted(name for name in self._titles(database) if name.startswith(start))
        except FileNotFoundError:
            pass
        raise self._gone()

    def contents(self, names: list[str]) -> Iterator[bytes]:
        """The values under names that there are, one after the other: together they may be larger than memory."""
        titles: dict[str, bytes] = {}
        for name in names:
            content = self._read(name, titles)
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
        return Seal(self.key, self.sealed)

    def _mark(self, name: str) -> bytes:
        return self._seal.mark(b"name " + name.encode())

    def _read(self, name: str, titles: dict[str, bytes]) -> bytes | None:
        """`titles` that are known to count; looked up, for all names, where this one's is not among them."""
        try:
            with _file(self.folder).reading() as database:
                row = database.execute(ROW, (self._mark(name),)).fetchone()
                if row is None or row[0] != titles.get(name):
                    titles.update(self._titles(database))
                if (row and row[0]) != titles.get(name):
                    raise self._damaged()
        except FileNotFoundError:
            row = ()
        if row == ():
            raise self._gone()
        return None if row is None else self._opened(name, *row)

    def _titles(self, database: sqlite3.Connection) -> dict[str, bytes]:
        """The title of every name, from a pass over the entries which sees if any was taken away or brought back.

        No name counts twice: a title beside itself would cancel in the sum, and with it any older one could come in.
        """
        total, known = NO_TITLES, {}
        for (title,) in database.execute("SELECT title FROM entries NOT INDEXED"):
            name = self._seal.opened(title, b"title")
            if name is None or name in known:
                raise self._damaged()
            known[name] = title
            total = _sum(total, self._title_mark(title))
        if total != self._total(database):
            raise self._damaged()
        return {name.decode(): title for name, title in known.items()}

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
            f"another key. Bring it back from a copy. {SECOND}"
        )

    def _gone(self) -> InputError:
        return InputError(f"{self.folder} holds no checkpoint any more: it was removed or forgotten meanwhile")


ROW = "SELECT title, content FROM entries WHERE mark = ?"
TITLE = "SELECT title FROM entries WHERE mark = ?"


def _file(folder: Path) -> SqliteFile:
    return SqliteFile(folder / FILE, SCHEMA)


def _make(folder: Path) -> None:
    salt = secrets.token_bytes(32)
    sealed = keys.can_seal()
    seal = Seal(keys.derived_key(salt, sealed), sealed)
    header = NOTE, salt, seal.closed(NO_TITLES, b"titles")
    with suppress(FileExistsError):  # another process was first: its file counts
        _file(folder).make([("INSERT INTO vault VALUES (?, ?, ?)", header)])


def _holds_others(folder: Path) -> bool:
    try:
        return any(not name.endswith(PART) for name in os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = error.strerror
    raise InputError(f"cannot read {folder} ({reason}): name a folder that is yours")


def _refuse_earlier_versions(folder: Path) -> None:
    if os.path.lexists(folder / EARLIER):
        raise InputError(
            f"{folder} holds a checkpoint of an earlier version of leakcap: finish it with the version that began it, "
            f"or begin in another folder. {SECOND}"
        )


def _sum(one: bytes, other: bytes) -> bytes:
    """Bit by bit without carry, so that adding a mark again takes it away."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(32, "big")
