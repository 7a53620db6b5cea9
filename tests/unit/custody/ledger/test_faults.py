"""Whatever fails, fails closed: one sentence that says what to do, nothing handed out, nothing lost."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody import heads, keys
from leakcap.custody.ledger import budgets, disks, open_book
from leakcap.custody.ledger.postgres import PostgresStore
from leakcap.custody.ledger.sqlite import SqliteStore
from tests.forked import said_by_a_fork
from tests.refusals import refusal
from tests.unit.custody.ledger.places import Account, Place, charge, filled, untouched, with_a_value

Fault = Callable[[Place, pytest.MonkeyPatch], None]


def _raising(code: int) -> Any:
    def fail(*given: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


def full_disk_for_the_key(place: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heads.os, "pwrite", _raising(errno.ENOSPC))


def half_a_line_in_the_key(place: Place, patch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    patch.setattr(heads.os, "pwrite", lambda handle, line, at: write(handle, line[:100], at))


def failing_sync_of_the_key(place: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heads.os, "fdatasync", _raising(errno.EIO))


def no_locks(place: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fcntl, "flock", _raising(errno.ENOLCK))


def missing_file(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.path.rename(place.path.with_name("elsewhere"))


def no_ledger(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    place.path.write_bytes(b"no database" * 500)
    place.path.chmod(0o600)


def empty_file(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    place.path.touch(0o600)


def other_tables(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    with sqlite3.connect(place.path) as database:
        database.execute("CREATE TABLE ledger (version)")
    database.close()
    place.path.chmod(0o600)


def others_may_write(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    shutil.copy(place.path.with_name("elsewhere"), place.path)
    place.path.chmod(0o666)


def network_disk(place: Place, patch: pytest.MonkeyPatch) -> None:
    device = os.stat(place.path).st_dev
    mounts = place.path.with_name("mounts")
    mounts.write_text(f"30 1 {os.major(device)}:{os.minor(device)} / / rw - nfs4 server:/home rw\n")
    patch.setattr(disks, "MOUNTS", mounts)


def missing_key(place: Place, patch: pytest.MonkeyPatch) -> None:
    keys.key_file().rename(keys.key_file().with_name("elsewhere"))


def key_for_all_to_read(place: Place, patch: pytest.MonkeyPatch) -> None:
    keys.key_file().chmod(0o644)


def damaged_key_file(place: Place, patch: pytest.MonkeyPatch) -> None:
    """Both lines of an account, of which a power failure breaks one at most."""
    content = bytearray(keys.key_file().read_bytes())
    for start in range(4096, len(content), 256):
        if content[start : start + 5] == b"head ":
            content[start + 90] ^= 1
    shutil.copy(keys.key_file(), keys.key_file().with_name("whole"))
    keys.key_file().write_bytes(bytes(content))


# What is broken; what is said; how an account that is in use already takes it: the same, or not at all.
FAULTS: dict[str, tuple[Fault, str]] = {
    "full disk for the key": (full_disk_for_the_key, r"cannot write the key file .*No space left.*make room"),
    "half a line in the key": (half_a_line_in_the_key, r"cannot write the key file .*No space left"),
    "failing sync of the key": (failing_sync_of_the_key, r"cannot write the key file .*Input/output"),
    "no locks": (no_locks, r"cannot .*No locks available.*local disk"),
    "missing file": (missing_file, r"is missing.*bring it back from a copy"),
    "no ledger": (no_ledger, r"is damaged, or no ledger: bring it back from a copy"),
    "empty file": (empty_file, r"is damaged, or no ledger"),
    "other tables": (other_tables, r"is damaged, or no ledger"),
    "others may write": (others_may_write, r"written by somebody else"),
    "missing key": (missing_key, r"cannot read the key file|was made with another key"),
    "key for all to read": (key_for_all_to_read, r"others may read the key .*chmod 600"),
    "damaged key file": (damaged_key_file, r"key file .* is damaged.*latest copy"),
}
LATER_ONLY = {"network disk": (network_disk, r"network file system now.*local disk")}


def _mended(place: Place) -> Account:
    for kept, own in (
        (place.path.with_name("elsewhere"), place.path),
        (keys.key_file().with_name("elsewhere"), keys.key_file()),
        (keys.key_file().with_name("whole"), keys.key_file()),
    ):
        if kept.exists():
            kept.replace(own)
    place.path.chmod(0o600)
    keys.key_file().chmod(0o600)
    return place.account()


@pytest.mark.parametrize("fault", [*FAULTS, *LATER_ONLY])
def test_it_fails_closed(fault: str, file: Place) -> None:
    account = filled(file)
    account.book.store.close()
    breaks, words = (FAULTS | LATER_ONLY)[fault]
    with pytest.MonkeyPatch.context() as patch:
        breaks(file, patch)
        for attempt in (lambda: charge(account, "in use"), lambda: charge(file.account(), "from the start")):
            told = str(refusal(attempt, words, lc.InputError))
            assert "\n" not in told
            assert told.count("\u201c") == 0
    found = _mended(file)
    with found.reading() as now:
        stored = [entry.body.get("request") for entry in now.entries()]
    # An entry may have been stored and not handed out: then asking again gives it, and charges nothing.
    if "in use" not in stored:
        untouched(found)
    assert charge(found, "in use") == ("in use" not in stored)
    assert found.book.accounts()[0].mark == found.mark


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_made_on_a_network_disk_shares_no_log(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    file.path.touch()
    network_disk(file, monkeypatch)
    file.path.unlink()
    filled(file)
    assert not file.path.with_name("ledger.db-wal").exists()
    lc.testing.check_store(lambda: SqliteStore(file.path.with_name("other.db")))
    assert not file.path.with_name("other.db-wal").exists()


def test_a_network_disk_is_no_other_kind() -> None:
    assert disks.kind_of_disk(Path("/proc/self/status")) in ("proc", "")
    assert disks.kind_of_disk(Path("/nowhere")) == ""


@pytest.mark.parametrize("room", [0, 30_000, 200_000])
def test_a_full_disk(room: int, file: Place) -> None:
    """The system refuses writes beyond a size, as a full disk does."""
    account = filled(file)
    most = max(path.stat().st_size for path in file.path.parent.iterdir() if path.is_file()) + room
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        refusal(lambda: with_a_value(account, bytes(400_000)), r"cannot write the ledger .*nothing was answered")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    untouched(account)
    untouched(file.account())
    with_a_value(account, bytes(400_000))


def test_an_older_line_is_left_where_the_latest_is_cut_off(file: Place) -> None:
    """A power failure while a head is written: that answer was not handed out."""
    account = filled(file)
    content = bytearray(keys.key_file().read_bytes())
    names = [bytes(content[start : start + 69]) for start in range(4096, len(content), 256)]
    (own,) = {name for name in names if name.startswith(b"head ") and names.count(name) == 2}
    places = [4096 + 256 * place for place, name in enumerate(names) if name == own]
    latest = max(places, key=lambda start: int(content[start + 70 : start + 256].split()[0]))
    content[latest + 100 : latest + 256] = bytes(156)
    keys.key_file().write_bytes(bytes(content))
    untouched(file.account())
    charge(account, "and on")


@contextmanager
def _of_nobody() -> Iterator[Path]:
    """A folder in which this user may be kept from writing: not root's."""
    folder = Path(tempfile.mkdtemp(prefix="leakcap-"))
    try:
        yield folder
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700)
        shutil.rmtree(folder)


