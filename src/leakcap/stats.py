"""Plain statistics to release: functions of the rows of one world.

Rows are an array or a table of numbers with one dimension (one column) or two (several columns). The answer has the
same shape whatever rows are in the world. For finite rows it is finite: a world without rows gets the fixed value 0.
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
from leakcap.kernels import gpu, offers
from leakcap.kernels.contributions import Contributions, adds_up, averages, sums
from leakcap.kernels.moments import covariances, masked_sums, means, quantiles, shares, variances
from leakcap.kernels.moments.swapped import SwappedCovariances, SwappedQuantiles, SwappedVariances
from leakcap.kernels.swapping import Swapper, answers_swaps
from leakcap.worlds import Units, Worlds

__all__ = ["categories", "covariance", "histogram", "mean", "median", "quantile", "second_moments", "sum", "variance"]


def _means(data: tuple[Any, ...], units: Units, worlds: Worlds, device: str | None = None) -> Floats | None:
    table = _pool(data)
    if table is None:
        return None
    if device:
        return gpu.means(table, worlds.over_rows(units), device=device)
    return means(table, worlds, units)


def _sums(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
    table = _pool(data)
    return None if table is None else masked_sums(table, worlds, units)


def _variances(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
    table = _pool(data)
    return None if table is None else variances(table, worlds, units)


def _covariances(data: tuple[Any, ...], units: Units, worlds: Worlds, device: str | None = None) -> Floats | None:
    table = _pool(data)
    if table is None:
        return None
    if device:
        return gpu.covariances(table, worlds.over_rows(units), device=device).reshape(worlds.m, -1)
    return covariances(table, worlds, units).reshape(worlds.m, -1)


def _quantiles(data: tuple[Any, ...], units: Units, worlds: Worlds, q: float | Sequence[float] = 0.5) -> Floats | None:
    table, levels = _pool(data), _levels(q)
    if table is None:
        return None
    return quantiles(table, worlds.over_rows(units), levels.ravel()).reshape(worlds.m, -1)


def _histograms(data: tuple[Any, ...], units: Units, worlds: Worlds, edges: Sequence[float] | Floats) -> Floats | None:
    table, ends = _pool(data), _edges(edges)
    if table is None:
        return None
    return shares(_bin(table, ends), len(ends) - 1, worlds, units).reshape(worlds.m, -1)


def _categories(data: tuple[Any, ...], units: Units, worlds: Worlds, levels: Sequence[Any]) -> Floats | None:
    if np.asarray(data[0]).dtype.kind not in "biuf" or any(isinstance(level, str) for level in levels):
        return None
    table = _pool(data)
    if table is None:
        return None
    place, counted = _level(table, np.asarray(levels, dtype=np.float64))
    return shares(np.where(counted, place, -1), len(levels), worlds, units).reshape(worlds.m, -1)


def _averages(data: tuple[Any, ...], units: Units) -> Contributions:
    return averages(_one_table(data), units)


def _totals(data: tuple[Any, ...], units: Units) -> Contributions:
    return sums(_one_table(data), units)


def _in_bins(data: tuple[Any, ...], units: Units, edges: Sequence[float] | Floats) -> Contributions:
    table, ends = _one_table(data), _edges(edges)
    inside = _bin(table, ends)[:, :, None] == np.arange(len(ends) - 1)
    return averages(inside.reshape(len(table), -1).astype(np.float64), units)


def _at_levels(data: tuple[Any, ...], units: Units, levels: Sequence[Any]) -> Contributions:
    table = np.asarray(data[0])
    wanted = _wanted(levels, table)
    if table.dtype.kind in "biuf":
        table = _one_table(data)
    inside = np.stack([_equal(table.reshape(len(table), -1), level) for level in wanted], axis=-1)
    return averages(inside.reshape(len(table), -1).astype(np.float64), units)


def _products(data: tuple[Any, ...], units: Units) -> Contributions:
    table = _one_table(data)
    return averages(np.einsum("ni,nj->nij", table, table).reshape(len(table), -1), units)


def _all_products(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
    table = _pool(data)
    if table is None:
        return None
    return means(np.einsum("ni,nj->nij", table, table).reshape(len(table), -1), worlds, units)


def _swapped_covariances(data: tuple[Any, ...], units: Units) -> Swapper | None:
    table = _own_rows(data, units)
    return None if table is None else SwappedCovariances.of(table)


def _swapped_variances(data: tuple[Any, ...], units: Units) -> Swapper | None:
    table = _own_rows(data, units)
    return None if table is None else SwappedVariances.of(table)


def _swapped_quantiles(data: tuple[Any, ...], units: Units, q: float | Sequence[float] = 0.5) -> Swapper | None:
    table = _own_rows(data, units)
    return None if table is None else SwappedQuantiles.of(table, _levels(q).ravel())


def _own_rows(data: tuple[Any, ...], units: Units) -> Floats | None:
    """The one table of a pool in which everybody has one row; otherwise None."""
    return None if units.of_row is not None else _pool(data)


def _one_table(data: tuple[Any, ...]) -> Floats:
    table = _pool(data)
    if table is None:
        raise InputError(
            "mode='individual' and design='bits' need one table of numbers without missing or infinite values"
        )
    return table


def _pool(data: tuple[Any, ...]) -> Floats | None:
    """The one table of a pool, if all worlds can be computed from sums over it; otherwise None."""
    table = _numbers(data[0]) if len(data) == 1 else np.full(1, np.nan)
    return (table[:, None] if table.ndim == 1 else table) if np.isfinite(table).all() else None


@adds_up(_averages)
@offers(_means)
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
    table = _numbers(rows)
    return np.asarray(table.mean(axis=0)) if len(table) else np.zeros(table.shape[1:])


@answers_swaps(_swapped_quantiles)
@offers(_quantiles)
def median(rows: npt.ArrayLike) -> Floats:
    """The median of every column; between two middle values, their mean.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The medians, `(columns,)`; a single number for one dimension.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> median([[1, 10], [2, 50], [30, 30]])
        array([ 2., 30.])
    """
    table = _numbers(rows)
    return np.asarray(np.median(table, axis=0)) if len(table) else np.zeros(table.shape[1:])


@answers_swaps(_swapped_quantiles)
@offers(_quantiles)
def quantile(rows: npt.ArrayLike, q: float | Sequence[float] = 0.5) -> Floats:
    """Quantiles of every column, linear between neighbouring values.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.
        q: one level from 0 to 1, or a list of them.

    Returns:
        The quantiles, `(columns,)` for one level and `(len(q), columns)` for several.

    Raises:
        InputError: a level lies outside 0 to 1, or the rows are not numbers.

    Examples:
        >>> quantile([0, 1, 2, 3, 4], [0.25, 0.5])
        array([1., 2.])
    """
    table, levels = _numbers(rows), _levels(q)
    if not len(table):
        return np.zeros(levels.shape + table.shape[1:])
    return np.asarray(np.quantile(table, levels, axis=0))


@adds_up(_totals)
@offers(_sums)
def sum(rows: npt.ArrayLike) -> Floats:
    """The sum of every column over the rows of the world.

    A world holds a part of the pool, so the sum is about `rate` times the sum over the pool.

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
    return np.asarray(_numbers(rows).sum(axis=0))


