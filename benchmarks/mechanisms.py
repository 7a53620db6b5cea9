"""Gaussian and exponential noise side by side, on real columns: `python -m benchmarks.mechanisms [adult] [dry-bean]`.

Total noise that keeps a membership cap, exponential over Gaussian: means with a coin for everybody, and over random
halves of a part of the rows. Below 1 exponential noise is the smaller one, and `mechanism="auto"` takes it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import leakcap as lc
from benchmarks.bits import adult, dry_bean
from benchmarks.records import record

CAPS = (0.55, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999)
MAX_ROWS = 4000  # over random halves: every pair of rows is looked at
WAYS: dict[str, dict[str, Any]] = {
    "coins": {"design": "bits"},
    "random halves": {"mode": "individual", "worlds": 64},
}


def ratios(table: Any, **options: Any) -> list[float]:
    """Exponential over Gaussian noise, for every cap."""
    first = {
        name: lc.plan(lc.stats.mean, table, cap=CAPS[0], seed=0, mechanism=name, **options)
        for name in ("gaussian", "exponential")
    }
    sizes = {
        name: [float(np.linalg.norm(plan.recap(cap).noise.deviations)) for cap in CAPS] for name, plan in first.items()
    }
    return [e / g for e, g in zip(sizes["exponential"], sizes["gaussian"], strict=True)]


def measure(name: str, table: Any) -> None:
    rows = np.random.default_rng(0).permutation(len(table))
    seen = []
    for way, options in WAYS.items():
        part = table if way == "coins" else table[rows[:MAX_ROWS]]
        for columns in (1, table.shape[1]):
            found = ", ".join(f"{ratio:.2f}" for ratio in ratios(part[:, :columns], **options))
            seen.append(f"{way}, {columns} column{'s' if columns > 1 else ''}: {found}")
            print(name, seen[-1], flush=True)
    record(
        f"mechanisms-{name}",
        "; ".join(seen),
        topic="Caps and noise",
        claim=f"{name}: exponential over Gaussian noise of means at caps {', '.join(f'{cap:g}' for cap in CAPS)}",
        command=f"python -m benchmarks.mechanisms {name}",
        asked="auto takes the smaller",
    )


PARTS = {"adult": lambda: measure("adult", adult()), "dry-bean": lambda: measure("dry-bean", dry_bean())}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
