"""How the cost of an answer over partitions grows with rows, columns, rows of a person, outputs and worlds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leakcap as lc

__all__ = ["BASE", "measured", "seconds_without_rows", "shown_sessions"]

BASE = {"rows": 400_000, "columns": 8, "of_one": 10, "bins": 20, "worlds": 256}
BOUNDS = (-5.0, 5.0)
STREAMED = Path(__file__).parent / "curves" / "parted.json"  # of larger files, by benchmarks/parted.py
NAMES = {
    "rows": "rows",
    "columns": "columns",
    "of_one": "rows of a person",
    "bins": "bins of a histogram",
    "worlds": "worlds",
}
WAYS: dict[str, tuple[str, tuple[int, ...]]] = {
    "means": ("rows", (100_000, 400_000, 1_600_000)),
    "means ": ("columns", (2, 8, 32)),
    "covariance": ("columns", (2, 8, 32)),
    "covariance ": ("of_one", (1, 10, 100)),
    "histogram": ("bins", (10, 100, 1000)),
    "means in worlds": ("worlds", (64, 256, 1024)),
    "covariance in worlds": ("worlds", (64, 256, 1024)),
}


def measured() -> list[dict[str, Any]]:
    """Nanoseconds of one core for a row, one question after the other."""
    found = []
    for kind, (varied, sizes) in WAYS.items():
        for size in sizes:
            how = {**BASE, varied: size}
            found.append({"kind": kind.strip(), "varied": varied, "size": size, "ns": _nanoseconds(kind.strip(), how)})
            print(found[-1], flush=True)
    return found


def _nanoseconds(kind: str, how: dict[str, int]) -> float:
    rng = np.random.default_rng(0)
    columns = [f"x{place}" for place in range(how["columns"])]
    frame = pd.DataFrame(rng.normal(size=(how["rows"], how["columns"])), columns=columns)
    frame["who"] = rng.permutation(np.arange(how["rows"]) // how["of_one"])
    given: dict[str, Any] = {"cap": 0.6, "unit": "who", "seed": 0}
    parts = lc.partitions([frame.iloc[::2], frame.iloc[1::2]])
    if kind.endswith("in worlds"):
        session = lc.Session(parts, design="worlds", worlds=how["worlds"], **given)
        worlds = session._desk.engine.worlds  # type: ignore[union-attr]
        question = (
            session._questions.mean(columns) if kind.startswith("means") else session._questions.covariance(columns)
        )
        return _second(lambda: question.in_worlds(worlds), how["rows"])
    session = lc.Session(parts, rows_per_unit=how["of_one"], **given)
    ask: dict[str, Callable[[float], Any]] = {
        "means": lambda share: session.mean(columns, bounds=BOUNDS, share=share),
        "covariance": lambda share: session.covariance(columns, bounds=BOUNDS, share=share),
        "histogram": lambda share: session.histogram("x0", bounds=BOUNDS, bins=how["bins"], share=share),
    }
    shares = iter((0.01, 0.011))
    return _second(lambda: ask[kind](next(shares)), how["rows"])


def _second(work: Callable[[], Any], rows: int) -> float:
    """Of this process's own time, the second time it is done: the first one compiles."""
    work()
    began = time.process_time()
    work()
    return (time.process_time() - began) / rows * 1e9


def seconds_without_rows(runs: list[dict[str, Any]]) -> float:
    """What an answer takes however few rows there are: where the line through the fewest and the most begins."""
    by_rows = [one for one in runs if one["varied"] == "rows"]
    (few, first), (many, last) = ((one["size"], one["size"] * one["ns"]) for one in (by_rows[0], by_rows[-1]))
    return float(first - few * (last - first) / (many - few)) / 1e9


def _in_worlds(one: dict[str, Any]) -> str:
    return " and ".join(f"{spent:.0f}" for spent in one["worlds"].values()) if "worlds" in one else "-"


def _peak(one: dict[str, Any]) -> float:
    return float(max(one["peak"], one.get("worlds peak", 0.0)))


def _beside(known: list[tuple[str, dict[str, Any]]]) -> str:
    """Times of the same person by person in memory, and of DuckDB."""
    kinds = list(known[0][1]["questions"])
    lines = []
    for rows, one in known:
        cells = [f"{one['questions'][kind] / one[other][kind]:.2f}" for kind in kinds for other in ("table", "duck")]
        lines.append(f"| {int(rows):,} | {' | '.join(cells)} |")
    heads = [f"{kind}: times {whose}" for kind in kinds for whose in ("one table's", "DuckDB's")]
    return "\n".join([f"| rows, in files | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|", *lines])


def shown_sessions(runs: list[dict[str, Any]]) -> str:
    """Tables of what was measured, that of larger files first."""
    tables = []
    if STREAMED.exists():
        known = sorted(json.loads(STREAMED.read_text()).items(), key=lambda one: int(one[0]))
        lines = [
            f"| {int(rows):,} | {one['questions']['means']:.0f} | {one['questions']['histogram']:.0f} "
            f"| {one['questions']['covariance']:.0f} | {_in_worlds(one)} | {one['dealt']:,.0f} | {_peak(one):.2f} |"
            for rows, one in known
        ]
        heads = "| rows, in files | means | histogram | covariance | means and covariance in 1,024 worlds "
        heads += "| dealing, once | GiB at most |\n" + "|---" * 7 + "|"
        tables.append("\n".join([heads, *lines]))
        tables.append(_beside(known))
    pairs = dict.fromkeys((one["kind"], one["varied"]) for one in runs)
    for kind, varied in pairs:
        some = [one for one in runs if (one["kind"], one["varied"]) == (kind, varied)]
        lines = [f"| {one['size']:,} | {one['ns']:,.0f} |" for one in some]
        tables.append("\n".join([f"| {NAMES[varied]} | {kind}, ns a row |\n|---|---|", *lines]))
    return "\n\n".join(tables)