def _as_nobody(folder: Path, work: Callable[[], None]) -> str:
    """What a process that is not root's is told; empty where it is told nothing."""

    def done() -> str:
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, 65534, 65534)
            os.setgid(65534)
            os.setuid(65534)
        work()
        return ""

    return said_by_a_fork(done)


READ_ONLY = {
    "file": ("ledger/ledger.db", 0o400, "cannot write the ledger .*Read-only"),
    "folder": ("ledger", 0o500, "cannot write"),
    "folder of the key": ("keys", 0o500, ""),  # the key file alone is written
    "key": ("keys/key", 0o400, "cannot write the key file .*Permission denied"),
    "hidden key": ("keys/key", 0o000, "key"),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("what", READ_ONLY)
def test_what_may_not_be_written(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mode, words = READ_ONLY[what]
    with _of_nobody() as folder:
        monkeypatch.setenv("LEAKCAP_KEY", str(folder / "keys" / "key"))
        place = Place(f"sqlite:///{folder}/ledger/ledger.db")

        def make() -> None:
            filled(place).book.store.close()
            (folder / name).chmod(mode)

        assert _as_nobody(folder, make) == ""
        told = _as_nobody(folder, lambda: charge(place.account(), "refused") and None)
        import re

        assert re.search(words, told) if words else told == "", told
        for path in folder.rglob("*"):  # SQLite gives what it puts beside a file the same mode
            path.chmod(0o700 if path.is_dir() else 0o600)
        if words:

            def look() -> None:
                with place.account().reading() as now:
                    assert now.state["spent"] == 3 or what == "key"  # stored, and not handed out
                charge(place.account(), "refused")
                with place.account().reading() as now:
                    assert now.state["spent"] == 4

            assert _as_nobody(folder, look) == ""


def test_a_file_that_is_removed_during_use(file: Place) -> None:
    account = filled(file)
    file.path.unlink()
    refusal(lambda: charge(account, "gone"), "is missing")
    refusal(lambda: open_book(file.url), "is missing.*name another place")


def test_a_lost_connection_is_opened_again(database: str) -> None:
    account = filled(Place(database))
    _cut(account)
    charge(account, "after")
    with account.reading() as now:
        assert now.state["spent"] == 4


def test_a_connection_lost_within_a_transaction(database: str) -> None:
    account = filled(Place(database))

    def lost() -> None:
        with account.writing() as now:
            now.state["spent"] += 1
            _cut(account)
            now.append("charge", {}, charge=1)

    refusal(lost, "does not answer.*nothing was answered")
    untouched(account)


@pytest.mark.parametrize("stored", [False, True])
def test_a_connection_lost_while_an_answer_is_stored(stored: bool, database: str) -> None:
    """Nobody knows whether it was: nothing is handed out, and asking again charges once."""
    account = filled(Place(database))
    store = account.book.store
    assert isinstance(store, PostgresStore)
    plain = store._connected

    @contextmanager
    def losing(*begin: str) -> Iterator[Any]:
        with plain(*begin) as own:
            yield _Losing(own, stored)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_connected", losing)
        refusal(lambda: charge(account, "perhaps"), "nobody knows whether it was.*same request=")
    assert charge(account, "perhaps") == (not stored)
    with account.reading() as now:
        assert now.state["spent"] == 4


class _Losing:
    def __init__(self, own: Any, stored: bool) -> None:
        self._own, self._stored = own, stored

    def execute(self, statement: str, *values: Any, **how: Any) -> Any:
        if statement == "COMMIT":
            if self._stored:
                self._own.execute(statement)
            self._own.close()
        return self._own.execute(statement, *values, **how)

    def close(self) -> None:
        self._own.close()


def _cut(account: Account) -> None:
    """As a server does that is restarted."""
    import psycopg

    store = account.book.store
    assert isinstance(store, PostgresStore)
    process = store._open.info.backend_pid
    with psycopg.connect(store._url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (process,))


def test_a_server_that_is_not_there() -> None:
    word = "s3" + "cret"
    place = f"postgresql://somebody:{word}@127.0.0.1:1/base"
    told = refusal(lambda: open_book(place), "does not answer", private=(word,))
    assert "127.0.0.1" in str(told)


def test_a_user_who_may_not_write(database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as server:
        server.execute("DROP ROLE IF EXISTS reader")
        server.execute("CREATE ROLE reader LOGIN")
    own = database.replace("postgres@", "reader@")
    refusal(lambda: open_book(own), "may not write.*CREATE SCHEMA leakcap")


def test_a_writer_that_holds_on_is_waited_for_and_told_of(database: str, monkeypatch: Any) -> None:
    from leakcap.custody.ledger import postgres

    monkeypatch.setattr(postgres, "SETTINGS", (*postgres.SETTINGS, "SET lock_timeout = '100ms'"))
    account, other = filled(Place(database)), Place(database).account()
    with account.writing():
        refusal(lambda: charge(other, "meanwhile"), "other programs have been holding")
    charge(other, "meanwhile")


def test_a_clock_set_back() -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    state: dict[str, Any] = {"budgets": {"day": 10}}
    budgets.count(state, "ann", 4, now)
    budgets.refuse(state, "ann", 6, now - timedelta(minutes=4))
    refusal(lambda: budgets.refuse(state, "ann", 1, now - timedelta(minutes=6)), "clock is behind.*set the clock")
    refusal(lambda: budgets.refuse(state, "ann", 7, now), "left for today", lc.BudgetError)
    budgets.refuse(state, "ann", 7, now + timedelta(days=1))


def test_a_clock_set_back_in_a_session(file: Place) -> None:
    from leakcap.custody.ledger.operations import set_budget
    from leakcap.sessions import desk

    session = lc.Session(np.zeros((50, 1)), cap=0.6, ledger=file.url, name="rows")
    set_budget(session._desk.account, day=10**11, who="the custodian", why="as agreed")
    session.count(share=0.01)

    class Before(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> datetime:
            return datetime.now(zone) - timedelta(hours=2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desk, "datetime", Before)
        refusal(lambda: session.count(share=0.02), "clock is behind")
    assert len(session.history) == 1
    session.count(share=0.02)
    refusal(lambda: session.count(share=0.08), "left for today", lc.BudgetError)


def test_readers_and_writers_do_not_wait_for_each_other_for_ever(file: Place) -> None:
    """Readers hold the store and take the key file; writers must never do it the other way round."""
    account = filled(file)
    others = [account, file.account()]
    stop = threading.Event()

    def look(own: Account) -> None:
        while not stop.is_set():
            with own.reading():
                pass

    readers = [threading.Thread(target=look, args=(own,), daemon=True) for own in others]
    writers = [
        threading.Thread(target=lambda own=own, i=i: [charge(own, f"{i} {j}") for j in range(15)], daemon=True)  # type: ignore[misc]
        for i, own in enumerate(others * 2)
    ]
    for one in (*readers, *writers):
        one.start()
    for one in writers:
        one.join(60)
    stop.set()
    for one in readers:
        one.join(60)
    assert not any(one.is_alive() for one in (*readers, *writers))
    with account.reading() as now:
        assert now.state["spent"] == 63