@answers_swaps(_swapped_variances)
@offers(_variances)
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
    table = _numbers(rows)
    if len(table) < 2:
        return np.zeros(table.shape[1:])
    return np.asarray(table.var(axis=0, ddof=1))


@answers_swaps(_swapped_covariances)
@offers(_covariances)
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
    table = _numbers(rows)
    if len(table) < 2:
        return np.zeros(table.shape[1:] * 2)
    apart = table - table.mean(axis=0)
    return np.asarray(apart.T @ apart / (len(table) - 1))


@adds_up(_products)
@offers(_all_products)
def second_moments(rows: npt.ArrayLike) -> Floats:
    """Means of the products of every two columns: `X'X` over the number of rows.

    Give the target of a regression as a further column, and `X'y` is in it.

    Args:
        rows: numbers, `(rows,)` or `(rows, columns)`.

    Returns:
        The matrix, `(columns, columns)`; the mean square for one dimension.

    Raises:
        InputError: the rows hold text or dates, or have more than two dimensions.

    Examples:
        >>> second_moments([[1, 2], [3, 6]])
        array([[ 5., 10.],
               [10., 20.]])
    """
    table = _numbers(rows)
    if not len(table):
        return np.zeros(table.shape[1:] * 2)
    return np.asarray(table.T @ table / len(table))


