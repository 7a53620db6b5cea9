"""Reading a table as it comes: 200,000 rows and 5 columns, beside pandas' own reader, in turn."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import record
from leakcap.tables.files import open_table
from leakcap.tables.questions import ask
from leakcap.tables.reading import Reading

ROWS = 200_000


def main(rounds: int = 7) -> None:
    with tempfile.TemporaryDirectory() as folder:
        points, commas = Path(folder) / "points.csv", Path(folder) / "commas.csv"
        table = _people()
        table.to_csv(points, index=False)
        _as_in_vienna(table).to_csv(commas, index=False, sep=";")
        told = ("thousands=.", "missing=marks", "dates=parts")
        works: dict[str, Callable[[], Any]] = {
            "pandas.read_csv": lambda: pd.read_csv(points),
            "all columns": lambda: open_table(points).read(),
            "all columns, written as in Vienna": lambda: open_table(commas, Reading.of(told)).read(),
            "a mean by group, written as in Vienna": lambda: ask(
                commas, "mean", ["income", "height"], by=["sex=female,male"], missing="drop", read=told
            ),
        }
        seconds: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                began = time.process_time()
                work()
                seconds[name].append(time.process_time() - began)
    median = {name: float(np.median(taken)) for name, taken in seconds.items()}
    own = median["pandas.read_csv"]
    for name, taken in median.items():
        print(f"{name:<40}{taken:6.2f} s of CPU, {taken / own:5.1f} x pandas.read_csv of the plain file")
    plain, odd = median["all columns"], median["all columns, written as in Vienna"]
    record(
        "tables-200000",
        f"{plain:.2f} s of CPU ({plain / own:.1f} times pandas.read_csv); with `--read thousands=. missing=marks "
        f"dates=parts` {odd:.2f} s",
        topic="The command line",
        claim="A CSV file of 200,000 rows and 5 columns, read",
        command="python -m benchmarks tables",
        asked="under 1 s",
    )


def _people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.to_datetime("1940-01-01") + pd.to_timedelta(rng.integers(0, 25_000, ROWS), unit="D")
    return pd.DataFrame(
        {
            "income": rng.gamma(2, 15_000, ROWS).round(2),
            "height": rng.normal(170, 9, ROWS).round(1),
            "visits": rng.integers(0, 40, ROWS),
            "sex": rng.choice(["female", "male"], ROWS),
            "born": days.strftime("%Y-%m-%d"),
        }
    )


def _as_in_vienna(table: pd.DataFrame) -> pd.DataFrame:
    """Points between thousands, decimal commas, a dash in every hundredth cell."""
    swap = str.maketrans(",.", ".,")
    written = table.assign(
        income=[f"{cell:,.2f}".translate(swap) for cell in table["income"]],
        height=[f"{cell:.1f}".translate(swap) for cell in table["height"]],
    )
    written.loc[::100, "height"] = "-"
    return written
