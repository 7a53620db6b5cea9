"""Quantiles on a grid beside other ways to make them of counts: `python -m benchmarks.quantiles adult`.

The others release a histogram, or counts up to every cut point, and read quantiles off their running sums, made
monotone by least squares. Errors are root mean squares over releases, two columns of Adult and the levels .1, .25, .5,
.75 and .9, in years and hours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.noise import Seeded

SUCCESS = 0.55
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
REPEATS = 60
PROMISES: dict[str, dict[str, Any]] = {
    "pool": {"cap": lc.pool_membership(SUCCESS)},
    "bits": {"cap": lc.membership(SUCCESS), "design": "bits"},
}


def read(upto: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Quantiles from noised running sums, made to grow."""
    grown = np.maximum(isotonic_regression(np.append(0.0, upto)).x, 0.0)
    wanted = np.array(LEVELS) * grown[-1]
    place = np.clip(np.searchsorted(grown, wanted), 1, len(cuts) - 1)
    inside = (wanted - grown[place - 1]) / np.maximum(grown[place] - grown[place - 1], 1e-12)
    return np.asarray(cuts[place - 1] + np.clip(inside, 0, 1) * (cuts[place] - cuts[place - 1]))


def ways(cuts: np.ndarray) -> dict[str, tuple[Any, dict[str, Any], Callable[[Any], Any]]]:
    """Function, declarations, and what is read off its answer."""
    upto = lc.additive(lambda rows: (rows[:, None] < cuts[1:]).astype(float), each="row")
    return {
        "quantile": (partial(lc.stats.quantile, q=LEVELS, grid=cuts), {}, np.asarray),
        "a released histogram": (
            partial(lc.stats.histogram, edges=cuts),
            {},
            lambda found: read(np.cumsum(found), cuts),
        ),
        "counts up to each point": (upto, {"bounds": (0, 1)}, lambda found: read(found, cuts)),
    }


def error(way: tuple[Any, dict[str, Any], Callable[[Any], Any]], rows: np.ndarray, promise: str, whole: Any) -> float:
    fn, declared, made = way
    plan = lc.plan(fn, rows, seed=1, **PROMISES[promise], **(declared if promise == "pool" else {}))
    found = [made(plan.answer_of(plan.releaser.vector(Seeded(seed)))) for seed in range(REPEATS)]
    return float(np.sqrt(np.mean((np.array(found) - whole) ** 2)))


def measured(people: int, cells: int, names: tuple[str, ...]) -> str:
    table = datasets.adult()[["age", "hours_per_week"]].sample(people, random_state=0)
    cuts = np.linspace(0, 128 if cells == 64 else 100, cells + 1)
    found = []
    for promise in PROMISES:
        errors = dict.fromkeys(names, 0.0)
        for column in table:
            rows = table[column].to_numpy(float)
            whole = lc.stats.quantile(rows, LEVELS, cuts)
            for name in names:
                errors[name] += error(ways(cuts)[name], rows, promise, whole) ** 2 / 2
        found.append(f"{promise}: " + ", ".join(f"{name} {np.sqrt(size):.3f}" for name, size in errors.items()))
    return "; ".join(found)


def adult() -> None:
    every = ("quantile", "a released histogram", "counts up to each point")
    for people, cells, names in ((1000, 64, every), (1000, 1000, every), (48_842, 64, every[:2])):
        seen = measured(people, cells, names)
        print(people, cells, seen, flush=True)
        record(
            f"quantiles-{people}-{cells}",
            seen,
            topic="Pool caps",
            claim=f"Five quantiles of age and hours of {people:,} people of Adult on {cells:,} cells at .55, errors",
            command="python -m benchmarks.quantiles adult",
            asked="the smallest error of the ways that were tried",
        )


PARTS = {"adult": adult}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
