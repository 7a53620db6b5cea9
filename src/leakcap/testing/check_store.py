"""Does a store keep what a ledger needs: all of a transaction or nothing, one writer at a time, nothing lost?"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leakcap.custody.ledger.store import VERSION, Header, Store, StoredEntry, Transaction

__all__ = ["check_store"]

THREADS, PROCESSES, TURNS = 6, 3, 8
LARGE = 3 * 2**20  # bytes
ONE, OTHER, BUSY, KILLED = (bytes([i]) * 32 for i in range(1, 5))  # accounts
ALL_BYTES = bytes(range(256))
PATIENCE = 120.0  # seconds


class _Stopped(Exception):
    pass


def check_store(make_store: Callable[[], Store], *, lasting: bool = True) -> None:
    """Try on a store all that a ledger asks of one (`leakcap.custody.ledger.store.Store`).

    Args:
        make_store: gives a store at one empty place, and when it is called again, another store at the same place, as a
            second process would have it.
        lasting: whether what is stored outlives the store: False for one in memory, which is then tried alone.

    Raises:
        AssertionError: the store breaks a rule; the message says which.

    Examples:
        >>> import leakcap as lc
        >>> from leakcap.custody.ledger.memory import MemoryStore
        >>> lc.testing.check_store(MemoryStore, lasting=False)
    """
    store = make_store()
    try:
        _check_header(store, make_store if lasting else lambda: store)
        _check_new_account(store)
        _check_round_trip(store)
        _check_values(store)
        _check_duplicates(store)
        _check_all_or_nothing(store)
        _check_erasing(store)
        _check_sign(store, store)
        _check_threads([store] * THREADS)
        if lasting:
            _check_second(store, make_store)
            _check_sign(store, make_store())
            _check_threads([make_store() for _ in range(THREADS)])
            _check_processes(store, make_store)
        store.scrub()
        store.close()
        with store.reading(ONE) as now:
            assert now.last() is not None, "a store that was closed must open again when it is used"
    finally:
        store.close()


def _check_sign(store: Store, writer: Store) -> None:
    before = store.sign()
    with writer.writing(OTHER) as now:
        last = now.last()
        now.append(_entry(1 if last is None else last.number + 1), {})
    assert before is None or store.sign() != before, "sign() must be another one after a write, whoever wrote"


def _entry(number: int, **fields: Any) -> StoredEntry:
    row = StoredEntry(
        number=number,
        charge=number,
        request=b"",
        question=b"",
        digest=b"d" * 32,
        beside=b"b" * 32,
        head=number.to_bytes(32, "big"),
        body=b"body %d" % number,
    )
    return replace(row, **fields)


def _check_header(store: Store, again: Callable[[], Store]) -> None:
    assert isinstance(store.place, str) and store.place, "place must be a text that says where the store is"
    assert store.header() is None, "make_store must give a store at an empty place: header() must be None there"
    first = Header(VERSION, name=secrets.token_bytes(32), salt=secrets.token_bytes(32), sealed=True, check=bytes(32))
    store.make(first)
    assert store.header() == first, "header() must give what make() was given"
    again().make(replace(first, name=bytes(32)))
    assert store.header() == first, "make() must leave a ledger that is there as it is"
    assert store.accounts() == [], "a new ledger has no accounts"


def _check_new_account(store: Store) -> None:
    for opened in (store.reading, store.writing):
        with opened(ONE) as now:
            found = now.last(), now.row(1), now.head(1), now.asked(b"r"), now.answered(b"q"), now.value("v")
            assert found == (None,) * 6, "an account without entries must hold nothing"
            assert list(now.rows()) == [] and now.names() == [], "an account without entries must hold nothing"
    assert store.accounts() == [], "an account without entries is not listed"


def _check_round_trip(store: Store) -> None:
    rows = [
        _entry(1, body=ALL_BYTES, request=b"\0r", question=ALL_BYTES[::-1]),
        _entry(2, body=b"", charge=2**60, question=b"q"),
        _entry(3, body=None, charge=0, question=b"q"),
        *(_entry(number) for number in range(4, 130)),
    ]
    for row in rows[:3]:
        with store.writing(ONE) as now:
            now.append(row, {})
    with store.writing(ONE) as now:
        for row in rows[3:]:
            now.append(row, {})
        assert now.last() == rows[-1], "a transaction must see what it has written"
    with store.reading(ONE) as now:
        assert list(now.rows()) == rows, "entries must come back in order, byte by byte"
        assert [now.row(row.number) for row in rows] == rows, "row() must give the entry of a number"
        assert [now.head(row.number) for row in rows] == [row.head for row in rows], "head() must be that of the entry"
        assert now.row(0) is None and now.row(len(rows) + 1) is None, "row() must be None where there is none"
        assert now.last() == rows[-1], "last() must be the entry with the largest number"
        assert now.asked(b"\0r") == rows[0] and now.asked(b"r") is None, "asked() must find the entry of a request"
        assert now.asked(b"") is None, "entries without a request are not found by one"
        assert now.answered(b"q") == rows[2], "answered() must find the latest entry of a question"
    with store.reading(OTHER) as now:
        assert now.last() is None and now.asked(b"\0r") is None, "accounts must not see each other's entries"
    assert store.accounts() == [ONE], "accounts() must list every account that has entries, once"


def _check_values(store: Store) -> None:
    large = secrets.token_bytes(LARGE)
    values: dict[str, bytes | None] = {"a": ALL_BYTES, "people/ü": b"", "large": large}
    with store.writing(OTHER) as now:
        now.append(_entry(1), values)
        assert now.value("large") == large, "a transaction must see what it has written"
    with store.reading(OTHER) as now:
        assert {name: now.value(name) for name in values} == values, "values must come back byte by byte"
        assert sorted(now.names()) == sorted(values), "names() must list every value"
    with store.writing(OTHER) as now:
        now.append(_entry(2), {"a": b"new", "large": None, "never": None})
    with store.reading(OTHER) as now:
        assert now.value("a") == b"new", "a value that is put again must replace the old one"
        assert now.value("large") is None and sorted(now.names()) == ["a", "people/ü"], "None must take a value away"
    with store.reading(ONE) as now:
        assert now.names() == [], "accounts must not see each other's values"


def _check_duplicates(store: Store) -> None:
    for row, what in ((_entry(1), "number"), (_entry(130, request=b"\0r"), "request")):
        before = _all_of(store, ONE)
        refused = False
        try:
            with store.writing(ONE) as now:
                now.append(row, {"half": b"x"})
        except Exception:
            refused = True
        assert refused, f"a second entry with the same {what} must be refused"
        assert _all_of(store, ONE) == before, f"nothing may be stored with an entry whose {what} is taken"
    with store.writing(OTHER) as now:
        now.append(_entry(3, request=b"\0r"), {})  # requests are an account's own


def _check_all_or_nothing(store: Store) -> None:
    before = _all_of(store, OTHER)
    try:
        with store.writing(OTHER) as now:
            now.append(_entry(4), {"a": b"half", "b": b"half"})
            now.append(_entry(5), {"people/ü": None})
            now.erase()
            raise _Stopped
    except _Stopped:
        pass
    assert _all_of(store, OTHER) == before, "a transaction that ends with an error must leave everything as it was"


def _check_erasing(store: Store) -> None:
    before = _all_of(store, OTHER)[0]
    with store.writing(OTHER) as now:
        now.erase()
        now.append(_entry(4), {})
    after = _all_of(store, OTHER)[0]
    assert after[:-1] == [replace(row, body=None) for row in before], "erase() must take bodies away, and nothing else"
    assert after[-1].body is not None, "erase() is about the entries that there were"


def _all_of(store: Store, account: bytes) -> tuple[list[StoredEntry], dict[str, bytes | None]]:
    with store.reading(account) as now:
        return list(now.rows()), {name: now.value(name) for name in now.names()}


def _check_threads(stores: list[Store]) -> None:
    """Writers that count, and a reader that compares."""
    inside, faults = [0], list[str]()
    with stores[0].reading(BUSY) as now:
        before = _counted(now)

    def write(store: Store) -> None:
        for _ in range(TURNS):
            with store.writing(BUSY) as now:
                inside[0] += 1
                if inside[0] > 1:
                    faults.append("two writers are in one account at the same time")
                _count(now)
                inside[0] -= 1

    def read(store: Store) -> None:
        for _ in range(TURNS):
            with store.reading(BUSY) as now:
                first = _counted(now)
                time.sleep(0.001)
                if not first == _counted(now) == len(list(now.rows())):
                    faults.append("a reader sees something half written, or another state than at its start")

    def attempt(work: Callable[[Store], None], store: Store) -> None:
        try:
            work(store)
        except Exception as error:
            faults.append(f"a thread failed with {type(error).__name__}: {error}")

    works = [(write, store) for store in stores] + [(read, stores[0]), (read, stores[-1])]
    threads = [threading.Thread(target=attempt, args=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other for ever"
    assert not faults, faults[0]
    with stores[0].reading(BUSY) as now:
        found = _counted(now) - before
    assert found == len(stores) * TURNS, f"{len(stores) * TURNS - found} of {len(stores) * TURNS} writes were lost"
    for store in {id(store): store for store in stores[1:]}.values():
        if store is not stores[0]:
            store.close()


def _counted(now: Transaction) -> int:
    return int((now.value("count") or b"0").decode())


def _count(now: Transaction) -> None:
    number = _counted(now)
    time.sleep(0.001)  # whoever is not kept out comes in now
    now.append(_entry(number + 1), {"count": b"%d" % (number + 1)})


def _check_second(store: Store, make_store: Callable[[], Store]) -> None:
    second = make_store()
    assert second.header() == store.header(), "make_store must give stores at the same place"
    for account in (ONE, OTHER, BUSY):
        assert _all_of(second, account) == _all_of(store, account), "a second store must see what the first has stored"
    assert sorted(second.accounts()) == sorted(store.accounts()), "a second store must list the same accounts"
    second.close()


def _check_processes(store: Store, make_store: Callable[[], Store]) -> None:
    with store.reading(BUSY) as now:
        before = _counted(now)

    def write(own: Store) -> None:
        for _ in range(TURNS):
            with own.writing(BUSY) as now:
                _count(now)

    def die(own: Store) -> None:
        with own.writing(KILLED) as now:
            now.append(_entry(1), {"half": b"x"})
            os._exit(9)

    # Each with a store of its own, but for the last: that goes on with what it had before the fork.
    children = [_forked(lambda: write(make_store())) for _ in range(PROCESSES - 1)] + [_forked(lambda: write(store))]
    assert [_ended(child) for child in children] == [0] * PROCESSES, "a process that writes failed"
    with store.reading(BUSY) as now:
        found = _counted(now) - before
        assert found == PROCESSES * TURNS, f"{PROCESSES * TURNS - found} of {PROCESSES * TURNS} writes were lost"
        assert [row.number for row in now.rows()] == list(range(1, _counted(now) + 1)), "entries must be in order"
    assert _ended(_forked(lambda: die(make_store()))) == 9
    assert _all_of(store, KILLED) == ([], {}), "of a process that ends in a transaction nothing may be stored"
    with store.writing(KILLED) as now:  # and nobody waits for it
        now.append(_entry(1), {})


def _forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
