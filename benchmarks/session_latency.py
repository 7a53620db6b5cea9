"""How long a warm session takes to answer, and what of it is the ledger's.

`python -m benchmarks.session_latency [bits] [worlds] [ledger]`. Wall seconds, medians of 30, through a ledger in a
folder of its own. The disk's own part is measured in turn with it: the same bytes written to two files and synced.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import leakcap as lc
from benchmarks.records import record
from benchmarks.session_counts import own_folder
from leakcap.custody.ledger.accounts import Spent

PEOPLE, FEW, WORLDS, ROUNDS, WARM = 100_000, 1000, 1024, 30, 3
BLOCKS = 5
TOPIC = "Sessions"


def taken(work: Callable[[int], Any]) -> tuple[float, float, float]:
    """Milliseconds of a warm call: median and largest by the wall clock, and median of the CPU's."""
    walls, cpus = [], []
    for turn in range(WARM + ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        work(turn)
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
    return float(np.median(walls[WARM:])), max(walls[WARM:]), float(np.median(cpus[WARM:]))


def people(number: int) -> Any:
    return np.random.default_rng(0).integers(18, 90, size=(number, 2)).astype(float)


def opened(folder: Path, number: int, **how: Any) -> lc.Session:
    return lc.Session(people(number), cap=0.6, ledger=f"sqlite:///{folder / 'ledger'}", name="people", **how)


def bits() -> None:
    with own_folder() as folder:
        session = opened(folder, PEOPLE)

        def ask(block: int, turn: int) -> None:
            assert not session.mean("0", bounds=(0, 120), share=1e-3 * (1 + 1e-3 * turn + 1e-6 * block)).again

        blocks = np.array([taken(partial(ask, block)) for block in range(BLOCKS)])
    median, largest, cpu = np.median(blocks[:, 0]), blocks[:, 1].max(), np.median(blocks[:, 2])
    span = f"{blocks[:, 0].min():.0f} to {blocks[:, 0].max():.0f} ms"
    print(f"bits: {median:.1f} ms ({span}), at most {largest:.0f}; {cpu:.1f} CPU ms", flush=True)
    record(
        "session-latency-bits",
        f"{median:.0f} ms ({BLOCKS} times in one run: {span}; CPU {cpu:.0f} ms; the longest answer {largest:.0f} ms)",
        topic=TOPIC,
        claim=f"A warm session of {PEOPLE:,} people with a coin each, SQLite: a mean, median of {ROUNDS}",
        command="python -m benchmarks.session_latency bits",
        asked="under 50 ms",
    )


def worlds() -> None:
    found = {}
    with own_folder() as folder:
        session = opened(folder, FEW, design="worlds", worlds=WORLDS)

        def noised(turn: int) -> None:
            answer = session.count(where=f'"0" > {30 + turn}', noise=10 * np.sqrt(FEW))
            assert answer.whole and not answer.again

        def shared(turn: int) -> None:
            answer = session.count(where=f'"1" > {30 + turn}', share=0.002)
            assert answer.whole and not answer.again

        for how, ask in {"noise=": noised, "share=": shared}.items():
            found[how] = taken(ask)
            print(
                f"worlds, {how}: {found[how][0]:.0f} ms, at most {found[how][1]:.0f}; {found[how][2]:.0f} CPU ms",
                flush=True,
            )
    record(
        "session-latency-worlds",
        "; ".join(
            f"with {how} {median:.0f} ms (CPU {cpu:.0f} ms, at most {largest:.0f} ms)"
            for how, (median, largest, cpu) in found.items()
        ),
        topic=TOPIC,
        claim=f"A warm session on {WORLDS:,} listed worlds of {FEW:,} people, SQLite: a count, median of {ROUNDS}",
        command="python -m benchmarks.session_latency worlds",
        asked="under 1 s",
    )


class Disk:
    """The disk's own part of an entry: so many bytes are written to one file, a line to another, and both synced."""

    def __init__(self, folder: Path, size: int) -> None:
        self.content, self.line = os.urandom(size), os.urandom(256)
        flags = os.O_RDWR | os.O_CREAT
        self.log, self.key = (os.open(folder / name, flags, 0o600) for name in ("log", "line"))
        for handle in (self.log, self.key):
            os.pwrite(handle, self.content, 0)
            os.fsync(handle)

    def write(self) -> None:
        os.pwrite(self.log, self.content, 0)
        os.fdatasync(self.log)
        os.pwrite(self.key, self.line, 0)
        os.fsync(self.key)


def ledger() -> None:
    found = []
    for number in (FEW, PEOPLE):
        with own_folder() as folder:
            session = opened(folder, number)
            session.count(share=1e-3)
            desk: Any = session._desk
            with desk.account.reading() as now:
                body = now.latest().body
            disk = Disk(folder, 8 * number + 8192)  # clocks, an entry and what lies beside it
            entries, disks = [], []
            for turn in range(WARM + ROUNDS):
                began = time.perf_counter()
                with desk.account.writing() as now:
                    now.answered(f"question {turn}")
                    clocks = Spent.read(now, "")
                    clocks.after(desk.people, clocks.of(desk.people) + 1).write(now, "", clocks)
                    now.append("answer", body, charge=1, question=f"question {turn}")
                middle = time.perf_counter()
                disk.write()
                entries.append(1000 * (middle - began))
                disks.append(1000 * (time.perf_counter() - middle))
        whole, own = float(np.median(entries[WARM:])), float(np.median(disks[WARM:]))
        found.append(f"{number:,} people: {whole - own:.1f} ms ({whole:.1f} in all, {own:.1f} the disk's)")
        print("ledger,", found[-1], f"at most {max(entries[WARM:]):.0f}", flush=True)
    record(
        "session-latency-ledger",
        "; ".join(found),
        topic=TOPIC,
        claim=f"An entry in the ledger of a session, SQLite: the transaction beyond the disk's own syncs, median of "
        f"{ROUNDS}",
        command="python -m benchmarks.session_latency ledger",
        asked="under 5 ms",
    )


PARTS = {"bits": bits, "worlds": worlds, "ledger": ledger}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
