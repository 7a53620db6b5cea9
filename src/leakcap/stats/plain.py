"""Plain statistics to release: functions of the rows of one world.

Rows are an array or a table of numbers with one dimension (one column) or two (several columns). The answer has the
same shape whatever rows are in the world. For finite rows it is finite: a world without rows gets the fixed value 0.
Of a DataFrame of pandas or polars it is a table of the same library, with the names of the columns.
Missing values are not skipped: they make the answer NaN, which `plan` refuses.

Histograms give shares rather than counts: a world holds a part of the pool, and counts would shrink with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels import offers
from leakcap.kernels.contributions import adds_up
from leakcap.kernels.swapping import answers_swaps
from leakcap.stats.all_worlds import (
    world_categories,
    world_covariances,
    world_histograms,
    world_means,
    world_quantiles,
    world_sums,
    world_variances,
)
from leakcap.stats.brought import about_the_pool, at_levels, averaged, counted, in_bins, totals
from leakcap.stats.cells import (
    bin_edges,
    bin_of,
    checked_levels,
    equal,
    level_of,
    numbers,
    quantile_levels,
)
from leakcap.stats.declared import (
    bounded_counts,
    bounded_covariances,
    bounded_histograms,
    bounded_levels,
    bounded_means,
    bounded_shares,
    bounded_sums,
)
from leakcap.stats.named import SecondAxis, bin_names, keeps_names
from leakcap.stats.on_grid import bounded_quantiles, moved_quantiles, quantiles_on_grid
from leakcap.stats.settings import takes_rows
from leakcap.stats.swapped import swapped_covariances, swapped_quantiles, swapped_variances

__all__ = ["categories", "covariance", "histogram", "mean", "median", "quantile", "sum", "variance"]


def _levels(q: float | Sequence[float] = 0.5, grid: Any = None) -> SecondAxis | None:
    return SecondAxis("quantile", np.ravel(q).tolist(), first=True) if np.ndim(q) else None


def _square() -> SecondAxis:
    return SecondAxis("column")


def _bins(edges: Sequence[float] | Floats) -> SecondAxis:
    return SecondAxis("bin", bin_names(edges))


def _named_levels(levels: Sequence[Any]) -> SecondAxis:
    return SecondAxis("level", tuple(levels))


@takes_rows()
@keeps_names()
@adds_up(averaged, bounded_means)
@offers(world_means)
def mean(rows: npt.ArrayLike) -> Floats:
    """The mean of every column.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The means, `(columns,)`; a single number for one dimension.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> mean([[1, 10], [3, 30]])
        array([ 2., 20.])
    """
    table = numbers(rows)
    return np.asarray(table.mean(axis=0)) if len(table) else np.zeros(table.shape[1:])


@takes_rows("grid=range(0, 101, 5)")
@keeps_names()
@answers_swaps(swapped_quantiles)
@adds_up(moved_quantiles, bounded_quantiles, needs="grid")
@offers(world_quantiles)
def median(rows: npt.ArrayLike, grid: Any = None) -> Floats:
    """The median of every column; between two middle values, their mean.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.
        grid: cut points, as for `quantile`; `design="bits"` and pool caps need them.

    Returns:
        The medians, `(columns,)`; a single number for one dimension.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> median([[1, 10], [2, 50], [30, 30]])
        array([ 2., 30.])
    """
    if grid is not None:
        return quantile(rows, 0.5, grid)
    table = numbers(rows)
    return np.asarray(np.median(table, axis=0)) if len(table) else np.zeros(table.shape[1:])


@takes_rows("q=0.5")
@keeps_names(_levels)
@answers_swaps(swapped_quantiles)
@adds_up(moved_quantiles, bounded_quantiles, needs="grid")
@offers(world_quantiles)
def quantile(rows: npt.ArrayLike, q: float | Sequence[float] = 0.5, grid: Any = None) -> Floats:
    """Quantiles of every column, linear between neighbouring values.

    With a `grid`, rows are counted between its cut points, and a quantile is linear inside its cell, so that it is off
    by less than the cell. Several levels of one call cost hardly more noise than one under `design="bits"`, and none
    under a pool cap, where they are read from the same counts.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.
        q: one level from 0 to 1, or a list of them.
        grid: cut points that ascend, for all columns alike, a list of them for each column, or `{column: cut points}`
            for a table. They must not come from the data. A cell reaches from its cut point to just below the next;
            values beyond the ends count in the first or the last cell. `design="bits"` and pool caps need a grid. None:
            the values themselves.

    Returns:
        The quantiles, `(columns,)` for one level and `(len(q), columns)` for several. Without rows, 0, or the middle of
        the grid.

    Raises:
        InputError: a level lies outside 0 to 1, the grid does not ascend, or the rows are not numbers.

    Examples:
        >>> quantile([0, 1, 2, 3, 4], [0.25, 0.5])
        array([1., 2.])
        >>> quantile([18, 20, 31, 47, 64, 85], grid=range(0, 101, 10))
        array(40.)
    """
    levels = quantile_levels(q)
    if grid is not None:
        return quantiles_on_grid(rows, levels, grid)
    table = numbers(rows)
    if not len(table):
        return np.zeros(levels.shape + table.shape[1:])
    return np.asarray(np.quantile(table, levels, axis=0))


@takes_rows()
@keeps_names()
@adds_up(totals, bounded_sums, total=True)
@offers(world_sums)
def sum(rows: npt.ArrayLike) -> Floats:
    """The sum of every column.

    A release is on the scale of the whole pool, also where a part of it takes part: `plan` divides by the rate.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The sums, `(columns,)`; a single number for one dimension.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> sum([[1, 10], [3, 30]])
        array([ 4., 40.])
    """
    return np.asarray(numbers(rows).sum(axis=0))


@takes_rows()
@adds_up(counted, bounded_counts, total=True)
def count(rows: npt.ArrayLike) -> float:
    """How many rows there are.

    Args:
        rows: anything with rows; what is in them does not matter.

    Returns:
        The number of rows. A release is on the scale of the whole pool, also where half of it takes part.

    Examples:
        >>> count([[1, 10], [3, 30]])
        2.0
    """
    return float(len(rows))  # type: ignore[arg-type]


@takes_rows()
@keeps_names()
@adds_up(averaged, bounded_shares)
@offers(world_means)
def share(rows: npt.ArrayLike) -> Floats:
    """Share of the rows that are true, for every column of yes and no.

    Args:
        rows: true or false, 1 or 0, `(rows,)` or `(rows, columns)`.

    Returns:
        The shares, `(columns,)`; a single number for one dimension.

    Raises:
        InputError: a row is neither.

    Examples:
        >>> share([True, False, True, True])
        array(0.75)
    """
    table = numbers(rows)
    if not ((table == 0) | (table == 1)).all():
        raise InputError("share is for yes and no: true and false, or 1 and 0. For other numbers take the mean")
    return mean(table)


@takes_rows()
@keeps_names()
@answers_swaps(swapped_variances)
@offers(world_variances)
def variance(rows: npt.ArrayLike) -> Floats:
    """The variance of every column, divided by the number of rows less one.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The variances, `(columns,)`; 0 for fewer than two rows.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> variance([[1, 10], [3, 30]])
        array([  2., 200.])
    """
    table = numbers(rows)
    if len(table) < 2:
        return np.zeros(table.shape[1:])
    return np.asarray(table.var(axis=0, ddof=1))


@takes_rows()
@keeps_names(_square)
@answers_swaps(swapped_covariances)
@adds_up(about_the_pool, bounded_covariances)
@offers(world_covariances)
def covariance(rows: npt.ArrayLike) -> Floats:
    """Variances and covariances of the columns.

    They are divided by the number of rows less one, so that half of a pool has the pool's own value on average.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The matrix, `(columns, columns)`; the variance for one dimension; 0 for fewer than two rows.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> covariance([[1, 2], [3, 6]])
        array([[2., 4.],
               [4., 8.]])
    """
    table = numbers(rows)
    if len(table) < 2:
        return np.zeros(table.shape[1:] * 2)
    apart = table - table.mean(axis=0)
    return np.asarray(apart.T @ apart / (len(table) - 1))


@takes_rows("edges=[0, 18, 65, 120]")
@keeps_names(_bins)
@adds_up(in_bins, bounded_histograms)
@offers(world_histograms)
def histogram(rows: npt.ArrayLike, edges: Sequence[float] | Floats) -> Floats:
    """Share of the rows in each bin, for every column.

    A bin reaches from its lower edge to just below the next. Values outside the outermost edges count in the first or
    the last bin, so nothing is lost and the shares add to 1.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.
        edges: at least two numbers, ascending, in the unit of the rows. They must not come from the data: the smallest
            and the largest value belong to single people.

    Returns:
        The shares, `(columns, bins)`, or `(bins,)` for one dimension.

    Raises:
        InputError: the edges do not ascend, or the rows are not numbers.

    Examples:
        >>> histogram([17, 18, 40, 64, 90], edges=[0, 18, 65, 80])
        array([0.2, 0.6, 0.2])
    """
    table, ends = numbers(rows), bin_edges(edges)
    shares = _shares(bin_of(table, ends), np.ones(table.shape, dtype=bool), len(ends) - 1)
    shares[np.isnan(table).any(axis=0)] = np.nan  # a missing value is in no bin
    return shares


@takes_rows("levels=['A', 'B']")
@keeps_names(_named_levels)
@adds_up(at_levels, bounded_levels)
@offers(world_categories)
def categories(rows: npt.ArrayLike, levels: Sequence[Any]) -> Floats:
    """Share of the rows at each level, for every column.

    Args:
        rows: numbers or text, `(rows,)` or `(rows, columns)`.
        levels: the values to count, all different. A row at none of them counts nowhere, so shares add to at most 1.

    Returns:
        The shares, `(columns, levels)`, or `(levels,)` for one dimension.

    Raises:
        InputError: levels repeat or are missing, or the rows hold numbers and the levels text.

    Examples:
        >>> categories(["car", "bike", "car", "horse"], levels=["bike", "car"])
        array([0.25, 0.5 ])
    """
    table = np.asarray(rows)
    wanted = checked_levels(levels, table)
    if table.ndim not in (1, 2):
        raise InputError("rows must have one dimension or two: rows, or rows and columns")
    if table.dtype.kind in "biuf":
        return _number_levels(table.astype(np.float64, copy=False), wanted)
    if not len(table):
        return np.zeros((*table.shape[1:], len(wanted)))
    return np.stack([equal(table, level).mean(axis=0) for level in wanted], axis=-1)


def _number_levels(table: Floats, levels: list[Any]) -> Floats:
    values = np.asarray(levels, dtype=np.float64)
    shares = _shares(*level_of(table, values), len(values))
    shares[np.isnan(table).any(axis=0)] = np.nan
    return shares


def _shares(place: npt.NDArray[np.intp], counted: npt.NDArray[np.bool_], bins: int) -> Floats:
    """Share of rows at each place, for every column; `counted` says which cells have a place at all."""
    rows = max(len(place), 1)
    if place.ndim == 1:
        return np.bincount(place[counted], minlength=bins) / rows
    columns = place.shape[1]
    flat = (place + bins * np.arange(columns))[counted]
    return np.bincount(flat, minlength=bins * columns).reshape(columns, bins) / rows
