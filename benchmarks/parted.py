"""Data in partitions, streamed by one machine: seconds and memory of a session's answers, beside one table and DuckDB.

`python -m benchmarks parted [--rows=N]`: ten rows a person, eight columns, made partition by partition. What a row
costs is the time of this process, which other programs hardly lengthen.
"""

from __future__ import annotations

import functools
import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import leakcap as lc
from benchmarks.records import record

COLUMNS = [f"x{place}" for place in range(8)]
ROWS_OF_ONE = 10
PART = 1_000_000
MEMORY = 2 * 2**30
BOUNDS = (-5.0, 5.0)
QUESTIONS = {
    "means": lambda session: session.mean(COLUMNS, bounds=BOUNDS, share=0.01),
    "histogram": lambda session: session.histogram("x0", bounds=BOUNDS, bins=20, share=0.01),
    "covariance": lambda session: session.covariance(COLUMNS, bounds=BOUNDS, share=0.01),
}


def main(rows=10_000_000) -> None:
    for argument in sys.argv[1:]:
        if argument.startswith("--rows="):
            rows = int(argument.removeprefix("--rows="))
    ours = _streamed(rows)
    table, duck = _one_table(), _duck()
    for kind, spent in ours["questions"].items():
        words = f"{spent:.0f} ns a row, {spent / table[kind]:.2f} times one table's {table[kind]:.0f}"
        words += f", {spent / duck[kind]:.1f} times DuckDB's {duck[kind]:.0f}" if kind in duck else ""
        print(f"{kind}: {words}")
        _record(rows, kind, words, f"{kind} of a session over {rows:,} rows x 8 columns in partitions")
    words = f"{ours['peak']:.2f} GiB at most, {ours['dealt']:.0f} ns a row to deal them, {ours['wall']:.0f} s in all"
    print(words)
    _record(rows, "memory", words, f"{rows:,} rows x 8 columns streamed by one machine: memory, and dealing")


def _record(rows: int, what: str, seen: str, claim: str) -> None:
    record(
        f"parted-{rows}-{what}",
        seen,
        topic="Beyond one machine",
        claim=claim,
        command=f"python -m benchmarks parted --rows={rows}",
        asked="4 GiB; 1.2 times one table; 2 times DuckDB",
    )


def _part(place: int, rows: int, people: int) -> pd.DataFrame:
    rng = np.random.default_rng(place)
    frame = pd.DataFrame(rng.normal(size=(rows, len(COLUMNS))), columns=COLUMNS)
    return frame.assign(who=rng.integers(0, people, rows))


def _streamed(rows: int) -> dict:
    parts = [
        functools.partial(_part, place, min(PART, rows - place * PART), rows // ROWS_OF_ONE)
        for place in range(-(-rows // PART))
    ]
    wall, began = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        how = {"cap": 0.6, "unit": "who", "rows_per_unit": 2 * ROWS_OF_ONE, "seed": 0}
        session = lc.Session(lc.partitions(parts, memory=MEMORY, folder=folder), **how)
        dealt = time.process_time() - began
        questions = {kind: _nanoseconds(ask, session, rows) for kind, ask in QUESTIONS.items()}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        del session
    wall = time.perf_counter() - wall
    return {"dealt": dealt / rows * 1e9, "questions": questions, "peak": peak, "wall": wall}


def _one_table() -> dict[str, float]:
    frame = _part(0, PART, PART // ROWS_OF_ONE)
    session = lc.Session(frame, cap=0.6, unit="who", rows_per_unit=2 * ROWS_OF_ONE, seed=0)
    return {kind: _nanoseconds(ask, session, PART) for kind, ask in QUESTIONS.items()}


def _duck() -> dict[str, float]:
    """The same sums over the same rows, from a Parquet file, by one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        _part(0, PART, PART // ROWS_OF_ONE).to_parquet(path)
        engine = duckdb.connect()
        engine.execute("SET threads = 1")
        pairs = ", ".join(f"sum({a} * {b})" for place, a in enumerate(COLUMNS) for b in COLUMNS[place:])
        texts = {
            "means": f"SELECT {', '.join(f'avg({one})' for one in COLUMNS)} FROM '{path}'",
            "histogram": f"SELECT floor(x0 * 2), count(*) FROM '{path}' GROUP BY 1",
            "covariance": f"SELECT {pairs} FROM '{path}'",
        }
        return {
            kind: _nanoseconds(lambda one, text=text: one.execute(text).fetchall(), engine, PART)
            for kind, text in texts.items()
        }


def _nanoseconds(ask, of, rows: int) -> float:
    began = time.process_time()
    ask(of)
    return (time.process_time() - began) / rows * 1e9
