"""Every store keeps what a ledger asks; stores with a planted fault are found out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody.ledger.memory import MemoryStore, MemoryTransaction
from leakcap.custody.ledger.postgres import PostgresStore
from leakcap.custody.ledger.sqlite import SqliteStore
from leakcap.custody.ledger.store import StoredEntry
from leakcap.errors import MissingExtra
from leakcap.testing import check_store

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_sqlite(tmp_path: Path) -> None:
    check_store(lambda: SqliteStore(tmp_path / "ledger.db"))


def test_memory() -> None:
    check_store(MemoryStore, lasting=False)


def test_postgres(database: str) -> None:
    check_store(lambda: PostgresStore(database))


class LosesUpdates(MemoryStore):
    """Writers do not wait for each other, and the last one's state is what stays."""

    @contextmanager
    def writing(self, account: bytes) -> Iterator[MemoryTransaction]:
        with super().reading(account) as now:
            copy = type(now.kept)(list(now.kept.rows), dict(now.kept.values))
        yield MemoryTransaction(copy)
        self._kept[account] = copy


class CommitsHalf(MemoryStore):
    """What was written before an error stays."""

    @contextmanager
    def writing(self, account: bytes) -> Iterator[MemoryTransaction]:
        with self._lock:
            yield MemoryTransaction(self._kept.setdefault(account, type(self._kept.get(account)) and _kept()))


def _kept() -> Any:
    from leakcap.custody.ledger import memory

    return memory._Kept()


class LetsTwoIn(SqliteStore):
    """A store that locks as late as it can: the second writer fails."""

    @contextmanager
    def writing(self, account: bytes) -> Iterator[Any]:
        own = SqliteStore(self.path)
        try:
            with own._connected() as database:
                database.execute("PRAGMA busy_timeout = 0")
                database.execute("BEGIN DEFERRED")
                with SqliteStore.reading(self, account) as _:
                    pass
                from leakcap.custody.ledger.tables import SqlTransaction

                yield SqlTransaction(database.execute, account)
                database.execute("COMMIT")
        finally:
            own.close()


class ForgetsDuplicates(MemoryStore):
    """A second entry of one number takes the place of the first."""

    @contextmanager
    def writing(self, account: bytes) -> Iterator[Any]:
        with super().writing(account) as now:
            yield _Replacing(now.kept)


class _Replacing(MemoryTransaction):
    def append(self, row: StoredEntry, values: Any) -> None:
        self.kept.rows[row.number - 1 :] = [row]
        self.kept.values.update({name: content for name, content in values.items() if content is not None})
        for name in [name for name, content in values.items() if content is None]:
            self.kept.values.pop(name, None)


class MixesUpAccounts(MemoryStore):
    """All accounts are one."""

    @contextmanager
    def reading(self, account: bytes) -> Iterator[MemoryTransaction]:
        with super().reading(b"") as now:
            yield now

    @contextmanager
    def writing(self, account: bytes) -> Iterator[MemoryTransaction]:
        with super().writing(b"") as now:
            yield now


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (LosesUpdates, "writes were lost|two writers|half written"),
        (CommitsHalf, "leave everything as it was|nothing may be stored"),
        (ForgetsDuplicates, "second entry with the same"),
        (MixesUpAccounts, "see each other"),
    ],
)
def test_a_planted_fault_is_found(store: type[MemoryStore], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_store(store, lasting=False)


def test_a_store_that_lets_two_writers_in_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"two writers|a thread failed|lost"):
        check_store(lambda: LetsTwoIn(tmp_path / "ledger.db"))


def test_a_store_that_keeps_nothing_is_found() -> None:
    with pytest.raises(AssertionError, match="same place"):
        check_store(MemoryStore)


def test_without_the_extra(monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"leakcap\[postgres\]"):
        PostgresStore("postgresql://somebody:s3cret@host/base")


def test_a_database_is_always_sealed(database: str, monkeypatch: Any) -> None:
    from leakcap.custody import keys
    from leakcap.custody.ledger import open_book

    monkeypatch.setattr(keys, "can_seal", lambda: False)
    with pytest.raises(MissingExtra, match=r"leakcap\[vault\]"):
        open_book(database)


def test_passwords_are_not_shown() -> None:
    store = PostgresStore("postgresql://somebody:s3cret@host.invalid:77/base?password=s3cret")
    assert store.place == "postgresql://host.invalid:77/base"
    assert "s3cret" not in repr(store)
    with pytest.raises(lc.InputError, match="no address") as caught:
        PostgresStore("postgresql://somebody:s3cret@[host/base")
    assert "s3cret" not in str(caught.value)
