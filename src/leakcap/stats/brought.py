"""What every unit brings to a statistic: the sums behind `mode="individual"` and `design="bits"`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.contributions import Contributions, averages, sums
from leakcap.stats.cells import bin_edges, bin_of, checked_levels, equal, one_table
from leakcap.worlds import Units

__all__ = ["about_the_pool", "at_levels", "averaged", "counted", "in_bins", "totals"]


def averaged(data: tuple[Any, ...], units: Units) -> Contributions:
    return averages(one_table(data), units)


def totals(data: tuple[Any, ...], units: Units) -> Contributions:
    return sums(one_table(data), units)


def in_bins(data: tuple[Any, ...], units: Units, edges: Sequence[float] | Floats) -> Contributions:
    table, ends = one_table(data), bin_edges(edges)
    inside = bin_of(table, ends)[:, :, None] == np.arange(len(ends) - 1)
    return averages(inside.reshape(len(table), -1).astype(np.float64), units)


def at_levels(data: tuple[Any, ...], units: Units, levels: Sequence[Any]) -> Contributions:
    table = np.asarray(data[0])
    wanted = checked_levels(levels, table)
    if table.dtype.kind in "biuf":
        table = one_table(data)
    inside = np.stack([equal(table.reshape(len(table), -1), level) for level in wanted], axis=-1)
    return averages(inside.reshape(len(table), -1).astype(np.float64), units)


def counted(data: tuple[Any, ...], units: Units) -> Contributions:
    """How many rows each unit has."""
    ones = np.ones((units.rows, 1))
    return sums(ones, units)


def about_the_pool(data: tuple[Any, ...], units: Units) -> Contributions:
    """Products of columns about their means over the whole pool: what they add up to there is its covariance."""
    table = one_table(data)
    apart = table - table.mean(axis=0)
    above = np.triu_indices(table.shape[1])
    each = apart[:, above[0]] * apart[:, above[1]] / max(len(table) - 1, 1)
    finish = partial(_covariance, d=table.shape[1], flat=np.ndim(data[0]) == 1)
    return Contributions(sums(each, units).values, averaged=False, finish=finish)


def _covariance(total: Floats, *, d: int, flat: bool) -> Floats:
    square = np.zeros((d, d))
    square[np.triu_indices(d)] = total
    return square[0, 0].reshape(()) if flat else square + np.triu(square, 1).T
