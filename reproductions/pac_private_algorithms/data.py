"""The paper's data: split and scaled as its text and its public code say.

The paper says "normalize" without saying how. Columns are brought to 0..1 by the training part's least and largest
value here, which is what splits "in the range [0, 1]" need, and what gives the baselines that the paper's text
states. The order before the split is scikit-learn's `shuffle` with seed 0, as in the public code for Iris. What is
done by looking at the whole training part is pool-public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_iris
from sklearn.utils import shuffle

from leakcap import datasets

__all__ = ["SCALED", "Split", "cifar10", "dry_bean", "iris", "rice"]

Floats = npt.NDArray[np.float64]
SCALED = "Columns brought to 0..1 by the training part's least and largest values."


@dataclass(frozen=True, eq=False)
class Split:
    """A training part, which is the pool of all worlds, and a test part, by which releases are judged."""

    name: str
    x: Floats
    y: npt.NDArray[np.intp]
    test_x: Floats
    test_y: npt.NDArray[np.intp]
    ranges: Floats | None = None  # what 1 stands for in each column

    @property
    def classes(self) -> int:
        return int(max(self.y.max(), self.test_y.max())) + 1


def iris(rows: int | None = None) -> Split:
    """100 flowers to train, 50 to test."""
    x, y = load_iris(return_X_y=True)
    return _split("Iris", x, y, lambda n: n * 2 // 3, rows)


def rice(rows: int | None = None, seed: int = 0) -> Split:
    """70 % of 3,810 grains to train."""
    return _table("Rice", datasets.rice(), rows, seed)


def dry_bean(rows: int | None = None, seed: int = 0) -> Split:
    """70 % of 13,611 beans to train."""
    return _table("Dry Bean", datasets.dry_bean(), rows, seed)


def cifar10(rows: int | None = None) -> Split:
    """50,000 pictures to train, 10,000 to test; 3,072 numbers from 0 to 1. A range that is known needs no pool."""
    x, y, test_x, test_y = datasets.cifar10()
    some = slice(None, rows)
    flat = [np.asarray(part[some].reshape(len(part[some]), -1), dtype=np.float32) / 255 for part in (x, test_x)]
    return Split("CIFAR-10", flat[0], y[some].astype(int), flat[1], test_y[some].astype(int))


def _table(name: str, table: Any, rows: int | None, seed: int) -> Split:
    x = table.drop(columns="Class").to_numpy(float)
    y = np.unique(table["Class"].to_numpy(str), return_inverse=True)[1]
    return _split(name, x, y, lambda n: int(0.7 * n), rows, seed)


def _split(name: str, x: Floats, y: Any, size: Callable[[int], int], rows: int | None, seed: int = 0) -> Split:
    x, y = shuffle(x, y, random_state=seed)
    x, y = x[:rows], y[:rows]
    pool = size(len(x))
    low, high = x[:pool].min(axis=0), x[:pool].max(axis=0)
    ranges = np.where(high > low, high - low, 1.0)
    scaled = (x - low) / ranges
    return Split(name, scaled[:pool], y[:pool], scaled[pool:], y[pool:], ranges)
