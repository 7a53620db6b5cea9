"""Counts of cells that lie in a row, and of fours of them, and of fours of those: for sums over many cells at once.

A count up to a point is then made of a few counts instead of hundreds, so that far less noise adds up in it. Every
level counts each row once, and all levels have noise of one size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import Extent

__all__ = ["TreeCounts", "extent_of_trees"]

BRANCHES = 4


@dataclass(frozen=True)
class TreeCounts:
    """So many cells in a row, and the levels of counts above them: the cells first, at most four counts last."""

    cells: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many counts each level has."""
        found = [self.cells]
        while found[-1] > BRANCHES:
            found.append(-(-found[-1] // BRANCHES))
        return tuple(found)

    def count_rows(self, found: Floats, owner: Ints, place: Ints) -> None:
        """Add rows, in the cells `place`, to all counts `(units, counts)` of those whose rows they are."""
        start = 0
        for level, size in enumerate(self.sizes):
            np.add.at(found, (owner, start + place // BRANCHES**level), 1.0)
            start += size

    def best_cells(self, counts: Floats) -> Floats:
        """The cells that fit all noised counts best, by least squares: going up, then down (Hay and others, 2010)."""
        own = np.split(counts, np.cumsum(self.sizes)[:-1])
        found, variance = [own[0]], [np.ones(self.cells)]
        for level, size in zip(own[1:], self.sizes[1:], strict=True):
            first = np.arange(size) * BRANCHES
            below, unsure = np.add.reduceat(found[-1], first), np.add.reduceat(variance[-1], first)
            trust = unsure / (1 + unsure)  # in the count itself, which has variance 1
            found.append(trust * level + (1 - trust) * below)
            variance.append(trust)
        best = found[-1]
        for part, unsure in zip(found[-2::-1], variance[-2::-1], strict=True):
            above = np.arange(len(part)) // BRANCHES
            missing = best - np.bincount(above, part)
            best = part + (missing / np.bincount(above, unsure))[above] * unsure
        return best


def extent_of_trees(trees: list[TreeCounts], rows: int) -> Extent:
    """The most that one person moves the counts of several trees: with each row, one count of every level."""
    sizes = [size for tree in trees for size in tree.sizes]
    part = np.repeat(np.arange(len(sizes)), sizes)
    alone: Ints = np.arange(len(part))
    # Weights by which all levels get noise of one size.
    return Extent(np.full(len(part), float(rows)), part, alone, 1.0 / np.asarray(sizes, dtype=np.float64)[part])
