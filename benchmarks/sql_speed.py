"""How long SQL in a session takes beside the same text in plain DuckDB: TPC-H, customers as the people.

`python -m benchmarks.sql_speed [tables] [queries] [groups] [worlds] [session] [texts]`, where `tables` is a folder of
Parquet files or a registered file; without one, tpchgen-cli makes scale 1. In one process and in turn: the analyst's
own text in plain DuckDB on the registered tables, and all that a session does from the text to exact noised sums and
the last table, in this process as in its worker. Two threads each, CPU seconds of all threads, medians. Finding the
noise (`calibration`) is left out and listed apart, as the ledger and the worker's start are.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow
from tests.sql.test_right import BY_PEOPLE, PUBLIC, TPCH_BOUNDS, TPCH_LINKS
from tests.sql.tpch_queries import QUERIES

import leakcap as lc
from benchmarks.records import record
from leakcap.noise.entropy import OperatingSystem
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.clock import TICKS, Clock
from leakcap.sessions.desk import Desk
from leakcap.sessions.linear import paying, with_noise
from leakcap.sql.asking import limits_of
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine, WorkerEngine
from leakcap.sql.evaluate import CellSums, answered

REPEATS, MANY_REPEATS, SHARE, WORLDS, SOME_WORLDS = 5, 25, 0.01, 64, 4
TOPIC = "Questions in SQL"
COMMAND = "python -m benchmarks.sql_speed"
PUBLISHED = "1.55 times plain DuckDB"  # of the extension that answers from 64 worlds, on TPC-H, by its authors
ANSWERED = [number for number in QUERIES if number not in (*BY_PEOPLE, *PUBLIC)]
MANY = {
    "a count by 10,000 suppliers": "select l_suppkey, count(*) from lineitem group by l_suppkey",
    "a count and a sum by 10,000 suppliers": "select l_suppkey, count(*), sum(l_extendedprice) from lineitem "
    "group by l_suppkey",
}


def registered(place: str | None) -> lc.sql.Catalog:
    """TPC-H, customers as the people."""
    if place is not None and Path(place).is_file():
        return lc.sql.Catalog.load(place)
    folder = Path(tempfile.mkdtemp()) if place is None else Path(place)
    if place is None:
        tool = shutil.which("tpchgen-cli") or str(Path(sys.executable).parent / "tpchgen-cli")
        subprocess.run([tool, "parquet", "-s", "1", f"--output-dir={folder}"], check=True, capture_output=True)
    return lc.sql.register(
        folder,
        unit="customer.c_custkey",
        links=TPCH_LINKS,
        bounds=TPCH_BOUNDS,
        rows_per_unit={"customer": 1, "orders": 50, "lineitem": 300},
        public=["nation", "region", "supplier", "part", "partsupp"],
    )


@dataclass
class Beside:
    """A question asked both ways, in turn."""

    catalog: lc.sql.Catalog
    calibration: float = 0.0  # CPU seconds of the last question
    engine: LocalEngine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = LocalEngine(self.catalog.path)
        self.plain = self.engine.file.cursor()
        for table in self.catalog.tables.values():
            columns = ", ".join(f'{one.place} AS "{one.name}"' for one in table.columns)
            self.plain.execute(f'CREATE TEMP VIEW "{table.name}" AS SELECT {columns} FROM {table.place}')
        self.coins = np.random.default_rng(0).random(self.catalog.people) < 0.5
        self.spent = np.zeros(self.catalog.people, dtype=np.int64)
        self.clock, self.randomness = Clock.of((lc.membership(0.6),)), OperatingSystem()

    def plainly(self, text: str) -> Any:
        return self.plain.sql(text).to_arrow_table()

    def privately(self, text: str) -> Any:
        """As `Desk` does it: everybody is charged, whoever cannot pay is left out, and sums are exact."""
        self.calibration = 0.0
        return answered(compiled(text, self.catalog), self.catalog, self.engine, self._noised)[0]

    def _noised(self, made: CellSums) -> Any:
        if not made.groups:
            return np.empty((0, len(made.release.sums)))
        within = limits_of(made) if made.release.base.most is not None else None
        sums = BroughtByCell(made.rows, within, np.ravel, public=True, coins=self.coins)
        began = time.process_time()
        deviations = 2 * sums.limits.least(self.clock.share(SHARE))
        self.calibration += time.process_time() - began
        payment = paying(sums.charges(deviations, self.clock, False), self.spent, TICKS)
        total, grains, _ = sums.totals(deviations, payment.pays, self.coins, False)
        return with_noise(total, np.asarray(grains), deviations, self.randomness).reshape(made.groups, -1)

    def ratios(self, text: str, repeats: int = REPEATS) -> tuple[float, float, float]:
        """Wall, CPU, and milliseconds of calibration."""
        walls, cpus, apart = [], [], []
        self.plainly(text), self.privately(text)
        for _ in range(repeats):
            plain = taken(lambda: self.plainly(text))
            mine = taken(lambda: self.privately(text))
            apart.append(1000 * self.calibration)
            walls.append((plain[0], mine[0] - self.calibration))
            cpus.append((plain[1], mine[1] - self.calibration))
        (plain_wall, wall), (plain_cpu, cpu) = np.median(walls, axis=0), np.median(cpus, axis=0)
        return wall / plain_wall, cpu / plain_cpu, float(np.median(apart))


def taken(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the wall clock, and of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def middle(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def queries(beside: Beside) -> None:
    found = {}
    for number in ANSWERED:
        found[number] = beside.ratios(QUERIES[number])
        wall, cpu, apart = found[number]
        print(f"Q{number}: wall {wall:.2f}, CPU {cpu:.2f}; calibration {apart:.1f} ms", flush=True)
    walls, cpus = ([one[at] for one in found.values()] for at in (0, 1))
    worst = max(found, key=lambda one: found[one][1])
    each = ", ".join(f"Q{number} {one[1]:.2f}" for number, one in found.items())
    record(
        "sql-speed-tpch",
        f"CPU {middle(cpus):.2f} (wall {middle(walls):.2f}); most Q{worst} {max(cpus):.2f} (wall {max(walls):.2f}); "
        f"{each}; calibration apart, at most {max(one[2] for one in found.values()):.0f} ms",
        topic=TOPIC,
        claim=f"TPC-H scale 1, `bits`: the {len(ANSWERED)} answered queries beside plain DuckDB, geometric mean; "
        f"published of the extension for 64 worlds: {PUBLISHED}",
        command=f"{COMMAND} queries",
        asked="at most 1.6; no query over 4",
    )


def groups(beside: Beside) -> None:
    found = {name: beside.ratios(text, MANY_REPEATS) for name, text in MANY.items()}
    seen = "; ".join(f"{name} CPU {one[1]:.2f} (wall {one[0]:.2f})" for name, one in found.items())
    print(seen, flush=True)
    record(
        "sql-speed-groups",
        seen,
        topic=TOPIC,
        claim="TPC-H scale 1, `bits`: 10,000 groups of 6 million rows beside plain DuckDB, medians of "
        f"{MANY_REPEATS} turns",
        command=f"{COMMAND} groups",
        asked="at most 2",
    )


def worlds(beside: Beside) -> None:
    """The rule that runs the question once in every world."""
    found = {}
    for number in (1, 6, 12):
        plain = np.median([taken(lambda n=number: beside.plainly(QUERIES[n]))[1] for _ in range(REPEATS)])
        some = beside.engine.file.cursor()
        some.register("who", _members(beside.coins))
        for table in beside.catalog.tables.values():
            columns = ", ".join(f'{one.place} AS "{one.name}"' for one in table.columns)
            where = " WHERE unit IN (SELECT u FROM who)" if table.private else ""
            some.execute(f'CREATE TEMP VIEW "{table.name}" AS SELECT {columns} FROM {table.place}{where}')
        once = [taken(lambda n=number, at=some: at.sql(QUERIES[n]).to_arrow_table())[1] for _ in range(SOME_WORLDS)]
        found[number] = WORLDS * float(np.median(once)) / plain
    seen = ", ".join(f"Q{number} {one:.0f}" for number, one in found.items())
    print(seen, flush=True)
    record(
        "sql-speed-one-query-per-world",
        f"{seen} (CPU; {SOME_WORLDS} worlds measured)",
        topic=TOPIC,
        claim=f"TPC-H scale 1: one query for each of {WORLDS} worlds, beside one query of the pool",
        command=f"{COMMAND} worlds",
        asked="-",
    )


def _members(coins: Any) -> Any:
    return pyarrow.table({"u": np.flatnonzero(coins).astype(np.int32)})


def session(beside: Beside) -> None:
    """A whole answer: with the worker's start, its cold tables, the noise, and the ledger."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        asked = lc.Session(beside.catalog, cap=0.6, ledger=f"sqlite:///{folder}/ledger", name="tpch")
        for number in (1, 6, 12):
            plain = np.median([taken(lambda n=number: beside.plainly(QUERIES[n]))[1] for _ in range(REPEATS)])
            seconds = []
            for turn in range(REPEATS):
                began = _with_workers()
                asked.sql(QUERIES[number], share=SHARE * (1 + 1e-3 * turn))
                seconds.append(_with_workers() - began)
            found[number] = 1000 * plain, 1000 * float(np.median(seconds))
    started = 1000 * float(np.median([_of_start(beside.catalog.path) for _ in range(REPEATS)]))
    with tempfile.TemporaryDirectory() as folder:
        kept = lc.Session(beside.catalog, cap=0.6, ledger=f"sqlite:///{folder}/ledger", name="tpch")
        written = 1000 * float(np.median([_of_ledger(kept, SHARE * (1 + 1e-3 * turn)) for turn in range(REPEATS)]))
    seen = "; ".join(f"Q{number} {mine:.0f} ms (plain {plain:.0f} ms)" for number, (plain, mine) in found.items())
    seen += f"; of these, apart: the start of the process {started:.0f} ms, the desk and the ledger {written:.0f} ms"
    print(seen, flush=True)
    record(
        "sql-speed-session",
        seen,
        topic=TOPIC,
        claim="TPC-H scale 1: CPU time of `session.sql` as it is called, with a process of its own for each question, "
        "tables that nobody has read before, and the ledger",
        command=f"{COMMAND} session",
        asked="-",
    )


