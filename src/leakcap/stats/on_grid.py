"""Quantiles from counts between declared cut points, a grid: what people bring, and what is made of the counts.

Under a pool cap counts are released on a tree of cells. With a coin for everybody the pool is known, so that what a
person brings is by how much the pool's own quantile moves with the person, to first order.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from leakcap.errors import BoundsWarning, InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.callers import frames_of_ours
from leakcap.kernels.bounded import Bounded, Declared, unit_sums
from leakcap.kernels.contributions import Contributions
from leakcap.kernels.moments import shares
from leakcap.stats.cells import bin_of, numbers, one_table, quantile_levels
from leakcap.stats.tree_counts import TreeCounts, extent_of_trees
from leakcap.worlds import Units, Worlds

__all__ = [
    "CELLS",
    "bounded_quantiles",
    "grids_of",
    "in_worlds",
    "moved_quantiles",
    "quantiles_from_counts",
    "quantiles_on_grid",
]

CELLS = 128  # of a grid, where bounds are given and no cut points
MAX_CELLS = 2**28  # numbers that all units bring together
NO_GRID = (
    "{where} released quantiles are made of counts between cut points: declare them, such as grid=range(0, 101, 5) "
    "for ages. They must not come from the data"
)


def grids_of(grid: Any, rows: Any) -> list[Floats]:
    """The cut points for each column of the rows."""
    names = [str(name) for name in getattr(rows, "columns", ())]
    count = np.shape(rows)[1] if np.ndim(rows) == 2 else 1
    if isinstance(grid, (list, tuple)) and grid and np.ndim(grid[0]):
        if len(grid) != count:
            raise InputError(f"{len(grid)} grids for {count} columns: give one for all, or one for each")
        return [_ascending(cuts) for cuts in grid]
    if not isinstance(grid, Mapping):
        return [_ascending(grid)] * count
    given = {str(name): cuts for name, cuts in grid.items()}
    if len(names) != count:
        raise InputError("a grid by name needs a table whose columns have names: otherwise give one for all columns")
    absent = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if absent or unknown:
        raise InputError(
            f"no grid for column {absent[0]!r}: every column needs one"
            if absent
            else f"grid names a column that is not asked about: {unknown[0]!r}; there are {names}"
        )
    return [_ascending(given[name]) for name in names]


def quantiles_on_grid(rows: Any, levels: Floats, grid: Any) -> Floats:
    """Of every column, `(*levels, columns)`, from how many rows lie between the cut points."""
    table, grids = numbers(rows), grids_of(grid, rows)
    columns = table[:, None] if table.ndim == 1 else table
    found = np.empty((levels.size, len(grids)))
    for column, cuts in enumerate(grids):
        values = columns[:, column]
        found[:, column] = (
            np.nan if np.isnan(values).any() else quantiles_from_counts(_counts(values, cuts), cuts, levels)
        )
    return found.reshape(levels.shape + table.shape[1:])


def in_worlds(table: Floats, grids: list[Floats], levels: Floats, *, worlds: Worlds, units: Units) -> Floats:
    """The same in all worlds, `(worlds, levels x columns)`."""
    found = np.empty((worlds.m, levels.size, len(grids)))
    for column, cuts in enumerate(grids):
        each = shares(bin_of(table[:, [column]], cuts), len(cuts) - 1, worlds, units)[:, 0]
        for world, counts in enumerate(each):
            found[world, :, column] = quantiles_from_counts(counts, cuts, levels)
    return found.reshape(worlds.m, -1)


def moved_quantiles(
    data: tuple[Any, ...], units: Units, q: float | Sequence[float] = 0.5, grid: Any = None
) -> Contributions:
    """By how much every unit moves the pool's own quantiles, to first order: its rows below them, less the share q.

    In the cell that holds a quantile a row counts as far as the cell lies below it.
    """
    if grid is None:
        raise InputError(NO_GRID.format(where="with design='bits'"))
    table, grids, levels = one_table(data), grids_of(grid, data[0]), quantile_levels(q)
    if units.count * levels.size * len(grids) > MAX_CELLS:
        raise InputError(
            f"{levels.size * len(grids):,} quantiles are too many for {units.count:,} units: ask for fewer"
        )
    below, pools = [], []
    for column, cuts in enumerate(grids):
        counts = _counts(table[:, column], cuts)
        place, inside = _found(counts, levels)
        cell = bin_of(table[:, column], cuts)[:, None]
        below.append((cell < place) + (cell == place) * inside - levels.ravel())
        pools.append(counts)
    values = unit_sums(np.concatenate(below, axis=1), units.of_row, units.count)
    finish = partial(
        _moved, pools=pools, grids=grids, levels=levels, flat=np.ndim(data[0]) == 1, rows=max(len(table), 1)
    )
    return Contributions(values, averaged=False, finish=finish, cut=_outside(table, grids))


def bounded_quantiles(
    data: tuple[Any, ...], units: Units, declared: Declared, q: float | Sequence[float] = 0.5, grid: Any = None
) -> Bounded:
    """How many rows lie between the cut points of each column, on a tree of counts."""
    if grid is None:
        raise InputError(NO_GRID.format(where="under a pool cap"))
    table, grids, levels = one_table(data), grids_of(grid, data[0]), quantile_levels(q)
    if not declared.quiet:
        _warn_of_own_ends(table, grids)
    trees = [TreeCounts(len(cuts) - 1) for cuts in grids]
    extent = extent_of_trees(trees, declared.rows)
    if not declared.quiet and units.count * len(extent.limits) > MAX_CELLS:
        raise InputError(f"{len(extent.limits):,} counts are too many for {units.count:,} units: a coarser grid")
    owner = np.arange(units.rows) if units.of_row is None else units.of_row
    values, start = np.zeros((units.count, len(extent.limits))), 0
    for column, (tree, cuts) in enumerate(zip(trees, grids, strict=True)):
        stop = start + sum(tree.sizes)
        tree.count_rows(values[:, start:stop], owner, bin_of(table[:, column], cuts))
        start = stop
    finish = partial(_counted, trees=trees, grids=grids, levels=levels, flat=np.ndim(data[0]) == 1)
    return Bounded(values, extent, finish, _outside(table, grids))


def _counted(total: Floats, *, trees: list[TreeCounts], grids: list[Floats], levels: Floats, flat: bool) -> Floats:
    parts = np.split(total, np.cumsum([sum(tree.sizes) for tree in trees])[:-1])
    found = [
        quantiles_from_counts(tree.best_cells(part), cuts, levels)
        for tree, part, cuts in zip(trees, parts, grids, strict=True)
    ]
    return _formed(found, levels, flat)


def _moved(total: Floats, *, pools: list[Floats], grids: list[Floats], levels: Floats, flat: bool, rows: int) -> Floats:
    """Where the pool's share of rows below is what is left of the level; a higher level has no lower quantile."""
    found = []
    for moved, counts, cuts in zip(np.split(total, len(grids)), pools, grids, strict=True):
        there = np.clip(levels.ravel() - moved / rows, 0.0, 1.0)
        order = np.argsort(levels.ravel(), kind="stable")
        there[order] = np.maximum.accumulate(there[order])
        found.append(quantiles_from_counts(counts, cuts, there))
    return _formed(found, levels, flat)


