"""Data in partitions, streamed by one machine: seconds and memory of a session's answers, beside one table and DuckDB.

`python -m benchmarks parted [--rows=N] [--folder=F] [--make | --worlds]`: ten rows a person, eight columns, in Parquet
files of a million rows, which are made if they are not there; with `--make` nothing else is done. With `--worlds` means
and covariances are made in 1,024 worlds instead. What a row costs is the time of this process, which other programs
hardly lengthen, once loops are compiled; DuckDB has one thread and reads the same files.
"""

from __future__ import annotations

import json
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

CURVE = Path(__file__).parent / "curves" / "parted.json"
COLUMNS = [f"x{place}" for place in range(8)]
ROWS_OF_ONE = 10
PART = 1_000_000
FEW = 5_000
WORLDS = 1024
MEMORY = 2 * 2**30
BOUNDS = (-5.0, 5.0)
HOW = {"cap": 0.6, "unit": "who", "rows_per_unit": 2 * ROWS_OF_ONE, "seed": 0}
QUESTIONS = {
    "means": lambda session: session.mean(COLUMNS, bounds=BOUNDS, share=0.01),
    "histogram": lambda session: session.histogram("x0", bounds=BOUNDS, bins=20, share=0.01),
    "covariance": lambda session: session.covariance(COLUMNS, bounds=BOUNDS, share=0.01),
}


def main(rows=10_000_000) -> None:
    folder, only = None, "--make" in sys.argv
    for argument in sys.argv[1:]:
        if argument.startswith("--rows="):
            rows = int(argument.removeprefix("--rows="))
        if argument.startswith("--folder="):
            folder = argument.removeprefix("--folder=")
    with tempfile.TemporaryDirectory(dir=folder) as own:
        files = Path(own if folder is None else folder) / f"rows-{rows}"
        _make(files, rows)
        if only:
            return
        (_in_worlds if "--worlds" in sys.argv else _measured)(files, rows, own)


def _measured(files: Path, rows: int, room: str) -> None:
    _compiled({**HOW}, lambda session: [ask(session) for ask in QUESTIONS.values()])
    ours = _streamed(files, rows, room)
    table, duck = _one_table(), _duck(files, rows)
    for kind, spent in ours["questions"].items():
        words = f"{spent:.0f} ns a row, {spent / table[kind]:.2f} times one table's {table[kind]:.0f}"
        words += f", {spent / duck[kind]:.2f} times DuckDB's {duck[kind]:.0f}"
        print(f"{kind}: {words}")
        _record(rows, kind, words, f"{kind} of a session over {rows:,} rows x 8 columns in partitions")
    _keep(rows, ours | {"table": table, "duck": duck})
    words = f"{ours['peak']:.2f} GiB at most, {ours['dealt']:.0f} ns a row to deal them, {ours['wall']:.0f} s in all"
    print(words)
    _record(rows, "memory", words, f"{rows:,} rows x 8 columns streamed by one machine: memory, and dealing")


