"""Means, covariances and shares in all worlds at once, from sums over the units of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.kernels.sums import by_unit, masked_sums
from leakcap.worlds import Units, Worlds

__all__ = ["covariances", "means", "shares"]

Floats = npt.NDArray[np.float64]
AT_ONCE = 32  # places whose rows are counted together


def means(table: Floats, units: Units, worlds: Worlds) -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    centre = _centre(table)
    total, rows = _sums(table - centre, units, worlds)
    return np.where(rows > 0, centre + total / np.maximum(rows, 1), 0.0)


def covariances(table: Floats, units: Units, worlds: Worlds) -> Floats:
    """`(m, d, d)`: covariances, divided by the rows less one; 0 in a world of fewer than two rows."""
    apart = table - _centre(table)  # covariances do not move with the centre, and rounding errors stay small
    d = table.shape[1]
    above = np.triu_indices(d)
    products = apart[:, above[0]] * apart[:, above[1]]
    sums, rows = _sums(np.hstack([apart, products]), units, worlds)
    first, second = sums[:, :d], sums[:, d:]
    upper = (second - first[:, above[0]] * first[:, above[1]] / np.maximum(rows, 1)) / np.maximum(rows - 1, 1)
    full = np.zeros((worlds.m, d, d))
    full[:, above[0], above[1]] = full[:, above[1], above[0]] = np.where(rows > 1, upper, 0.0)
    return full


def shares(place: npt.NDArray[np.intp], places: int, units: Units, worlds: Worlds) -> Floats:
    """`(m, columns, places)`: share of a world's rows at each place; `place` is `(rows, columns)`, -1 for nowhere."""
    columns = place.shape[1]
    found = np.empty((worlds.m, columns * places))
    rows: Any = None
    for start in range(0, found.shape[1], AT_ONCE):
        some = [divmod(flat, places) for flat in range(start, min(start + AT_ONCE, found.shape[1]))]
        there = np.stack([place[:, column] == where for column, where in some], axis=1)
        total, rows = _sums(there.astype(np.float64), units, worlds)
        found[:, start : start + len(some)] = total / np.maximum(rows, 1)
    return found.reshape(worlds.m, columns, places)


def _centre(table: Floats) -> Floats:
    return table.mean(axis=0) if len(table) else np.zeros(table.shape[1:])


def _sums(features: Floats, units: Units, worlds: Worlds) -> tuple[Floats, Any]:
    """Sums of features in every world, and the number of rows in it."""
    if units.of_row is None:
        return masked_sums(features, worlds), worlds.sizes()[:, None].astype(np.float64)
    counted = np.column_stack([features, np.ones(len(features))])
    sums = masked_sums(by_unit(counted, units), worlds)
    return sums[:, :-1], np.rint(sums[:, -1:])
