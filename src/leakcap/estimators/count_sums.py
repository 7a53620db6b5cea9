"""One- and two-way counts of declared cells, and a law of rows that is made of noised ones."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.sums import MAX_CELLS, Moved, OfAll
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import Bounded, Declared, Extent, unit_sums
from leakcap.kernels.moments import sums_of
from leakcap.worlds import Units, Worlds

__all__ = ["CountSums", "CountedCells", "TreeOfColumns", "fitted_tree", "moved_shares", "shares"]

FITTED = 20  # times that a two-way table is fitted to its margins
Named = dict[str, Floats]


@dataclass(frozen=True)
class CountedCells:
    """The numbers that are counted: the cells of every column, then those of every pair of columns."""

    sizes: tuple[int, ...]  # cells of each column

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.sizes)), 2))

    @cached_property
    def parts(self) -> list[int]:
        """The number of cells of each table."""
        return [*self.sizes, *(self.sizes[i] * self.sizes[j] for i, j in self.pairs)]

    @property
    def width(self) -> int:
        return sum(self.parts)

    def places(self, codes: Ints) -> Ints:
        """Where each row counts in each table, `(rows, tables)`; -1 where it is in no declared cell."""
        known = codes >= 0
        one = np.where(known, codes, -1)
        two = [
            np.where(known[:, i] & known[:, j], codes[:, i] * self.sizes[j] + codes[:, j], -1) for i, j in self.pairs
        ]
        found = np.column_stack([one, *two]) if two else one
        return np.where(found >= 0, found + np.cumsum([0, *self.parts[:-1]]), -1)

    def counted(self, codes: Ints) -> Floats:
        """What each row adds to each number, `(rows, width)`."""
        place = self.places(codes)
        found = np.zeros((len(codes), self.width))
        row, table = np.nonzero(place >= 0)
        found[row, place[row, table]] = 1.0
        return found

    def tables(self, numbers: Floats) -> tuple[list[Floats], dict[tuple[int, int], Floats]]:
        """One-way tables, and two-way tables by pair."""
        parts = np.split(numbers, np.cumsum(self.parts)[:-1])
        count = len(self.sizes)
        shaped = (
            part.reshape(self.sizes[i], self.sizes[j]) for part, (i, j) in zip(parts[count:], self.pairs, strict=True)
        )
        return parts[:count], dict(zip(self.pairs, shaped, strict=True))

    def refuse_too_many(self, units: int) -> None:
        """An error where the counts of all units do not fit in memory."""
        if units * self.width > MAX_CELLS:
            raise InputError(f"{self.width:,} cells are too many for {units:,} people: declare fewer columns or cells")


@dataclass(frozen=True, eq=False)
class CountSums(OfAll):
    """The counts under a pool cap: in every table a row counts in one cell."""

    cells: CountedCells

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """How often every unit counts in each cell."""
        self.cells.refuse_too_many(units.count)
        counts = unit_sums(self.cells.counted(data[0]), units.of_row, units.count)
        return Bounded(counts, Extent.one_of(self.cells.parts, declared.rows), partial(_as_shares, cells=self.cells))


@dataclass(frozen=True, eq=False)
class _ShareMoves:
    """By how much a row moves the shares of all cells."""

    cells: CountedCells
    share: Floats
    total: float

    def __call__(self, codes: Ints, weight: Floats) -> Floats:
        return np.asarray((self.cells.counted(codes) - self.share) * (weight / self.total)[:, None])


def moved_shares(codes: Ints, weight: Floats, cells: CountedCells) -> Moved:
    """The shares of all cells in the whole pool, and by how much every row moves them."""
    cells.refuse_too_many(len(codes))
    share = shares(codes, weight, cells=cells)["shares"]
    return Moved({"shares": share}, _ShareMoves(cells, share, float(weight.sum())))


def _all_shares(data: tuple[Any, ...], units: Units, worlds: Worlds, cells: CountedCells) -> Floats:
    codes, weight = data

    def parts(some: Any) -> Floats:
        return np.column_stack([cells.counted(codes[some]) * weight[some, None], weight[some]])

    found = sums_of(parts, cells.width + 1, worlds, units)
    return found[:, :-1] / np.maximum(found[:, -1:], np.finfo(float).tiny)


@kernels.offers(_all_shares)
def shares(codes: Ints, weight: Floats, *, cells: CountedCells) -> Named:
    """The share of rows in every cell of every table."""
    place = cells.places(codes)
    inside = place >= 0
    count = np.bincount(place[inside], np.broadcast_to(weight[:, None], place.shape)[inside], minlength=cells.width)
    return {"shares": count / max(float(weight.sum()), np.finfo(float).tiny)}


def _as_shares(total: Floats, *, cells: CountedCells) -> Named:
    """The counts of each table over their own total, at least 1."""
    one, two = cells.tables(np.maximum(total, 0.0))
    found = [part / max(float(part.sum()), 1.0) for part in (*one, *two.values())]
    return {"shares": np.concatenate([part.ravel() for part in found])}


class TreeOfColumns(BaseEstimator):
    """Holds a released law of rows: a tree of columns, each drawn given the one before it.

    Attributes:
        order_: `(columns, 2)`: each column, and the one that it is drawn given; -1 for the first.
        margins_: the shares of each column's cells.
        given_: for each column in `order_`, the shares of its cells given the cell of the other, `(cells, cells)`.
    """

    order_: Ints
    margins_: list[Floats]
    given_: list[Floats]

    def draw(self, n: int, rng: Any) -> Ints:
        """CountedCells of `n` rows, `(n, columns)`."""
        drawn = np.zeros((n, len(self.margins_)), dtype=np.intp)
        for (column, other), given in zip(self.order_, self.given_, strict=True):
            before = np.zeros(n, dtype=np.intp) if other < 0 else drawn[:, other]
            ends = np.cumsum(given, axis=1)[before]
            drawn[:, column] = np.minimum(
                (rng.random_sample((n, 1)) * ends[:, -1:] >= ends).sum(axis=1), given.shape[1] - 1
            )
        return drawn


def fitted_tree(value: Named, *, cells: CountedCells) -> TreeOfColumns:
    """The tree of columns whose pairs tell most of each other, by the released tables (Chow and Liu).

    Two-way tables are cut at 0 and fitted to the released one-way tables.
    """
    one, two = cells.tables(value["shares"])
    made = TreeOfColumns()
    made.margins_ = [_share(part) for part in one]
    tables = {pair: _fitted(np.maximum(table, 0.0), *(made.margins_[i] for i in pair)) for pair, table in two.items()}
    told = np.zeros((len(one), len(one)))
    for (i, j), table in tables.items():
        told[i, j] = told[j, i] = _information(table)
    order, given, left = [(0, -1)], [made.margins_[0][None]], set(range(1, len(one)))
    while left:
        there = [column for column, _ in order]
        other, column = max(itertools.product(there, sorted(left)), key=lambda pair: told[pair])
        table = tables[other, column] if other < column else tables[column, other].T
        order.append((column, other))
        given.append(np.stack([_share(row, made.margins_[column]) for row in table]))
        left.remove(column)
    made.order_, made.given_ = np.array(order), given
    return made


def _share(counts: Floats, otherwise: Floats | None = None) -> Floats:
    """Shares that are not negative and add up to 1; where there is nothing, `otherwise`, or equal ones."""
    kept = np.maximum(counts, 0.0)
    total = float(kept.sum())
    if total > 1e-12:
        return np.asarray(kept / total)
    return np.full(len(counts), 1 / len(counts)) if otherwise is None else otherwise


def _fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table with given margins that is nearest to another (iterative proportional fitting)."""
    found = _share(table.ravel(), np.outer(rows, columns).ravel()).reshape(table.shape)
    found = found + 1e-9 * np.outer(rows, columns)  # no margin is out of reach
    for _ in range(FITTED):
        found = found * (rows / np.maximum(found.sum(axis=1), 1e-300))[:, None]
        found = found * (columns / np.maximum(found.sum(axis=0), 1e-300))
    return np.asarray(found)


def _information(table: Floats) -> float:
    """Mutual information of a two-way table, in nats."""
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    inside = table > 0
    return math.fsum(table[inside] * np.log(table[inside] / apart[inside]))
