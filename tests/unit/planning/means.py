"""Small plans of a mean."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import leakcap as lc

rng = np.random.default_rng(31)
X = rng.normal(size=(30, 3)) * np.array([1.0, 10.0, 0.1]) + np.array([0.0, 100.0, -3.0])
CAP = lc.mutual_information(0.3)
SMALL: dict[str, Any] = {"cap": CAP, "worlds": 32, "draws": 512}


def mean(x: np.ndarray) -> np.ndarray:
    return x.mean(axis=0)


@functools.cache
def seeded(**options: Any) -> lc.Plan:
    return lc.plan(mean, X, seed=7, **(SMALL | options))


def vectors(plan: lc.Plan, count: int, randomness: Any) -> np.ndarray:
    return np.array([plan.releaser.vector(randomness) for _ in range(count)])
