"""What every unit brings to a statistic under a pool cap: sums within declared bounds, and what the sums make.

Means are released as a sum and a count, about the middle of the bounds: dividing by the number of people there are
would publish it. Shares are counts over their own total.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded, Declared, Extent, in_half_widths, unit_sums
from leakcap.stats.cells import bin_edges, bin_of, one_table, places
from leakcap.stats.products import product_rows, split_products
from leakcap.worlds import Units

__all__ = [
    "bounded_counts",
    "bounded_covariances",
    "bounded_histograms",
    "bounded_levels",
    "bounded_means",
    "bounded_shares",
    "bounded_sums",
    "cells_of",
]

# Where nothing is known but its bounds, a mean lies this far from their middle, squared, in half-widths: as if uniform.
APART = 1 / 3


def bounded_means(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """Sums about the middle of the bounds, and how many rows there are."""
    cells, (low, high), cut = declared.cut(one_table(data), data[0])
    return _means(cells, units, declared.rows, (low, high), cut=cut, flat=np.ndim(data[0]) == 1)


def bounded_shares(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """Means of what is 0 or 1."""
    cells = one_table(data)
    ends = np.zeros(cells.shape[1]), np.ones(cells.shape[1])
    return _means(np.clip(cells, *ends), units, declared.rows, ends, cut=0, flat=np.ndim(data[0]) == 1)


def bounded_sums(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """The sums themselves."""
    cells, (low, high), cut = declared.cut(one_table(data), data[0])
    limits = declared.rows * np.maximum(np.abs(low), np.abs(high))
    finish = partial(_formed, flat=np.ndim(data[0]) == 1)
    return Bounded(unit_sums(cells, units.of_row, units.count), Extent.together(limits, limits**-2.0), finish, cut)


def bounded_counts(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """How many rows there are."""
    ones = unit_sums(np.ones((units.rows, 1)), units.of_row, units.count)
    return Bounded(ones, Extent.one_of([1], declared.rows), _number)


def bounded_histograms(
    data: tuple[Any, ...], units: Units, declared: Declared, edges: Sequence[float] | Floats
) -> Bounded:
    """How many rows are in each bin of each column."""
    table, ends = one_table(data), bin_edges(edges)
    return _shares(bin_of(table, ends), len(ends) - 1, units, declared.rows, flat=np.ndim(data[0]) == 1)


def bounded_levels(data: tuple[Any, ...], units: Units, declared: Declared, levels: Sequence[Any]) -> Bounded:
    """How many rows are at each level of each column, and at none of them."""
    place = places(data[0], levels)
    flat = place.ndim == 1
    return _shares(place.reshape(len(place), -1), len(levels) + 1, units, declared.rows, flat=flat, shown=len(levels))


def bounded_covariances(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """Products, sums and the number of rows, in units of half-widths about the middle of the bounds."""
    cells, (low, high), cut = declared.cut(one_table(data), data[0])
    half = (high - low) / 2
    z = in_half_widths(cells, low, high)
    d = z.shape[1]
    above = np.triu_indices(d)
    each = product_rows(z, np.empty((len(z), 0)))
    # An error in a mean moves a covariance by twice that mean, one in the count by their product.
    weights = np.concatenate([np.where(above[0] == above[1], 1.0, 2.0), np.full(d, 4 * APART * d), [APART**2 * d * d]])
    limits = np.full(each.shape[1], float(declared.rows))
    finish = partial(_covariance, half=half, flat=np.ndim(data[0]) == 1)
    return Bounded(unit_sums(each, units.of_row, units.count), Extent.together(limits, weights), finish, cut)


def cells_of(place: Any, count: int, units: Units) -> Floats:
    """How many rows of each unit are at each of `count` places; those at place -1 are nowhere."""
    owner = np.arange(units.rows) if units.of_row is None else units.of_row
    inside = place >= 0
    found = np.bincount(owner[inside] * count + place[inside], minlength=units.count * count)
    return found.reshape(units.count, count).astype(np.float64)


def _means(cells: Floats, units: Units, rows: int, ends: tuple[Floats, Floats], *, cut: int, flat: bool) -> Bounded:
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    each = np.hstack([in_half_widths(cells, *ends), np.ones((len(cells), 1))])
    weights = np.append(np.ones(len(half)), APART * len(half))
    extent = Extent.together(np.full(each.shape[1], float(rows)), weights)
    return Bounded(
        unit_sums(each, units.of_row, units.count), extent, partial(_mean, middle=middle, half=half, flat=flat), cut
    )


def _mean(total: Floats, *, middle: Floats, half: Floats, flat: bool) -> Any:
    return _formed(middle + half * np.clip(total[:-1] / max(float(total[-1]), 1.0), -1.0, 1.0), flat)


def _shares(place: Any, count: int, units: Units, rows: int, *, flat: bool, shown: int | None = None) -> Bounded:
    columns = place.shape[1]
    each = [cells_of(place[:, column], count, units) for column in range(columns)]
    finish = partial(_share, columns=columns, shown=shown or count, flat=flat)
    return Bounded(np.hstack(each), Extent.one_of([count] * columns, rows), finish)


def _share(total: Floats, *, columns: int, shown: int, flat: bool) -> Any:
    counts = np.maximum(total.reshape(columns, -1), 0.0)
    shares = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))[:, :shown]
    return shares[0] if flat else shares


def _covariance(total: Floats, *, half: Floats, flat: bool) -> Any:
    d = len(half)
    count = max(float(total[-1]), 2.0)
    shares = split_products(np.clip(total / count, -1.0, 1.0), d, 0)
    found = (shares.products - np.outer(shares.sums, shares.sums)) * np.outer(half, half) * (count / (count - 1))
    return found[0, 0].reshape(()) if flat else found


def _number(numbers: Floats) -> float:
    return float(numbers[0])


def _formed(numbers: Floats, flat: bool) -> Any:
    return np.asarray(numbers[0]) if flat else numbers
