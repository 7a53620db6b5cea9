"""Means with a coin for everybody (`design="bits"`): noise beside the sampling error, and what a whole plan costs.

`python -m benchmarks.bits [adult] [dry-bean] [rows]`. Columns are measured alone and together, as they are and clipped
at four deviations around their mean. Noise is relative to the sampling error: what halving the pool costs anyway.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets

CAP = 0.6
TOPIC = "Caps and noise"
ROWS = 10_000_000


def adult() -> Any:
    columns = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    return datasets.adult()[columns].to_numpy(float)


def dry_bean() -> Any:
    return datasets.dry_bean().select_dtypes("number").to_numpy(float)


def clipped(table: Any) -> Any:
    middle, reach = table.mean(axis=0), 4 * table.std(axis=0)
    return np.clip(table, middle - reach, middle + reach)


def relative_noise(table: Any) -> Any:
    """Noise of each column's mean over its sampling error."""
    plan = lc.plan(lc.stats.mean, table, cap=CAP, design="bits", seed=0)
    return plan.noise.output_deviations / (table.std(axis=0) / np.sqrt(len(table)))


def noise(name: str, table: Any, asked: str) -> None:
    found = []
    for how, rows in (("clipped at four deviations", clipped(table)), ("as they are", table)):
        alone = [float(relative_noise(rows[:, [j]])[0]) for j in range(rows.shape[1])]
        joint = relative_noise(rows)
        overall = float(np.sqrt((joint**2).mean()))
        found.append(
            f"{how}: one column alone {min(alone):.3f} to {max(alone):.3f}, all together {overall:.3f} (root mean "
            f"square), {joint.max():.3f} in the worst column"
        )
        print(name, found[-1], flush=True)
    record(
        f"bits-{name}",
        "; ".join(found),
        topic=TOPIC,
        claim=f"{name}: means with a coin for everybody, cap {CAP:.2f} whoever is known: noise over sampling error",
        command=f"python -m benchmarks.bits {name}",
        asked=asked,
    )


def seconds(name: str, table: Any, asked: str) -> None:
    lc.plan(lc.stats.mean, table[:1000], cap=CAP, design="bits", seed=0)  # loads and compiles what it needs
    began = time.process_time()
    lc.plan(lc.stats.mean, table, cap=CAP, design="bits", seed=0)
    took = time.process_time() - began
    print(name, f"{took:.2f} CPU s", flush=True)
    record(
        f"bits-seconds-{name}",
        f"{took:.2g} CPU s",
        topic="Certifying: time and memory",
        claim=f"{len(table):,} rows x {table.shape[1]} columns: means with a coin for everybody, a whole plan",
        command=f"python -m benchmarks.bits {name}",
        asked=asked,
    )


def measure_adult() -> None:
    noise("adult", adult(), "at most .17 in one column, .15 together, clipped")
    seconds("adult", adult(), "at most 1 s")


def measure_dry_bean() -> None:
    noise("dry-bean", dry_bean(), "at most .16 in one column, .45 together, clipped")


def measure_rows() -> None:
    seconds("rows", np.random.default_rng(0).standard_normal((ROWS, 5)), "under 15 s")


PARTS = {"adult": measure_adult, "dry-bean": measure_dry_bean, "rows": measure_rows}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
