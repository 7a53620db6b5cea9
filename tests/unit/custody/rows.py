"""What somebody with an editor for SQLite files, and a disk that fails, can do to a vault."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import sqlite_file
from leakcap.custody.vault import FILE, Vault

SECRET = b"who took part: 0110100110010110"
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to change owners")
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(lc.InputError) as caught:
        call()
    assert SECRET.decode() not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def edit(made: Vault, statement: str, *values: Any) -> list[Any]:
    """Run a statement of one's own on the file."""
    with closing(sqlite3.connect(made.folder / FILE)) as database, database:
        return database.execute(statement, values).fetchall()


def row(made: Vault, name: str) -> tuple[bytes, bytes] | None:
    """Title and content as they are stored, or None."""
    found = edit(made, "SELECT title, content FROM entries WHERE mark = ?", made._mark(name))
    return found[0] if found else None


def stored(made: Vault, name: str) -> bytes:
    """The content as it is stored."""
    found = row(made, name)
    assert found is not None
    return found[1]


def put(made: Vault, name: str, content: bytes) -> None:
    """Other bytes in the place of what is stored."""
    edit(made, "UPDATE entries SET content = ? WHERE mark = ?", content, made._mark(name))


def take_away(made: Vault, name: str) -> None:
    """A row less, by hand."""
    edit(made, "DELETE FROM entries WHERE mark = ?", made._mark(name))


def never_written(made: Vault, name: str) -> None:
    """As if the run had not come so far: the vault knows that the row is not there."""
    found = row(made, name)
    assert found is not None
    (old,) = edit(made, "SELECT titles FROM vault")[0]
    total = made._seal.opened(old, b"titles")
    assert total is not None
    less = bytes(a ^ b for a, b in zip(total, made._title_mark(found[0]), strict=True))
    edit(made, "UPDATE vault SET titles = ?", made._seal.closed(less, b"titles"))
    take_away(made, name)


def failing(patch: Any, statement: str, code: str = "SQLITE_FULL", after: int = 0) -> None:
    """From the given number on, a statement fails as it does on a full disk."""
    counted = [0]

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> Any:  # type: ignore[override]
            if sql.startswith(statement):
                counted[0] += 1
                if counted[0] > after:
                    error = sqlite3.OperationalError("it fails")
                    error.sqlite_errorname = code  # type: ignore[misc]
                    raise error
            return super().execute(sql, *values)

    real = sqlite3.connect
    patch.setattr(sqlite_file.sqlite3, "connect", lambda *a, **k: real(*a, factory=Failing, **k))


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of a user without rights, which this process is for the moment; of this one, where it has none."""
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if os.geteuid() == 0:
            os.chown(folder, nobody, nobody)
        before = os.geteuid()
        os.seteuid(nobody)
        try:
            yield folder
        finally:
            os.seteuid(before)