@adds_up(_in_bins)
@offers(_histograms)
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
    table, ends = _numbers(rows), _edges(edges)
    shares = _shares(_bin(table, ends), np.ones(table.shape, dtype=bool), len(ends) - 1)
    shares[np.isnan(table).any(axis=0)] = np.nan  # a missing value is in no bin
    return shares


@adds_up(_at_levels)
@offers(_categories)
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
    wanted = _wanted(levels, table)
    if table.ndim not in (1, 2):
        raise InputError("rows must have one dimension or two: rows, or rows and columns")
    if table.dtype.kind in "biuf":
        return _number_levels(table.astype(np.float64, copy=False), wanted)
    if not len(table):
        return np.zeros((*table.shape[1:], len(wanted)))
    return np.stack([_equal(table, level).mean(axis=0) for level in wanted], axis=-1)


def _wanted(levels: Sequence[Any], table: npt.NDArray[Any]) -> list[Any]:
    """The levels, which must be different and of the kind of the table's cells."""
    wanted = list(levels)
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError("levels must be a list of different values, at least one")
    if table.dtype.kind in "biuf" and any(isinstance(level, str) for level in wanted):
        raise InputError("the rows hold numbers, so the levels must be numbers too")
    return wanted


def _number_levels(table: Floats, levels: list[Any]) -> Floats:
    values = np.asarray(levels, dtype=np.float64)
    shares = _shares(*_level(table, values), len(values))
    shares[np.isnan(table).any(axis=0)] = np.nan
    return shares


def _bin(table: Floats, ends: Floats) -> npt.NDArray[np.intp]:
    """The bin of every cell."""
    return np.clip(np.searchsorted(ends, table, side="right") - 1, 0, len(ends) - 2)


def _level(table: Floats, values: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The nearest level of every cell from above, and whether the cell is at it."""
    order = np.argsort(values)
    place = order[np.minimum(np.searchsorted(values, table, sorter=order), len(values) - 1)]
    return place, values[place] == table


def _equal(table: npt.NDArray[Any], level: Any) -> npt.NDArray[np.bool_]:
    if table.dtype != object:
        return np.asarray(table == level)
    same = np.frompyfunc(lambda cell: cell is level or (cell == level) is True, 1, 1)  # pandas.NA has no truth
    return np.asarray(same(table), dtype=bool)


def _shares(place: npt.NDArray[np.intp], counted: npt.NDArray[np.bool_], bins: int) -> Floats:
    """Share of rows at each place, for every column; `counted` says which cells have a place at all."""
    rows = max(len(place), 1)
    if place.ndim == 1:
        return np.bincount(place[counted], minlength=bins) / rows
    columns = place.shape[1]
    flat = (place + bins * np.arange(columns))[counted]
    return np.bincount(flat, minlength=bins * columns).reshape(columns, bins) / rows


def _levels(q: float | Sequence[float]) -> Floats:
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim > 1 or levels.size == 0 or not ((levels >= 0) & (levels <= 1)).all():
        raise InputError("q must be a number from 0 to 1, or a list of them")
    return levels


def _edges(edges: npt.ArrayLike) -> Floats:
    try:
        ends = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all():
        raise InputError("edges must be at least two numbers, each above the one before")
    return ends


def _numbers(rows: Any) -> Floats:
    """Rows as float64, with one dimension or two."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.ndim in (1, 2):
        return rows
    table = _as_floats(rows)
    if table is None:
        raise InputError("rows must be numbers: an array or table with one dimension or two, without text or dates")
    return table


def _as_floats(rows: Any) -> Floats | None:
    # A failed conversion quotes the cell that it failed on, so its error must not even be the context of ours.
    try:
        if hasattr(rows, "iloc"):  # pandas: its missing values are NaN here
            kinds = [kind.kind for kind in np.atleast_1d(np.asarray(rows.dtypes, dtype=object))]
            table = rows.to_numpy(dtype=np.float64, na_value=np.nan) if _real(kinds) else None
        else:
            given = np.asarray(rows)
            table = given.astype(np.float64) if _real([given.dtype.kind]) else None
    except (TypeError, ValueError):
        return None
    return table if table is not None and table.ndim in (1, 2) else None


def _real(kinds: Sequence[str]) -> bool:
    return all(kind in "biufO" for kind in kinds)
