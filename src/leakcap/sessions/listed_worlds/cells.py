"""One number as a finite channel: every world has a table of cell masses, and the answer is drawn from it.

Nothing is approximated: the table *is* the law of the answer. Masses are whole numbers over 2^62, every row adds up
exactly, and one uniform whole number draws the cell. That the table is close to a normal law with the stated deviation
matters for what the answer is good for, and for nothing that is promised (docs/proofs/cells.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakcap.errors import InputError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise import Randomness

__all__ = ["REACH", "SCALE", "Channel", "cells_of"]

SCALE = 2**62  # all masses of a world add up to this
REACH = 6.0  # deviations beyond the outermost answers that the grid goes on for
PER_DEVIATION = 2  # cells in a deviation
MAX_ENTRIES = 2**24  # of the table, worlds x cells


@dataclass(frozen=True, eq=False)
class Channel:
    """A finite channel from worlds to cells.

    Attributes:
        values: `(cells,)`, the number that stands for each cell.
        counts: `(worlds, cells)`, masses as whole numbers; every row adds up to `SCALE`.
    """

    values: Floats
    counts: npt.NDArray[np.int64]

    def masses(self) -> Floats:
        """The table in floats, each entry rounded once."""
        return self.counts.astype(np.float64) * (1.0 / SCALE)

    @proves("cells")
    def draw(self, world: int, randomness: Randomness) -> int:
        """The cell of an answer in one world.

        Guarantee: cell `k` is drawn with probability exactly `counts[world, k] / SCALE`.
        """
        drawn = randomness.below(SCALE)
        return int(np.searchsorted(np.cumsum(self.counts[world]), drawn, side="right"))


@proves("cells")
def cells_of(outputs: npt.ArrayLike, noise: float, reach: float = REACH) -> Channel:
    """The channel of one noised number.

    Args:
        outputs: `(worlds,)`, the number in every world.
        noise: deviation of the noise, above 0.
        reach: deviations beyond the outermost outputs from which on tails are one cell.

    Returns:
        Cells of half a deviation around the outputs; the outermost ones take the tails.

    Raises:
        OutputError: an output is not finite.
        InputError: the noise is not above 0, or so small beside the differences of outputs that there are too many
            cells.
    """
    found = np.asarray(outputs, dtype=np.float64)
    if found.ndim != 1 or not found.size:
        raise InputError("outputs must hold one number for every world")
    if not np.isfinite(found).all():
        raise OutputError("the function gives no finite number in some world: map such cases to a number inside it")
    step = checks.positive(noise=noise) / PER_DEVIATION
    points, which = np.unique(found, return_inverse=True)
    edges, values = _edges(points, step, reach, most=MAX_ENTRIES // len(found))
    return Channel(values, _counts(points, edges, float(noise))[which])


def _edges(points: Floats, step: float, reach: float, *, most: int) -> tuple[Floats, Floats]:
    """Of the cells, from minus infinity to infinity, and the middle of each.

    Outputs that are far from each other have grids of their own, which meet half-way: the cells there are tails.
    """
    around = reach * PER_DEVIATION * step
    gaps = np.flatnonzero(np.diff(points) > 2 * around + step)
    first = points[np.concatenate([[0], gaps + 1])] - around
    last = points[np.concatenate([gaps, [-1]])] + around
    with np.errstate(over="ignore"):
        numbers = np.ceil((last - first) / step)
    if not numbers.sum() <= most:
        raise InputError(
            "the noise is too small beside the differences of this answer between worlds: ask with more noise"
        )
    grids = [a + step * np.arange(int(k) + 1) for a, k in zip(first, numbers, strict=True)]
    if any(len(grid) < 3 or not np.diff(grid).all() for grid in grids):
        raise InputError("the noise is too small beside the size of this answer: ask with more noise")
    meet = [(grid[-1] + other[0]) / 2 for grid, other in pairwise(grids)]
    ends = [-np.inf, *meet, np.inf]
    inner = [np.append(end, grid[1:-1]) for end, grid in zip(ends[:-1], grids, strict=True)]
    return np.concatenate([*inner, [np.inf]]), np.concatenate([grid[:-1] + step / 2 for grid in grids])


def _counts(points: Floats, edges: Floats, noise: float) -> npt.NDArray[np.int64]:
    """Masses between edges, from whichever tail is nearer; the largest of a row takes what rounding leaves."""
    away = (edges - points[:, None]) / noise
    tail = ndtr(-np.abs(away))
    right = away > 0
    left_tail, right_tail = tail[:, :-1], tail[:, 1:]
    masses = np.where(
        right[:, :-1],
        left_tail - right_tail,
        np.where(right[:, 1:], 1 - left_tail - right_tail, right_tail - left_tail),
    )
    counts = np.rint(np.maximum(masses, 0.0) * SCALE).astype(np.int64)
    rows = np.arange(len(counts))
    counts[rows, counts.argmax(axis=1)] += SCALE - counts.sum(axis=1)
    return counts
