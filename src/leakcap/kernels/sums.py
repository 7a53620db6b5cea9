"""Sums over the rows of every world: the one primitive behind means, covariances, shares and Gram matrices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from leakcap.cores import threads
from leakcap.worlds import Units, Worlds

__all__ = ["by_unit", "masked_sums"]

Floats = npt.NDArray[np.float64]
STEP = 32  # units whose bits a pass of the compiled loop takes together


def masked_sums(features: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: for every world, the sum of the features of the units in it; `features` has a row for each unit.

    Complementary worlds cost nothing: theirs is what is left of the total. The result is the same on every run with as
    many threads.
    """
    from leakcap.kernels._compiled import add_masked

    table = np.ascontiguousarray(features, dtype=np.float64)
    n, d = table.shape
    drawn = worlds.packed[: worlds.m // 2] if worlds.paired else worlds.packed
    share = max(STEP, -(-n // (threads() * STEP)) * STEP)
    starts = range(0, n, share)
    parts = np.zeros((len(starts), len(drawn), d))

    def add(part: int) -> None:
        first = starts[part]
        add_masked(table[first : first + share], drawn, first // 8, parts[part])

    with ThreadPoolExecutor(threads()) as pool:
        list(pool.map(add, range(len(starts))))
    half = parts.sum(axis=0)
    return np.concatenate([half, table.sum(axis=0) - half]) if worlds.paired else half


def by_unit(features: Floats, units: Units) -> Floats:
    """Features added up over the rows of each unit."""
    if units.of_row is None:
        return features
    order = np.argsort(units.of_row, kind="stable")
    starts = np.searchsorted(units.of_row[order], np.arange(units.count))
    return np.add.reduceat(features[order], starts, axis=0)
