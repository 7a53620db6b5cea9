"""The journal that earlier versions kept beside the key, in a file of its own: read once, and put aside.

It holds which runs were released, by digests, and a sum of all of them by which damage is seen.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.keys import key_file
from leakcap.custody.sqlite_file import SqliteFile
from leakcap.errors import InputError

__all__ = ["OldJournal", "old_journal_file"]

SCHEMA = (
    "CREATE TABLE journal (note TEXT NOT NULL, name BLOB NOT NULL, total BLOB NOT NULL)",
    "CREATE TABLE spent (run BLOB PRIMARY KEY, release BLOB NOT NULL) WITHOUT ROWID",
)
OLDER = "What was released after that copy was made must not be released again"
PUT_ASIDE = ".imported"  # ends its name afterwards


def old_journal_file() -> Path:
    """Where it lies, if there is one."""
    key = key_file().absolute()
    return key.with_name(key.name + ".journal")


@dataclass(frozen=True)
class OldJournal:
    """What it holds."""

    name: bytes
    spent: dict[bytes, bytes]  # digests of what was released, by run

    @classmethod
    def found(cls) -> OldJournal | None:
        """The one beside the key, or None; an InputError where it is damaged."""
        path = old_journal_file()
        if not os.path.lexists(path):
            return None
        try:
            with SqliteFile(path, SCHEMA, after_damage=OLDER).reading() as database:
                headers = database.execute("SELECT name, total FROM journal").fetchall()
                spent = dict(database.execute("SELECT run, release FROM spent"))
        except (FileNotFoundError, NotADirectoryError):
            return None  # another process has put it aside
        parts = [part for header in headers for part in header] + [*spent, *spent.values()]
        whole = len(headers) == 1 and all(isinstance(part, bytes) for part in parts)
        if not whole or _sum(spent) != headers[0][1]:
            raise InputError(f"the journal {path} is damaged: bring it back from a copy. {OLDER}")
        return cls(headers[0][0], spent)

    @staticmethod
    def put_aside() -> None:
        """Once all that it holds is stored elsewhere for good."""
        path = old_journal_file()
        with suppress(FileNotFoundError):
            os.replace(path, path.with_name(path.name + PUT_ASIDE))


def _sum(spent: dict[bytes, bytes]) -> bytes:
    """Bit by bit: the order in which entries came does not matter."""
    total = 0
    for run, release in spent.items():
        total ^= int.from_bytes(hashlib.sha256(len(run).to_bytes(8, "big") + run + release).digest(), "big")
    return total.to_bytes(32, "big")
