"""Any code through blocks: medians of Adult and a model, under all three promises, and data made last.

`python -m benchmarks.blocks [medians] [model] [last]`. Errors are of released answers against the function's own on the
whole pool.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.noise import Seeded

SUCCESS, REPEATS, TOPIC = 0.60, 50, "Pool caps"


def errors(fn: Callable[..., Any], data: tuple[Any, ...], blocks: int, bounds: Any) -> dict[str, float]:
    """Root-mean-square error under each promise."""
    whole = np.asarray(fn(*data), dtype=float)
    made = lc.blocks(fn, blocks=blocks, bounds=bounds)
    found = {}
    for promise, options in {
        "pool": {"cap": lc.pool_membership(SUCCESS)},
        "bits": {"cap": SUCCESS, "design": "bits"},
        "worlds": {"cap": SUCCESS, "worlds": 256},
    }.items():
        plan = lc.plan(made if promise != "worlds" else fn, *data, seed=1, **options)
        answers = [np.asarray(plan.answer_of(plan.releaser.vector(Seeded(seed)))) for seed in range(REPEATS)]
        found[promise] = float(np.sqrt(np.mean((np.stack(answers) - whole) ** 2)))
    return found


def told(found: dict[str, float]) -> str:
    return ", ".join(f"{promise} {error:.3g}" for promise, error in found.items())


def medians() -> None:
    ages = datasets.adult()["age"].to_numpy(float)
    found = errors(np.median, (ages,), blocks=1000, bounds=(0.0, 100.0))
    record(
        "blocks-median",
        told(found),
        topic=TOPIC,
        claim=f"Median age of Adult (48,842) through 1,000 blocks, bounds 0 to 100, caps at {SUCCESS:.2f}: error "
        "in years; worlds: the function itself, without blocks, in 256 worlds",
        command="python -m benchmarks.blocks medians",
        asked="-",
    )


def slope(rows: Any, kinds: Any) -> Any:
    """The penalty goes with the rows: one that does not would weigh more in blocks than in the whole pool."""
    return LogisticRegression(C=10 / len(rows), max_iter=200).fit(rows, kinds).coef_[0]


def model() -> None:
    beans = datasets.dry_bean()
    rows = beans.select_dtypes("number").to_numpy(float)[:, [1, 4, 6]]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    kinds = (beans.select_dtypes(exclude="number").iloc[:, 0] == "DERMASON").to_numpy()
    found = errors(slope, (rows, kinds), blocks=100, bounds=(np.full(3, -2.0), np.full(3, 2.0)))
    record(
        "blocks-model",
        told(found),
        topic=TOPIC,
        claim="Coefficients of a logistic regression on three columns of Dry Bean through 100 blocks, bounds -2 to 2, "
        f"caps at {SUCCESS:.2f}: error of a coefficient; worlds: the function itself, without blocks, in 256 worlds",
        command="python -m benchmarks.blocks model",
        asked="-",
    )


def last() -> None:
    """Nothing was tuned on it."""
    rng = np.random.default_rng(20261117)
    waiting = rng.gamma(1.5, 20.0, size=30_000) + 60.0 * (rng.random(30_000) < 0.05)
    found = errors(lambda rows: np.quantile(rows, 0.9), (waiting,), blocks=300, bounds=(0.0, 240.0))
    record(
        "blocks-last",
        told(found),
        topic=TOPIC,
        claim="Made last: the ninth decile of 30,000 skewed waiting times through 300 blocks, bounds 0 to 240, caps at "
        f"{SUCCESS:.2f}: error in minutes; worlds: the function itself, without blocks, in 256 worlds",
        command="python -m benchmarks.blocks last",
        asked="-",
    )


PARTS = {"medians": medians, "model": model, "last": last}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
