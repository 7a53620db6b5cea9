"""Move a server's tables from the file in its folder into a PostgreSQL database. Its ledger stays where it is.

All of them are there after one transaction, or none is. The file is put aside, never removed; what was begun and not
ended is gone on with by the same command.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from leakcap.custody.private_files import read_private, write_private
from leakcap.errors import InputError
from leakcap.server.database import FILE, MARK, SCHEMA, VERSION, WORK, Database
from leakcap.server.dialects import Speaking
from leakcap.server.postgres_dialect import PostgresDialect

__all__ = ["MOVED", "move_into"]

NEXT, MOVED = "server.id.next", f"{FILE}.moved"
TABLES = tuple(re.findall(r"^CREATE TABLE (\w+)", "\n".join((*SCHEMA, WORK)), re.MULTILINE))
NUMBERED = ("tokens", "events")  # in which numbers go on from the largest
RUNNING = "the server of this folder is running, or its file is in use: stop it, then move it"


def move_into(home: Path, url: str) -> int:
    """Move the tables, and say how many rows they have; 0 where they were moved before.

    Raises:
        InputError: there is nothing to move, the server is running, or the database has a server's tables already.
    """
    if (home / MARK).exists() and not (home / FILE).exists():
        return 0
    if not (home / FILE).exists() and not (home / NEXT).exists():
        raise InputError(f"{home} has no {FILE} to be moved: name the server's folder with --home")
    dialect, rows = PostgresDialect(url), 0
    if (home / FILE).exists() and not _there(dialect, home):
        Database(home).close()  # brings an older file up to date, and says where it is no file of a server
        mark = secrets.token_hex(16).encode()
        (home / NEXT).unlink(missing_ok=True)
        write_private(home / NEXT, mark)  # first: by it what was begun is known
        with _alone(home / FILE) as file, dialect.writing() as now:
            if dialect.version(now):
                raise InputError("this database has a server's tables already: name an empty one with --database")
            dialect.change(now, (*SCHEMA, WORK), VERSION)
            rows = sum(_copied(file, now, table) for table in TABLES)
            now.execute("INSERT INTO keys VALUES ('folder', ?)", (mark,))
    if not _there(dialect, home):
        raise InputError("this database is not the one that the folder was being moved into: name that one")
    if (home / FILE).exists():
        (home / FILE).rename(home / MOVED)
    (home / NEXT).rename(home / MARK)
    return rows


def _there(dialect: PostgresDialect, home: Path) -> bool:
    """Whether a move that was begun has reached the database."""
    if not (home / NEXT).exists():
        return False
    with dialect.reading() as now:
        if not dialect.version(now):
            return False
        found = now.execute("SELECT value FROM keys WHERE name = 'folder'").fetchone()
    return found is not None and bytes(found[0]) == read_private(home / NEXT)


@contextmanager
def _alone(path: Path) -> Iterator[sqlite3.Connection]:
    """The file with all that was written beside it, and nobody else at it."""
    with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as file:
        alone = False
        with suppress(sqlite3.OperationalError):
            alone = file.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
            file.execute("BEGIN EXCLUSIVE")
        if not alone or not file.in_transaction:
            raise InputError(RUNNING)
        yield file
        file.execute("ROLLBACK")


def _copied(file: sqlite3.Connection, now: Speaking, table: str) -> int:
    """Rows of a table, as they are."""
    rows = file.execute(f"SELECT * FROM {table}").fetchall()
    for row in rows:
        now.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    if rows and table in NUMBERED:
        now.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), max(number)) FROM {table}")
    return len(rows)