def _formed(found: list[Floats], levels: Floats, flat: bool) -> Floats:
    each = np.stack(found, axis=-1)
    return each[:, 0].reshape(levels.shape) if flat else each.reshape(*levels.shape, -1)


def quantiles_from_counts(counts: Floats, cuts: Floats, levels: Floats) -> Floats:
    """Quantiles from counts between cut points, linear inside a cell; without anybody, the middle of the grid."""
    place, inside = _found(counts, levels)
    if place[0] < 0:
        return np.full(levels.size, (cuts[0] + cuts[-1]) / 2)
    return np.asarray(cuts[place] + inside * (cuts[place + 1] - cuts[place]))


def _found(counts: Floats, levels: Floats) -> tuple[Ints, Floats]:
    """The cell of each quantile, and how far inside the cell it lies; cells of -1 where there is nobody."""
    from scipy.optimize import isotonic_regression  # slow to import, and not needed to import leakcap

    upto = np.cumsum(counts)
    if counts.min() < 0:  # noised: the nearest counts that grow
        upto = np.maximum(isotonic_regression(upto).x, 0.0)
    if not upto[-1] > 0:
        return np.full(levels.size, -1, dtype=np.intp), np.zeros(levels.size)
    wanted = levels.ravel() * upto[-1]
    somebody = np.maximum(wanted, 1e-12 * upto[-1])  # the lowest quantile is where the first row lies
    place = np.minimum(np.searchsorted(upto, somebody, side="left"), len(counts) - 1)
    before = np.where(place > 0, upto[place - 1], 0.0)
    own = upto[place] - before
    return place, np.clip((wanted - before) / np.where(own > 0, own, 1.0), 0.0, 1.0)


def _counts(values: Floats, cuts: Floats) -> Floats:
    return np.bincount(bin_of(values, cuts), minlength=len(cuts) - 1).astype(np.float64)


def _outside(table: Floats, grids: list[Floats]) -> int:
    """How many values lie beyond the ends of their grid; they count in its first or last cell."""
    low, high = np.array([cuts[0] for cuts in grids]), np.array([cuts[-1] for cuts in grids])
    return int(((table < low) | (table > high)).sum())


def _warn_of_own_ends(table: Floats, grids: list[Floats]) -> None:
    low, high = np.array([cuts[0] for cuts in grids]), np.array([cuts[-1] for cuts in grids])
    if len(table) and ((table.min(axis=0) == low) & (table.max(axis=0) == high) & (high - low != 1)).any():
        warnings.warn(
            "a grid begins at the smallest value of its column and ends at the largest. If it was read off the data, "
            "it publishes people's values: take cut points that are known without looking",
            BoundsWarning,
            stacklevel=1 + frames_of_ours(),
        )


def _ascending(grid: Any) -> Floats:
    try:
        cuts = np.asarray(grid if isinstance(grid, np.ndarray) else list(grid), dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty(0)
    if cuts.ndim != 1 or len(cuts) < 2 or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        raise InputError(
            "grid must be at least two finite numbers, each above the one before, for all columns alike; for each "
            "column its own in a list, or {column: numbers} for a table"
        )
    return cuts
