"""Data and worlds for the tests of kernels that classify."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from leakcap.worlds import Worlds


def standard(table: np.ndarray) -> np.ndarray:
    return (table - table.mean(axis=0)) / table.std(axis=0)


def some_data(n: int, d: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), draw.integers(0, classes, n - classes)])
    return draw.normal(size=(n, d)) + labels[:, None] * draw.normal(size=d), labels


def exactly(masks: Any, paired: bool = False) -> Worlds:
    """Worlds with just these rows, balanced or not."""
    table = np.asarray(masks, dtype=bool)
    return Worlds(np.packbits(table, axis=1), table.shape[1], Fraction(1, 2), paired, "given")
