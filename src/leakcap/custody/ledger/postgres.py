"""A ledger in a PostgreSQL database, for several machines: a data set's row is locked while it is written to.

Others may read a database, so it is sealed, always. Tables lie in a schema of their own, `leakcap`. A connection that
was lost is opened again before a transaction begins; one that is lost while a transaction is stored is an error, since
nobody knows then whether it was: asking again gives the stored answer, or is charged once.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from leakcap.custody.ledger.migrations import steps_after
from leakcap.custody.ledger.store import VERSION, Header
from leakcap.custody.ledger.tables import HEADER, STATEMENTS, SqlTransaction, header_of, header_values, statements
from leakcap.custody.locks import forks
from leakcap.custody.postgres_server import MAKING, PATIENCE, driver, in_words, settings, without_password
from leakcap.errors import InputError, MissingExtra
from leakcap.ground.processes import refuse_copy, this_process

__all__ = ["PostgresStore"]

SCHEMA = "leakcap"
WORDS = {"whole": "BIGINT", "of_bytes": "BYTEA"}
SETTINGS = settings(SCHEMA)
READ_ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"  # what is read after the lock is what others have stored
LOCK = "SELECT account FROM accounts WHERE account = %s FOR UPDATE"
LOOK = "SELECT 1"
UNKNOWN = (
    "the connection to the ledger {} was lost while an answer was being stored, and nobody knows whether it was: "
    "nothing was handed out. Ask again, with the same request= if you gave one: an answer that was stored is not "
    "charged again"
)
# Connections from before a fork are their parent's to close.
_inherited: list[Any] = []


class PostgresStore:
    """Accounts in a database."""

    def __init__(self, url: str) -> None:
        """`url` as in "postgresql://user@host/database"; nothing is opened before it is used."""
        self._url = url
        self._lock = threading.Lock()  # one thread at a time uses the connection
        self._open: Any = None  # a connection, or None
        self._header: Header | None = None  # of the ledger that was there first
        self._place = without_password(url, "ledger='{}'")
        forks(self)

    @property
    def place(self) -> str:
        return self._place

    def header(self) -> Header | None:
        with self._connected() as database:
            if database.execute(f"SELECT to_regclass('{SCHEMA}.ledger')").fetchone() == (None,):
                return None
            self._header = self._header_in(database)
            return self._header

    def make(self, header: Header) -> None:
        if not header.sealed:
            raise MissingExtra(
                "others may read a database, so that a ledger in it must be sealed: pip install 'leakcap[vault]'"
            )
        with self._connected(WRITE) as database, self._stored(database):
            database.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
            if database.execute(f"SELECT to_regclass('{SCHEMA}.ledger')").fetchone() != (None,):
                return  # another process was first: its tables count
            if database.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
                database.execute(f"CREATE SCHEMA {SCHEMA}")
            for statement in statements(STATEMENTS, **WORDS):
                database.execute(statement)
            database.execute("INSERT INTO ledger VALUES (%s, %s, %s, %s, %s, %s)", header_values(header))

    def migrate(self, steps: Mapping[int, tuple[str, ...]]) -> None:
        with self._connected(WRITE) as database, self._stored(database):
            database.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
            todo = steps_after(self._header_in(database).version, steps)
            if todo is None:
                raise InputError(self._damaged())
            for statement in statements(tuple(todo), **WORDS):
                database.execute(statement)
            database.execute("UPDATE ledger SET version = %s", (VERSION,))
        self._header = None

    def accounts(self) -> list[bytes]:
        held = "SELECT account FROM entries WHERE number = 1 ORDER BY account"
        with self._connected() as database:
            return [bytes(account) for (account,) in database.execute(held).fetchall()]

    @contextmanager
    def reading(self, account: bytes) -> Iterator[SqlTransaction]:
        with self._connected(READ_ONE_STATE) as database:
            try:
                yield _transaction(database, account)
            finally:
                with suppress(self._errors()):  # a connection that was lost has nothing to roll back
                    database.execute("ROLLBACK")

    @contextmanager
    def writing(self, account: bytes) -> Iterator[SqlTransaction]:
        with self._connected(WRITE) as database, self._stored(database):
            if database.execute(LOCK, (account,)).fetchone() is None:  # a new account: whoever comes second waits here
                database.execute("INSERT INTO accounts VALUES (%s) ON CONFLICT DO NOTHING", (account,))
                database.execute(LOCK, (account,))
            yield _transaction(database, account)

    def sign(self) -> None:
        return None  # to ask the database is as far as to read

    def scrub(self) -> None:
        with self._connected() as database:
            for table in ("entries", "beside"):
                database.execute(f"VACUUM {table}")  # copies and logs of the server are its owner's to clear

    def close(self) -> None:
        with self._lock:
            self._close()

    def forked(self) -> None:
        """In a child: the connection is the parent's, and a thread that is not here may seem to hold the lock."""
        if self._open is not None:
            _inherited.append(self._open)
            self._closing.detach()
        self._open, self._lock = None, threading.Lock()

    def _close(self) -> None:
        if self._open is not None:
            self._closing()
        self._open = None

    @contextmanager
    def _connected(self, begin: str = LOOK) -> Iterator[Any]:
        """A connection on which a first statement has gone through."""
        try:
            with self._lock:
                yield self._connection(begin)
            return
        except self._errors() as error:
            message = self._in_words(error)
        raise InputError(message)

    def _connection(self, begin: str) -> Any:
        """That of this process, opened if need be, or again where it was lost before anything was begun."""
        if self._open is not None:
            with suppress(self._errors()):
                self._open.execute(begin)
                return self._open
            self._close()
        database = driver().connect(self._url, autocommit=True, connect_timeout=PATIENCE)
        try:
            for setting in SETTINGS:
                database.execute(setting)
            if self._header is not None and self._header_in(database).digest != self._header.digest:
                raise InputError(
                    f"another ledger was put in the place of {self.place}: bring back the one that was in use, or "
                    "start again with the other"
                )
            database.execute(begin)
        except BaseException:
            database.close()
            raise
        self._open, self._closing = database, weakref.finalize(self, database.close)
        return database

    @contextmanager
    def _stored(self, database: Any) -> Iterator[None]:
        """To the end of a transaction: all of it is stored on the way out, or nothing of it."""
        begun = this_process()
        try:
            yield
            refuse_copy(begun)
        except BaseException:
            if begun == this_process():  # a child shares the connection, and leaves it alone
                with suppress(self._errors()):
                    database.execute("ROLLBACK")
            raise
        try:
            found = database.execute("COMMIT").statusmessage
        except self._errors():
            found = None
            with suppress(self._errors()):
                database.close()
        if found != "COMMIT":  # a server that could not says ROLLBACK
            raise InputError(UNKNOWN.format(self.place))

    def _header_in(self, database: Any) -> Header:
        found = header_of(database.execute(HEADER).fetchall())
        if found is None:
            raise InputError(self._damaged())
        if not found.sealed:
            raise InputError(f"the ledger {self.place} is not sealed, and others may read a database: make a new one")
        return found

    def _in_words(self, error: BaseException) -> str:
        """What to do about an error; its own text may hold the password's owner, or data."""
        known = in_words(error, f"the database {self.place}", f"the ledger {self.place}", SCHEMA)
        return known or self._damaged()

    def _damaged(self) -> str:
        return f"the ledger {self.place} is damaged, or no ledger: bring it back from a copy"

    @staticmethod
    def _errors() -> type[BaseException]:
        return driver().Error


def _transaction(database: Any, account: bytes) -> SqlTransaction:
    begun = this_process()

    def execute(statement: str, values: tuple[Any, ...]) -> Any:
        refuse_copy(begun)
        return database.execute(statement.replace("?", "%s"), values, binary=True)

    return SqlTransaction(execute, account)
