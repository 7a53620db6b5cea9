"""SQL over partitions: a count, sums by group and a join, beside one DuckDB that has the whole.

    python -m benchmarks.parted_sql [--rows=N]

Visits of people, ten each, in Parquet files of a million rows, and a table of the people. The same text is answered by
plain DuckDB from the registered file; by a session with one engine; by one with an engine for every million rows, one
after the other; and by two Dask workers, which have their parts already. Seconds by the wall clock, two cores each.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import duckdb
import numpy as np
import pandas as pd

import leakcap as lc
from benchmarks.records import record

PARTS: tuple[str, ...] = ()  # it is one
FLAGS = ("--rows",)
PART, VISITS, REGIONS, WARDS = 1_000_000, 10, 8, 20
TEXTS = {
    "a count": "select count(*) from visits where cost > 50",
    "sums by group": "select ward, count(*), sum(cost) from visits group by ward",
    "a join": "select region, sum(cost) from visits join people on visits.who = people.id group by region",
}


def main(rows: int = 4_000_000) -> None:
    for argument in sys.argv[1:]:
        if argument.startswith("--rows="):
            rows = int(argument.removeprefix("--rows="))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as room:
        began = time.perf_counter()
        catalog = _registered(Path(room), rows)
        print(f"registered in {time.perf_counter() - began:.0f} s, {catalog.parts} parts", flush=True)
        plain = _plain(catalog)
        with lc.cluster.connect(workers=2) as cluster:
            one, parted, there = (
                lc.Session(made, cap=0.6, seed=1, backend=backend)
                for made, backend in ((replace(catalog, parts=1), None), (catalog, None), (catalog, cluster))
            )
            for what, text in TEXTS.items():
                alone = _seconds(lambda _, text=text: plain.execute(text).fetchall())
                here = _seconds(lambda share, text=text: one.sql(text, share=share))
                with mock.patch("leakcap.sql.asking.AT_ONCE", 1):
                    apart = _seconds(lambda share, text=text: parted.sql(text, share=share))
                workers = _seconds(lambda share, text=text: there.sql(text, share=share))
                seen = f"{here:.2f} s by one engine, {apart:.2f} s in {catalog.parts} parts one after the other, "
                seen += f"{workers:.2f} s by two Dask workers; DuckDB's own {alone:.3f} s"
                print(f"{what}: {seen}", flush=True)
                record(
                    f"parted-sql-{rows}-{what.removeprefix('a ').replace(' ', '-')}",
                    seen,
                    topic="Beyond one machine",
                    claim=f"{what} in SQL over {rows:,} rows of {rows // VISITS:,} people, a session's answer included",
                    command=f"python -m benchmarks.parted_sql --rows={rows}",
                    asked="as DuckDB on the whole",
                )


def _registered(room: Path, rows: int) -> lc.sql.Catalog:
    rng, people, files = np.random.default_rng(0), rows // VISITS, room / "visits"
    files.mkdir()
    for place in range(-(-rows // PART)):
        some = min(PART, rows - place * PART)
        made = {"who": rng.integers(0, people, some), "ward": rng.integers(0, WARDS, some)}
        pd.DataFrame(made | {"cost": rng.exponential(100, some)}).to_parquet(files / f"{place:05d}.parquet")
    everybody = pd.DataFrame({"id": np.arange(people), "region": rng.integers(0, REGIONS, people)})
    return lc.sql.register(
        {"people": everybody, "visits": lc.partitions(str(files), memory=2**30, folder=str(room))},
        unit="people.id",
        links={"visits.who": "people.id"},
        bounds={"cost": (0, 500)},
        keys={"ward": range(WARDS), "region": range(REGIONS)},
        rows_per_unit={"people": 1, "visits": 2 * VISITS},
        path=room / "catalog.duckdb",
    )


def _plain(catalog: lc.sql.Catalog) -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect(str(catalog.path), read_only=True)
    engine.execute("SET threads = 2")
    for table in catalog.tables.values():
        columns = ", ".join(f'{one.place} AS "{one.name}"' for one in table.columns)
        engine.execute(f'CREATE TEMP VIEW "{table.name}" AS SELECT {columns} FROM {table.place}')
    return engine


def _seconds(ask: Callable[[float], object]) -> float:
    """The second time, when engines, loops and parts are there; another question, for it is another share."""
    ask(0.01)
    began = time.perf_counter()
    ask(0.0101)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