def _of_start(path: Path) -> float:
    """CPU seconds of a process that has its tables open and answers a question about none."""
    began = _with_workers()
    engine = WorkerEngine(path)
    engine.run("SELECT 1 AS one", {})
    engine.close()
    return _with_workers() - began


def _of_ledger(kept: lc.Session, share: float) -> float:
    """CPU seconds of charging everybody for one number, drawing it and writing it down."""
    held: list[float] = []
    answer = Desk.answer

    def timed(desk: Desk, *question: Any, **how: Any) -> Any:
        began = time.process_time()
        try:
            return answer(desk, *question, **how)
        finally:
            held.append(time.process_time() - began)

    with mock.patch.object(Desk, "answer", timed):
        kept.sql("select count(*) from customer", share=share)
    return sum(held)


def _with_workers() -> float:
    """CPU seconds of this process and of those that it has ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


TEXTS = {
    "by two texts": "select l_returnflag, l_linestatus, sum(l_quantity) from lineitem group by 1, 2",
    "by person and two texts": "select unit, l_returnflag, l_linestatus, sum(l_quantity) from lineitem "
    "group by 1, 2, 3",
    "by one text": "select l_shipmode, count(*) from lineitem group by 1",
    "equal to one": "select count(*) from lineitem where l_shipmode = 'AIR'",
    "LIKE": "select count(*) from lineitem where l_shipmode like 'A%'",
    "the place in a list": "select unit, list_position(['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'], "
    "l_shipmode::varchar) from lineitem",
}


def texts(beside: Beside) -> None:
    """Text of few values as the engine's ENUM, over the same as text; in a file, which compresses both."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(f"{folder}/texts.duckdb") as file:
        file.execute("SET threads = 2")
        _both_kinds(beside, file)
        seen = {}
        for words, text in TEXTS.items():
            taken_by: dict[str, list[float]] = {"plain": [], "few": []}
            for _ in range(2 * REPEATS):
                for kind, cpus in taken_by.items():
                    cpus.append(taken(lambda t=text, k=kind: _of_kind(file, t, k))[1])  # type: ignore[misc]
            seen[words] = float(np.median(taken_by["few"]) / np.median(taken_by["plain"]))
            print(words, f"{seen[words]:.2f}", flush=True)
    record(
        "sql-speed-texts",
        ", ".join(f"{words} {one:.2f}" for words, one in seen.items())
        + f"; geometric mean {middle([*seen.values()]):.2f}",
        topic=TOPIC,
        claim="TPC-H scale 1, lineitem: CPU of plain DuckDB on text of few values that is kept as ENUM, over the same "
        "kept as text",
        command=f"{COMMAND} texts",
        asked="-",
    )


