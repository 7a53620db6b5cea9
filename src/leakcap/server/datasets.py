"""Registered data sets: what analysts may know of each, and the sessions in which they ask."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakcap.caps import Cap, membership, pool_membership
from leakcap.custody.ledger import Account, Book, budgets, open_book
from leakcap.custody.private_files import private_folder
from leakcap.errors import InputError
from leakcap.server.accounts import checked_label
from leakcap.server.database import Database
from leakcap.server.refusals import HEAVY, NOT_THERE, Refusal
from leakcap.server.settings import ServerSettings
from leakcap.sessions.session import Session
from leakcap.sql.catalog import Catalog
from leakcap.sql.engine import limited
from leakcap.sql.processes import SpareProcesses
from leakcap.sql.register import register

__all__ = ["Datasets", "RegisteredSet", "schema_of"]

MOST_SESSIONS = 64  # that stay open; others are opened again when they are needed
DESIGNS = ("bits", "pool")
LEFT = 3600.0  # seconds after which a file that belongs to no data set is not being made any more


@dataclass(frozen=True)
class RegisteredSet:
    """A data set of the server."""

    name: str
    catalog: Catalog
    success: float  # the cap: the best attacker's success at guessing about one person
    design: str  # bits: does this person take part; pool: is this person in the data at all
    about: str

    @property
    def cap(self) -> Cap:
        return pool_membership(self.success) if self.design == "pool" else membership(self.success)


@dataclass(eq=False)
class _OpenSession:
    session: Session
    lock: threading.Lock
    waiting: int = 0


class Datasets:
    """All data sets of a server, and the sessions that are open."""

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self.database, self.settings = database, settings
        self._sets: dict[str, RegisteredSet] = {}
        self._held: OrderedDict[tuple[str, str], _OpenSession] = OrderedDict()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(settings.limits.at_once)
        self._books = threading.local()
        self.spare = SpareProcesses(settings.limits.ahead)

    @property
    def folder(self) -> Path:
        return self.settings.home / "datasets"

    def names(self) -> list[str]:
        """Of all data sets."""
        return [row[0] for row in self.database.rows("SELECT name FROM datasets ORDER BY name")]

    def named(self, name: str) -> RegisteredSet:
        """The data set of a name; a `Refusal` where there is none."""
        found = self._sets.get(name)
        if found is None:
            row = self.database.row("SELECT file, cap, design, about FROM datasets WHERE name = ?", name)
            if row is None:
                raise Refusal(404, NOT_THERE)
            file, success, design, about = row
            found = self._sets[name] = RegisteredSet(
                name, Catalog.load(self.folder / file), success, design=design, about=about
            )
        return found

    def register(
        self, name: str, source: Any, *, success: float, design: str = "bits", about: str = "", **declared: Any
    ) -> Catalog:
        """Make tables ready to be asked about, as `leakcap.sql.register` does, under a cap."""

        def make(path: str) -> None:
            register(source, path=path, **declared)

        return self.adopt(name, make, success=success, design=design, about=about)

    def adopt(
        self, name: str, make: Callable[[str], None], *, success: float, design: str = "bits", about: str = ""
    ) -> Catalog:
        """The same of tables that `make` registers at a path."""
        checked_label(name, "the name of a data set")
        if design not in DESIGNS:
            raise InputError("a design is 'bits' or 'pool'")
        (pool_membership if design == "pool" else membership)(success)
        if self.database.row("SELECT 1 FROM datasets WHERE name = ?", name):
            raise InputError(f"there is a data set {name!r} already: choose another name")
        file = f"{name}-{secrets.token_hex(4)}.duckdb"
        path = private_folder(self.folder) / file
        try:
            make(str(path))
            catalog = Catalog.load(path)
            cap = RegisteredSet(name, catalog, success, design=design, about=about).cap
            Session(catalog, cap=cap, ledger=self.settings.ledger_place, name=name)  # from now on the ledger knows it
        except BaseException:
            for part in self.folder.glob(f"{path.stem}*"):  # what a process that was stopped left, too
                part.unlink(missing_ok=True)
            raise
        self.database.write(
            "INSERT INTO datasets VALUES (?, ?, ?, ?, ?, ?)", name, file, float(success), design, about, time.time()
        )
        return catalog

    def refuse_other_ledger(self) -> None:
        """An `InputError` where the ledger does not know a data set: in another one everybody would have a second coin,
        and a clock that nobody has spent."""
        for name in self.names():
            with self.account(name).reading(forgotten=True) as now:
                known = now.title is not None or bool(now.number)
            if not known:
                raise InputError(
                    f"the ledger knows nothing of the data set {name!r}, of which this server gives answers: name the "
                    "ledger that counts them with --ledger, or bring it back from a copy"
                )

    def sweep(self) -> None:
        """Remove what a server left that was ended while it registered a file."""
        known = {row[0] for row in self.database.rows("SELECT file FROM datasets")}
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if path.name.removesuffix(".wal") not in known and time.time() - path.stat().st_mtime > LEFT:
                path.unlink(missing_ok=True)

    @contextmanager
    def session(self, name: str, account: str) -> Iterator[Session]:
        """The session of an account on a data set, for one question at a time; others of the same account queue."""
        held = self._session(name, account)
        with self._lock:
            if held.waiting >= self.settings.limits.waiting:
                raise Refusal(429, HEAVY, wait=5.0)
            held.waiting += 1
        try:
            with held.lock, self._room, limited(self.settings.limits.engine, self.spare):
                yield held.session
        finally:
            with self._lock:
                held.waiting -= 1

    def clock_of(self, name: str, account: str) -> str:
        """The group whose clock an account spends; an `InputError` where the data set was forgotten."""
        book, known = self.book, self._books.states
        sign = book.sign()  # before anything is read: what is written meanwhile is read the next time
        if sign is None or known.get(name, (None,))[0] != sign:
            with book.account(name).reading() as now:
                known[name] = sign, now.state
        return budgets.group_of(known[name][1], account)

    def account(self, name: str) -> Account:
        """Of a data set in the ledger."""
        return self.book.account(name)

    @property
    def book(self) -> Book:
        """The ledger, opened once in every thread."""
        found: Book | None = getattr(self._books, "book", None)
        if found is None:
            found = self._books.book = open_book(self.settings.ledger_place)
            self._books.states = {}  # of data sets, by what nobody has changed since
        return found

    def close_sessions(self, name: str) -> None:
        """Open them again when they are needed: a cap or a group has changed."""
        with self._lock:
            for key in [key for key in self._held if key[0] == name]:
                del self._held[key]

    def close(self) -> None:
        """End the processes that wait for questions, and let go of sessions and their ledgers."""
        self.spare.close()
        with self._lock:
            self._held.clear()
        self._books = threading.local()

    def _session(self, name: str, account: str) -> _OpenSession:
        key = (name, account)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found
        known = self.named(name)
        self.spare.prepare(known.catalog.path, self.settings.limits.engine)
        session = Session(known.catalog, cap=known.cap, ledger=self.settings.ledger_place, name=name, analyst=account)
        with self._lock:
            found = self._held.setdefault(key, _OpenSession(session, threading.Lock()))
            while len(self._held) > MOST_SESSIONS:
                self._held.popitem(last=False)
            return found


def schema_of(catalog: Catalog) -> Mapping[str, Any]:
    """What was declared about every table: an analyst may know it, and nothing of it is read off a row."""
    return {
        "tables": [
            {
                "name": table.name,
                "public": not table.private,
                "rows_of_one_person": table.most_rows,
                "columns": [
                    {
                        "name": one.name,
                        "kind": one.kind,
                        "low": _plain(one.low),
                        "high": _plain(one.high),
                        "values": [_plain(level) for level in one.levels] if one.levels and one.declared else None,
                        "key": one.key,
                    }
                    for one in table.columns
                ],
            }
            for table in catalog.tables.values()
        ]
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
