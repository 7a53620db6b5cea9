"""How much less noise `optimize_noise` finds than the best of the usual shapes, and how far that is from the least.

`python -m benchmarks.optimise [case ...]`. Total noise variances in the plan's weighted outputs, before and after, and
the lower bound that no covariance can beat. `last` is made up after everything else.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

import leakcap as lc
from benchmarks.designs import breast_cancer, standardised, started, weights
from benchmarks.noise import scaled_iris
from benchmarks.records import record
from leakcap import estimators
from leakcap.errors import LeakcapWarning
from leakcap.planning.plans import Plan

CAP, WORLDS, SECONDS = 0.6, 1024, 45.0


def planned(fn: Callable[..., Any], *data: Any) -> Plan:
    return lc.plan(fn, *data, cap=CAP, worlds=WORLDS, design="worlds", seed=0)


def mean(rows: Any) -> Any:
    return rows.mean(axis=0)


def fitted(model: Any, *data: Any) -> Plan:
    model.fit(*data)
    made: Plan = model.plan_
    return made


def k_means(rows: Any, k: int) -> Plan:
    return planned(started(rows, k), rows)


def last(seed: int = 2026) -> tuple[Any, Any]:
    """Made up after everything else: 640 people, six columns, a few of them far out, and what follows from these."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((640, 6)) @ rng.standard_normal((6, 6)) / 2
    rows[:12] += 6 * rng.standard_normal((12, 6))
    return standardised(rows), standardised(np.tanh(rows[:, 0]) + rows[:, 1] + rng.standard_normal(640))


def kept() -> dict[str, Any]:
    return {"cap": CAP, "worlds": WORLDS, "random_state": 0}


PARTS: dict[str, Callable[[], Plan]] = {
    "iris-mean": lambda: planned(mean, scaled_iris()),
    "iris-k-means": lambda: k_means(scaled_iris(), 3),
    "breast-cancer-ridge": lambda: planned(weights, *breast_cancer()),
    "breast-cancer-svm": lambda: fitted(
        estimators.LinearSVC(0.02, **kept()), breast_cancer()[0], load_breast_cancer().target
    ),
    "breast-cancer-pca": lambda: fitted(estimators.PCA(2, **kept()), breast_cancer()[0]),
    "wine-mean": lambda: planned(mean, standardised(load_wine().data)),
    "last-mean": lambda: planned(mean, last()[0]),
    "last-ridge": lambda: planned(weights, *last()),
    "last-k-means": lambda: k_means(last()[0], 3),
}


def measure(name: str) -> None:
    made = PARTS[name]()
    began = time.perf_counter()
    found = lc.optimize_noise(made, seconds=SECONDS)
    took = time.perf_counter() - began
    seen = (
        f"{found.ratio:.2f} times less than shape='best' ({found.before:.4g} to {found.after:.4g}, "
        f"{made.noise.space.rank} directions, {took:.0f} s); {found.gap:.2f} times the lower bound"
    )
    print(f"{name}: {seen}", flush=True)
    record(
        f"optimise-{name}",
        seen,
        topic="Caps and noise",
        claim=f"Total noise variance after `optimize_noise`, {name}, cap {CAP:.2f}, {WORLDS:,} worlds",
        command=f"python -m benchmarks.optimise {name}",
        asked="never more; at least 1.2 times less on a real case" if name == "iris-mean" else "never more",
    )


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", LeakcapWarning)
    for name in names or PARTS:
        measure(name)


if __name__ == "__main__":
    main(sys.argv[1:])
