"""Gaussian noise in whole numbers: a rounded normal as a table of chances out of 2^64."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.integer_law import ONE, system_words

__all__ = ["LEAST_DEVIATION", "GridNoise", "grid_points"]

LEAST_DEVIATION = 64.0  # in steps of the grid: the quadrature below is exact to the last digits from here on
_REACH = 9.0  # deviations; a normal exceeds them with probability below 2^-61
_EVALUATION = 2.0**-48  # total variation by the last digits of the cells' probabilities
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def grid_points(deviation: float) -> int:
    """Whole numbers that noise of this deviation may fall on."""
    return 2 * math.ceil(_REACH * deviation) + 1


class GridNoise:
    """A normal of this deviation, rounded to the nearest whole number and drawn by whole-number chances.

    The table holds every outcome within nine deviations. All chances are rounded up but that of 0, which takes what the
    others leave.

    Args:
        deviation: standard deviation before rounding, at least `LEAST_DEVIATION`.
    """

    def __init__(self, deviation: float) -> None:
        if not deviation >= LEAST_DEVIATION:
            raise AssertionError("so fine a normal is not evaluated exactly")
        self.deviation = deviation
        self.reach = grid_points(deviation) // 2

    @cached_property
    def weights(self) -> npt.NDArray[np.uint64]:
        """Chances out of 2^64 of -reach, ..., reach."""
        half = _upper_cells(self.reach, self.deviation) * 2.0**64
        above = half.astype(np.uint64) + np.uint64(1)
        middle = ONE - 2 * int(above.sum(dtype=np.uint64))  # each side holds less than half of 2^64
        return np.concatenate([above[::-1], np.array([middle], dtype=np.uint64), above])

    @cached_property
    def _ends(self) -> npt.NDArray[np.uint64]:
        """The last 64-bit number of every outcome; the sum of all wraps to 0, whose predecessor is 2^64 - 1."""
        return np.asarray(np.cumsum(self.weights, dtype=np.uint64) - np.uint64(1))

    @proves("label-statistics")
    def draw(self, size: int) -> Ints:
        """Independent whole numbers, exactly by the weights."""
        places = np.searchsorted(self._ends, system_words(np.uint64, size), side="left")
        return np.asarray(places.astype(np.int64) - self.reach)

    @proves("label-statistics")
    def distance(self, size: int) -> float:
        """Total variation, at most, between so many draws and as many rounded normals.

        Guarantee: it covers the rounding of the chances, the last digits of their evaluation, and the cut tails.
        """
        return size * (grid_points(self.deviation) * 2.0**-63 + _EVALUATION)


def _upper_cells(reach: int, deviation: float) -> Floats:
    """Normal probabilities of the cells around 1, ..., reach: each by four nodes, never as a difference."""
    middle = np.arange(1, reach + 1)
    found = np.zeros(reach)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        found += weight / 2 * np.exp(-0.5 * np.square((middle + node / 2) / deviation))
    return np.asarray(found / (deviation * math.sqrt(2 * math.pi)))
