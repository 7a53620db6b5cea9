"""Means, variances, covariances, Gram matrices and shares in all worlds at once, from sums over the rows of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.kernels.moments.scatter import by_products, products_are_cheaper
from leakcap.kernels.moments.sums import Chosen, rows_in, sums_of
from leakcap.worlds import Units, Worlds

__all__ = ["Moments", "covariances", "grams", "means", "moments", "shares", "variances"]

MAX_COPIED_NUMBERS = 2**18  # numbers of a table of matrices that are made at a time


def means(table: Floats, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    centre = _centre(table)
    total, rows = sums_of(lambda some: table[some] - centre, table.shape[1], worlds, units), rows_in(worlds, units)
    return np.where(rows > 0, centre + total / np.maximum(rows, 1), 0.0)


def variances(table: Floats, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, d)`: column variances, divided by the rows less one; 0 in a world of fewer than two rows."""
    centre, d = _centre(table), table.shape[1]

    def squares(some: Chosen) -> Floats:
        apart = table[some] - centre
        return np.hstack([apart, apart**2])

    sums, rows = sums_of(squares, 2 * d, worlds, units), rows_in(worlds, units)
    spread = np.maximum(sums[:, d:] - sums[:, :d] ** 2 / np.maximum(rows, 1), 0.0)
    return np.where(rows > 1, spread / np.maximum(rows - 1, 1), 0.0)


def covariances(table: Floats, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, d, d)`: covariances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = moments(table, worlds, units)
    rows = found.rows[:, :, None]
    return np.where(rows > 1, found.scatter / np.maximum(rows - 1, 1), 0.0)


def grams(table: Floats, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, d, d)`: sums of products of columns, `rows.T @ rows`; 0 in a world without rows."""
    found = moments(table, worlds, units)
    # The scatter and what the means add to it: exact in structure, and each part keeps its digits.
    return found.scatter + found.rows[:, :, None] * (found.mean[:, :, None] * found.mean[:, None, :])


@dataclass(frozen=True, eq=False)
class Moments:
    """For every world: rows `(m, 1)`, column means `(m, d)`, and the products of deviations from them `(m, d, d)`."""

    rows: Floats
    mean: Floats
    scatter: Floats


def moments(table: Floats, worlds: Worlds, units: Units | None = None) -> Moments:
    """First and second moments; means are 0 in a world without rows."""
    # Deviations from the pool's mean, not from 0: what is taken away in the end is then small, and so is its rounding.
    centre = _centre(table)
    if products_are_cheaper(len(table), table.shape[1], worlds):
        sums, scatter = by_products(table, centre, worlds, units)
    else:
        sums, scatter = _by_sums(table, centre, worlds, units)
    rows = rows_in(worlds, units)
    apart = sums / np.maximum(rows, 1)
    step = max(1, MAX_COPIED_NUMBERS // max(table.shape[1] ** 2, 1))  # no second table of this size
    for some in (slice(start, start + step) for start in range(0, worlds.m, step)):
        scatter[some] -= sums[some, :, None] * apart[some, None, :]
    return Moments(rows, np.where(rows > 0, centre + apart, 0.0), scatter)


def _by_sums(table: Floats, centre: Floats, worlds: Worlds, units: Units | None) -> tuple[Floats, Floats]:
    """`(m, d)` and `(m, d, d)`: sums of the rows of every world, and of their products two by two."""
    from leakcap.kernels.moments._products import products_of

    d = table.shape[1]
    above = np.triu_indices(d)

    def products(some: Chosen) -> Floats:
        apart = table[some] - centre
        made = np.empty((len(apart), d + len(above[0])))
        made[:, :d] = apart
        products_of(apart, made[:, d:])
        return made

    sums = sums_of(products, d + len(above[0]), worlds, units)
    scatter = np.empty((worlds.m, d, d))
    scatter[:, above[0], above[1]] = scatter[:, above[1], above[0]] = sums[:, d:]
    return sums[:, :d], scatter


def shares(place: npt.NDArray[np.intp], places: int, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, columns, places)`: share of a world's rows at each place; `place` is `(rows, columns)`, -1 for nowhere."""
    columns = place.shape[1]

    def there(some: Chosen) -> Floats:
        return np.asarray(place[some][:, :, None] == np.arange(places)).reshape(-1, columns * places)

    total = sums_of(there, columns * places, worlds, units) / np.maximum(rows_in(worlds, units), 1)
    return total.reshape(worlds.m, columns, places)


def _centre(table: Floats) -> Floats:
    # In f64 even for f32 tables: deviations from it are then f64 too, and keep their digits when they are added up.
    return table.mean(axis=0, dtype=np.float64) if len(table) else np.zeros(table.shape[1:])