def _in_worlds(files: Path, rows: int, room: str) -> None:
    how = {"cap": 0.6, "unit": "who", "seed": 0, "design": "worlds", "worlds": WORLDS}
    _compiled(how, lambda session: _all_worlds(session, FEW))
    began = time.process_time()
    session = lc.Session(lc.partitions(str(files), memory=MEMORY, folder=room), **how)
    dealt = (time.process_time() - began) / rows * 1e9
    first = _nanoseconds(lambda one: one._questions.count().in_worlds(one._desk.engine.worlds), session, rows)
    ours = _all_worlds(session, rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    whole = lc.Session(_part(0, PART, PART // ROWS_OF_ONE).sort_values("who", ignore_index=True), **how)
    table = [_all_worlds(whole, PART) for _ in range(2)][-1]
    _keep(rows, {"worlds": ours, "worlds table": table, "worlds peak": peak})
    for kind, spent in ours.items():
        words = f"{spent:.0f} ns a row, {spent / table[kind]:.2f} times one table's {table[kind]:.0f}"
        words += f"; {peak:.2f} GiB at most; once {dealt:,.0f} ns a row to deal them, {first:,.0f} for a first count"
        print(f"{kind}: {words}")
        claim = f"{kind} in {WORLDS:,} worlds over {rows:,} rows x 8 columns in partitions"
        _record(rows, f"worlds-{kind}", words, claim, " --worlds")


def _compiled(how: dict, ask) -> None:
    """What a process does once: no row costs it."""
    ask(lc.Session(lc.partitions([_part(0, FEW, FEW // ROWS_OF_ONE)]), **how))


def _keep(rows: int, figures: dict) -> None:
    """Beside those of the other questions and sizes."""
    known = json.loads(CURVE.read_text()) if CURVE.exists() else {}
    known[str(rows)] = known.get(str(rows), {}) | figures
    CURVE.write_text(json.dumps(known, indent=1) + "\n")


def _all_worlds(session: lc.Session, rows: int) -> dict[str, float]:
    worlds, asked = session._desk.engine.worlds, session._questions
    questions = {"means": asked.mean(COLUMNS), "covariances": asked.covariance(COLUMNS)}
    return {
        kind: _nanoseconds(lambda _, one=question: one.in_worlds(worlds), session, rows)
        for kind, question in questions.items()
    }


def _record(rows: int, what: str, seen: str, claim: str, how: str = "") -> None:
    record(
        f"parted-{rows}-{what}",
        seen,
        topic="Beyond one machine",
        claim=claim,
        command=f"python -m benchmarks parted --rows={rows}{how}",
        asked="4 GiB; 1.2 times one table; 2 times DuckDB",
    )


def _make(files: Path, rows: int) -> None:
    """The files that are not there yet, each whole or not at all."""
    files.mkdir(parents=True, exist_ok=True)
    for place in range(-(-rows // PART)):
        path = files / f"{place:05d}.parquet"
        if not path.exists():
            made = _part(place, min(PART, rows - place * PART), rows // ROWS_OF_ONE)
            made.to_parquet(path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)


def _part(place: int, rows: int, people: int) -> pd.DataFrame:
    rng = np.random.default_rng(place)
    frame = pd.DataFrame(rng.normal(size=(rows, len(COLUMNS))), columns=COLUMNS)
    return frame.assign(who=rng.integers(0, people, rows))


def _streamed(files: Path, rows: int, room: str) -> dict:
    wall, began = time.perf_counter(), time.process_time()
    session = lc.Session(lc.partitions(str(files), memory=MEMORY, folder=room), **HOW)
    dealt = time.process_time() - began
    questions = {kind: _nanoseconds(ask, session, rows) for kind, ask in QUESTIONS.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "dealt": dealt / rows * 1e9,
        "questions": questions,
        "peak": peak,
        "wall": time.perf_counter() - wall,
    }


def _one_table() -> dict[str, float]:
    """In memory, by person as shards are, and warm: the second time that each is asked."""
    frame = _part(0, PART, PART // ROWS_OF_ONE).sort_values("who", ignore_index=True)  # as shards are
    found = {}
    for _ in range(2):
        session = lc.Session(frame, **HOW)
        found = {kind: _nanoseconds(ask, session, PART) for kind, ask in QUESTIONS.items()}
    return found


def _duck(files: Path, rows: int) -> dict[str, float]:
    """The same sums over the same files, by one thread."""
    engine, source = duckdb.connect(), f"read_parquet('{files}/*.parquet')"
    engine.execute("SET threads = 1")
    engine.execute("SET memory_limit = '2GiB'")
    pairs = [f"sum({a} * {b})" for place, a in enumerate(COLUMNS) for b in COLUMNS[place:]]
    sums = [f"sum({one})" for one in COLUMNS]
    texts = {
        "means": f"SELECT {', '.join(sums)}, count(*) FROM {source}",
        "histogram": f"SELECT floor(x0 * 2), count(*) FROM {source} GROUP BY 1",
        "covariance": f"SELECT {', '.join(pairs + sums)}, count(*) FROM {source}",
    }
    return {
        kind: _nanoseconds(lambda one, text=text: one.execute(text).fetchall(), engine, rows)
        for kind, text in texts.items()
    }


def _nanoseconds(ask, of, rows: int) -> float:
    began = time.process_time()
    ask(of)
    return (time.process_time() - began) / rows * 1e9