def _both_kinds(beside: Beside, file: Any) -> None:
    """The same columns in two tables, `plain` and `few`."""
    table = beside.catalog.tables["lineitem"]
    columns = {one.name: one for one in table.columns}
    kept = {name: columns[name] for name in ("l_quantity", "l_returnflag", "l_linestatus", "l_shipmode")}
    listed = ", ".join(f"{one.place} AS {name}" for name, one in kept.items())
    file.register("given", beside.engine.file.sql(f"SELECT unit, {listed} FROM {table.place}").to_arrow_table())
    file.execute("CREATE TABLE plain AS SELECT * FROM given")
    levels = {name: one.levels for name, one in kept.items() if one.levels is not None}
    for name, values in levels.items():
        file.execute(f"CREATE TYPE {name}_of AS ENUM ({', '.join(map(repr, values))})")
    shorter = ", ".join(f"{name}::{name}_of AS {name}" for name in levels)
    file.execute(f"CREATE TABLE few AS SELECT * REPLACE ({shorter}) FROM given")
    file.execute("CHECKPOINT")


def _of_kind(stored: Any, text: str, kind: str) -> Any:
    return stored.sql(text.replace("from lineitem", f"from {kind}")).to_arrow_table()


PARTS = {"queries": queries, "groups": groups, "worlds": worlds, "session": session, "texts": texts}

if __name__ == "__main__":
    given = [one for one in sys.argv[1:] if one not in PARTS]
    both = Beside(registered(given[0] if given else None))
    for part in [one for one in sys.argv[1:] if one in PARTS] or PARTS:
        PARTS[part](both)
