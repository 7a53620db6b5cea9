"""Sums over the rows of every world: the one primitive behind means, covariances, shares and Gram matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores, threads
from leakcap.worlds import Units, Worlds

__all__ = ["Chosen", "masked_sums", "rows_in", "sums_of"]

Chosen = slice | npt.NDArray[np.intp]  # some rows of the data
WORD = 64  # units whose bits a pass of the compiled loop takes together
MAX_CACHED_NUMBERS = 2**16  # numbers that are made at a time: they stay in the second cache


def masked_sums(table: Floats, worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, d)`: for every world, the sum of the table's rows in it."""
    given = np.asarray(table, dtype=np.float64)
    return sums_of(lambda rows: given[rows], given.shape[1], worlds, units)


def rows_in(worlds: Worlds, units: Units | None = None) -> Floats:
    """`(m, 1)`: how many rows each world has."""
    if units is None or units.of_row is None:
        return worlds.sizes()[:, None].astype(np.float64)
    return masked_sums(np.bincount(units.of_row, minlength=units.count)[:, None].astype(np.float64), worlds)


def sums_of(
    make: Callable[[Chosen], Floats],
    columns: int,
    worlds: Worlds,
    units: Units | None = None,
    *,
    parts: int | None = None,
) -> Floats:
    """The same for features that `make` gives for some rows at a time: they need not exist all at once.

    Complementary worlds cost nothing: theirs is what is left of the total. The result is the same on every run with as
    many threads; where units are cut into a given number of parts, with any number of them.
    """
    from leakcap.kernels.moments._sum_loops import LANES, add_masked

    drawn = worlds.packed[: worlds.m // 2] if worlds.paired else worlds.packed
    tiles, whole = -(-columns // LANES), columns // LANES
    share = max(1, -(-worlds.n // ((parts or threads()) * WORD))) * WORD
    step = max(1, MAX_CACHED_NUMBERS // (tiles * LANES * WORD)) * WORD
    made = make if units is None or units.of_row is None else _added_up(make, units.of_row, units.count)

    def add(first: int) -> tuple[Floats, Floats]:
        found, total = np.zeros((tiles, len(drawn), LANES)), np.zeros(columns)
        space = np.zeros(tiles * step * LANES)
        last = min(first + share, worlds.n)
        for start in range(first, last, step):
            features = made(slice(start, min(start + step, last)))
            total += features.sum(axis=0)
            rows = len(features)
            some = space[: tiles * rows * LANES].reshape(tiles, rows, LANES)  # columns of a tile lie together
            some[:whole] = features[:, : whole * LANES].reshape(rows, whole, LANES).transpose(1, 0, 2)
            some[whole:, :, : columns % LANES] = features[:, whole * LANES :]
            add_masked(some, drawn, start // 8, found)
        return found.transpose(1, 0, 2).reshape(len(drawn), tiles * LANES)[:, :columns], total

    added = on_all_cores(add, range(0, worlds.n, share))
    half = np.sum([found for found, _ in added], axis=0)
    return np.concatenate([half, np.sum([total for _, total in added], axis=0) - half]) if worlds.paired else half


def _added_up(make: Callable[[Chosen], Floats], of_row: npt.NDArray[np.intp], units: int) -> Callable[[slice], Floats]:
    """Features of some units: those of their rows, added up."""
    order = np.argsort(of_row, kind="stable")
    ends = np.searchsorted(of_row[order], np.arange(units + 1))

    def added(some: slice) -> Floats:
        starts = ends[some]
        features = make(order[starts[0] : ends[some.stop]])
        return np.asarray(np.add.reduceat(features, starts - starts[0], axis=0))

    return added
