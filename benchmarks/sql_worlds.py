"""SQL on a list of worlds: what cohorts do to the noise, and what all worlds cost beside one plain query.

`python -m benchmarks.sql_worlds [noise] [speed]`. TPC-H at scale 1, tables made by `tpchgen-cli parquet -s 1` in the
folder that LEAKCAP_TPCH names; a customer is a unit. Registered tables are kept beside them.

`noise`: the deviation that takes the same share of the clock (by one price: charges go with the square), and the
sampling error of a half, with people in cohorts and without. `speed`: CPU and wall clock of evaluating a question and
of making its numbers in every world, over those of plain DuckDB on the same tables: one process, two threads, in turn.
Calibration and ledger are apart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.sql.plain import Plain
from tests.sql.test_right import TPCH_BOUNDS, TPCH_LINKS
from tests.sql.tpch_queries import QUERIES

import leakcap as lc
from benchmarks.records import record
from benchmarks.sql_speed import PUBLISHED, taken
from leakcap.custody.ledger.accounts import Secret
from leakcap.sessions.cohorts import Cohorts
from leakcap.sessions.listed_worlds.charges import TICKS, Clocks
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.sql.compile import compiled
from leakcap.sql.engine import EngineLimits, LocalEngine
from leakcap.sql.evaluate import public_table
from leakcap.sql.in_worlds import in_worlds
from leakcap.worlds import draw_worlds

TOPIC = "Questions in SQL"
ANSWERED = (1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 17, 19, 21, 22)  # by a list of worlds: 15 and 20 have too many numbers
PUBLIC = ["nation", "region", "supplier", "part", "partsupp"]
ROWS = {"customer": 1, "orders": 50, "lineitem": 300}
WORLDS, COHORTS, SHARE, SEEDS, REPEATS = 1024, (256, 1024, 4096), 0.05, 3, 3
NOISE = 3.0  # sampling errors, at which prices are asked for
ASKED = {
    "all customers": "select count(*) from customer",
    "customers of a segment": "select count(*) from customer where c_mktsegment = 'BUILDING'",
    "debtors of a nation": "select count(*) from customer where c_nationkey = 7 and c_acctbal < 0",
    "orders of a quarter": "select count(*) from orders where o_orderdate between '1993-07-01' and '1993-09-30'",
    "urgent orders": "select count(*) from orders where o_orderpriority = '1-URGENT'",
    "all orders": "select count(*) from orders",
    "revenue": "select sum(l_extendedprice * (1 - l_discount)) from lineitem",
    "revenue of a year, discounted": QUERIES[6],
    "quantity shipped by air": "select sum(l_quantity) from lineitem where l_shipmode = 'AIR'",
    "balances": "select sum(c_acctbal) from customer",
}


def catalog() -> lc.sql.Catalog:
    """The tables, registered once."""
    folder = Path(os.environ.get("LEAKCAP_TPCH", "tpch"))
    place = folder / "registered.duckdb"
    if place.exists():
        return lc.sql.Catalog.load(place)
    files = {one.stem: one for one in sorted(folder.glob("*.parquet"))}
    if not files:
        raise SystemExit("make the tables first: tpchgen-cli parquet -s 1 --output-dir=tpch, or name their folder")
    settings = {"links": TPCH_LINKS, "bounds": TPCH_BOUNDS, "rows_per_unit": ROWS, "public": PUBLIC, "path": place}
    return lc.sql.register(files, unit="customer.c_custkey", **settings)


def noise() -> None:
    tables = catalog()
    names, engine = tables.session_data()[1], LocalEngine(tables.path, EngineLimits(threads=2))
    rule = Clocks(potentials_of([lc.membership(0.6)], 0.5))
    needed: dict[int, list[float]] = {count: [] for count in COHORTS}
    spread: dict[int, list[float]] = {count: [] for count in COHORTS}
    for words, text in ASKED.items():
        known = in_worlds(compiled(text, tables, worlds=True).releases[0], tables, engine, {})

        def seen(count: int | None, seed: int, deviations: float, known: Any = known) -> tuple[float, float]:
            """What the noise takes of the clock of whoever pays most, as a deviation; and the sampling error."""
            cohorts = None if count is None else Cohorts.of(names, Secret(np.random.default_rng(seed).bytes(32)), count)
            listed = draw_worlds(count or len(names), WORLDS, np.random.default_rng(seed))
            outputs = 2 * replace(known, cohort_of=None if cohorts is None else cohorts.of_unit).table(listed)[:, 0, 0]
            if not np.ptp(outputs):
                return 0.0, 0.0
            worlds = ListedWorlds(listed, rule)
            priced = worlds.price(worlds.begin(), outputs, deviations)
            assert priced is not None
            return deviations * float(np.sqrt(priced.charges.max() / TICKS / SHARE)), float(outputs.std())

        brought = known.made.values[:, 0]
        deviations = NOISE * float(np.sqrt((brought**2).sum()))
        own = np.mean([seen(None, seed, deviations) for seed in range(SEEDS)], axis=0)
        for count in COHORTS:
            with_them = np.mean([seen(count, seed, deviations) for seed in range(SEEDS)], axis=0)
            if own[1] > 0:  # how many people there are is the same in every half
                needed[count].append(with_them[0] / own[0])
                spread[count].append(with_them[1] / own[1])
        told = ", ".join(f"{count}: {needed[count][-1]:.3f}" for count in COHORTS) if own[1] > 0 else "always the same"
        print(f"{words}: noise {own[0]:.4g}, sampling error {own[1]:.4g}; {told}", flush=True)
    parts = [
        f"{count:,} cohorts: {_mean(needed[count]):.3f} ({min(needed[count]):.2f} to {max(needed[count]):.2f}), "
        f"sampling error {_mean(spread[count]):.3f}"
        for count in COHORTS
    ]
    record(
        "sql-worlds-noise",
        f"{'; '.join(parts)} (geometric means over {len(needed[1024])} counts and sums, means of {SEEDS} lists each)",
        topic=TOPIC,
        claim=f"TPC-H scale 1, {WORLDS:,} worlds, membership cap .60: noise of a count or a sum for {SHARE:.0%} of the "
        "clock with people in cohorts, over that with each person by themselves",
        command="python -m benchmarks.sql_worlds noise",
        asked="at most 1.10 at 1,024 cohorts",
    )


def speed() -> None:
    tables = catalog()
    names, engine = tables.session_data()[1], LocalEngine(tables.path, EngineLimits(threads=2))
    plain = Plain(tables, np.zeros(len(names), dtype=bool))
    for one in tables.tables.values():
        columns = ", ".join(f'{each.place} AS "{each.name}"' for each in one.columns)
        plain.file.execute(f'CREATE OR REPLACE TEMP VIEW "{one.name}" AS SELECT {columns} FROM {one.place}')
    cohort_of = Cohorts.of(names, Secret(bytes(32)), 1024).of_unit
    rng = np.random.default_rng(0)
    lists = {
        f"{units}, {worlds:,} worlds": (cohort, draw_worlds(people, worlds, rng))
        for units, cohort, people in (("cohorts", cohort_of, 1024), ("people", None, len(names)))
        for worlds in (64, 1024)
    }
    ratios: dict[str, list[np.ndarray]] = {name: [] for name in lists}  # wall and CPU
    for number in ANSWERED:
        ways: dict[str, Callable[[], Any]] = {"plain": lambda number=number: plain.run(QUERIES[number])}  # type: ignore[misc]
        for name, (cohort, worlds) in lists.items():
            ways[name] = lambda n=number, c=cohort, w=worlds: every_world(tables, engine, QUERIES[n], c, w)  # type: ignore[misc]
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, way in ways.items():
                times[name].append(taken(way))
        least = {name: np.min(seen, axis=0) for name, seen in times.items()}
        for name in lists:
            ratios[name].append(least[name] / least["plain"])
        shown = ", ".join("{} {:.2f} (wall {:.2f})".format(name, *ratios[name][-1][::-1]) for name in lists)
        print(f"Q{number}: plain {least['plain'][1]:.3f} s; {shown}", flush=True)
    for name, asked in zip(lists, ("at most 1.5", "at most 1.8", "-", "-"), strict=True):
        walls, cpus = np.transpose(ratios[name])
        worst = int(np.argmax(cpus))
        units = "1,024 cohorts" if name.startswith("cohorts") else "each person by themselves"
        record(
            f"sql-worlds-speed-{name.split(',')[0]}-{name.split(' ')[1].replace(',', '')}",
            f"CPU {_mean(cpus):.2f} times, at most {cpus[worst]:.2f} (Q{ANSWERED[worst]}); wall {_mean(walls):.2f}, at "
            f"most {walls.max():.2f}; {sum(cpus > 4)} of {len(ANSWERED)} above 4",
            topic=TOPIC,
            claim=f"TPC-H scale 1, the {len(ANSWERED)} questions that a list of worlds answers (15 and 20 have too"
            f" many numbers): CPU and wall of the numbers in {name.split(', ')[1]}, {units}, over plain DuckDB; "
            f"geometric mean, least of {REPEATS}; published of the extension for 64 worlds: {PUBLISHED}",
            command="python -m benchmarks.sql_worlds speed",
            asked=asked,
        )


def every_world(tables: lc.sql.Catalog, engine: LocalEngine, text: str, cohort_of: Any, worlds: Any) -> Any:
    """All numbers of a question in every world, and the last table in the first of them."""
    program, known = compiled(text, tables, worlds=True), {}
    for release in program.releases:
        made = in_worlds(release, tables, engine, known, cohort_of)
        known[release.table] = public_table(made.made, made.table(worlds)[0])
    return engine.run(program.last, known)


def _mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


PARTS = {"noise": noise, "speed": speed}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
