"""The ledger: crowds of writers, kills, what an answer costs beyond the disk; in a file and in PostgreSQL.

`python -m benchmarks.ledger [part ...]`, the parts are in `PARTS`. Every part runs with a key of its own in a temporary
folder. A crowd is 64 threads in 8 processes, with a budget for nine in ten of the charges that they try; what they were
told is compared with the chain afterwards, entry by entry.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from tests.charges import charge, crowd, open_budget
from tests.kills.test_ledger import random_kills
from tests.postgres import server

from benchmarks.records import record
from leakcap.custody.ledger import Account, open_book, sqlite

TOPIC = "The ledger"
PEOPLE = 100_000
PROCESSES, THREADS = 8, 8


@contextmanager
def own_place() -> Iterator[tuple[Path, str]]:
    """A folder with a key of its own, and the address of a ledger in it."""
    before = os.environ.get("LEAKCAP_KEY")
    with tempfile.TemporaryDirectory() as name:
        os.environ["LEAKCAP_KEY"] = str(Path(name) / "keys" / "key")
        try:
            yield Path(name), f"sqlite:///{name}/ledger.db"
        finally:
            os.environ.pop("LEAKCAP_KEY")
            if before is not None:
                os.environ["LEAKCAP_KEY"] = before


def charges(folder: Path, place: str, *, processes: int, threads: int, total: int) -> float:
    """Charges a second, all of them checked."""
    turns = -(-total // (processes * threads))
    budget = processes * threads * turns * 9 // 10
    account = open_budget(open_book(place), budget)

    def work() -> Callable[[str], bool]:
        own = open_book(place).account("a crowd")
        waits = os.open(folder / f"waits-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def timed(request: str) -> bool:
            began = time.perf_counter()
            try:
                return charge(own, request)
            finally:
                os.write(waits, f"{time.perf_counter() - began}\n".encode())

        return timed

    done = crowd(folder, work, processes=processes, threads=threads, turns=turns)
    done.check(account, budget)
    assert len(done.told) == budget, "not all that there was could be taken"
    return (len(done.told) + done.refused) / done.seconds


def crowds(total: int = 10_000) -> None:
    """Both stores, 64 threads in 8 processes."""
    with own_place() as (folder, place):
        _crowd("sqlite", charges(folder, place, processes=PROCESSES, threads=THREADS, total=total), total)
    with own_place() as (folder, _), server() as running:
        place = running.fresh("crowd")
        _crowd("postgres", charges(folder, place, processes=PROCESSES, threads=THREADS, total=total), total)


def _crowd(name: str, rate: float, total: int) -> None:
    print(
        f"{name}: {total} charges tried by {PROCESSES * THREADS} threads: {rate:.0f} a second, none lost or overspent"
    )
    record(
        f"ledger-crowd-{name}",
        f"0 overspent, 0 lost; {rate:.0f} charges a second",
        topic=TOPIC,
        claim=f"64 threads in 8 processes try {total:,} charges at one account ({name})",
        command="python -m benchmarks.ledger crowds",
        asked="0 overspent, 0 lost",
    )


def worst_wait(folder: Path) -> float:
    """The longest that one charge in a hundred took, in seconds."""
    waits = [float(line) for path in folder.glob("waits-*") for line in path.read_text().split()]
    return float(np.quantile(waits, 0.99))


def queue(total: int = 1_600) -> None:
    """SQLite with and without the queue of writers, one writer and eight, in turn."""
    seen: dict[tuple[bool, int], list[tuple[float, float]]] = {}
    plain = sqlite.queued
    try:
        for _ in range(3):
            for queued in (True, False):
                sqlite.queued = plain if queued else lambda path: nullcontext()
                for writers in (1, 8):
                    with own_place() as (folder, place):
                        rate = charges(folder, place, processes=writers, threads=1, total=total)
                        seen.setdefault((queued, writers), []).append((rate, worst_wait(folder)))
    finally:
        sqlite.queued = plain
    medians = {how: np.median(found, axis=0) for how, found in seen.items()}
    for (queued, writers), (rate, wait) in medians.items():
        how = "with" if queued else "without"
        print(f"{how} a queue, {writers} writers: {rate:.0f} charges a second, 1 in 100 waits {1000 * wait:.0f} ms")
    (rate, wait), (plain_rate, plain_wait) = medians[True, 8], medians[False, 8]
    record(
        "ledger-queue",
        f"{rate / plain_rate:.2f} times the rate without, {wait / plain_wait:.2f} times the longest wait (99 of 100); "
        f"{rate / medians[True, 1][0]:.2f} times the rate of one writer",
        topic=TOPIC,
        claim="8 processes at one SQLite ledger, queueing at a lock instead of SQLite's timer",
        command="python -m benchmarks.ledger queue",
        asked="-",
    )


def kills(count: int = 500) -> None:
    """Sessions killed at random among their answers, on both stores."""
    began, answers = time.perf_counter(), 0
    with own_place() as (folder, place):
        answers += random_kills(place, folder / "told", count)
    with own_place() as (folder, _), server() as running:
        answers += random_kills(running.fresh("kills"), folder / "told", count)
    seconds = time.perf_counter() - began
    print(f"{2 * count} kills among {answers} answers in {seconds:.0f} s: none uncharged, changed or given twice")
    record(
        "ledger-kills",
        f"0 of {answers:,} uncharged, changed or answered twice",
        topic=TOPIC,
        claim=f"{2 * count:,} kills at random of a session that asks and asks, half of them on PostgreSQL",
        command="python -m benchmarks.ledger kills",
        asked="0",
    )


def latency(rounds: int = 80) -> None:
    """What writing an answer with the clocks of 100,000 people takes beside a plain write of as much, in turn."""
    beyond, cpu = [], []
    with own_place() as (folder, place):
        account = open_book(place).account("people")
        with account.writing() as now:
            now.title, now.state = {"name": "people"}, {"spent": 0}
            now.put("people/", os.urandom(8 * PEOPLE))
            now.put("clocks/", bytes(8 * PEOPLE))
            now.append("opened", {})
        handle = os.open(folder / "plain", os.O_RDWR | os.O_CREAT, 0o600)
        for turn in range(rounds):
            content = os.urandom(8 * PEOPLE)
            began, used = time.perf_counter(), time.process_time()
            _answer(account, turn, content)
            taken, used = time.perf_counter() - began, time.process_time() - used
            began = time.perf_counter()
            os.pwrite(handle, content, 0)
            os.fdatasync(handle)
            os.pwrite(handle, content[:256], 8 * PEOPLE)
            os.fdatasync(handle)
            beyond.append(taken - (time.perf_counter() - began))
            cpu.append(used)
        os.close(handle)
    milliseconds = 1000 * float(np.median(beyond))
    print(
        f"clocks of {PEOPLE}: {milliseconds:.1f} ms beyond the disk's own syncs, {1000 * np.median(cpu):.1f} ms of CPU"
    )
    record(
        "ledger-latency",
        f"{milliseconds:.1f} ms beyond a plain write of as much ({1000 * np.median(cpu):.1f} ms of CPU)",
        topic=TOPIC,
        claim="Writing down an answer with the clocks of 100,000 people, SQLite",
        command="python -m benchmarks.ledger latency",
        asked="5 ms",
    )


def _answer(account: Account, turn: int, content: bytes) -> None:
    with account.writing() as now:
        now.value("people/")
        now.value("clocks/")
        now.asked(f"request {turn}")
        now.answered(f"question {turn}")
        now.put("clocks/", content)
        now.state["spent"] += 1
        now.append("answer", {"numbers": [1.0] * 10}, charge=1, request=f"request {turn}", question=f"question {turn}")


PARTS: dict[str, Callable[[], None]] = {"crowds": crowds, "queue": queue, "kills": kills, "latency": latency}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
