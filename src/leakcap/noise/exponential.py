"""Noise whose density falls like `exp(-|x|/s)` in the Euclidean norm, in any number of coordinates.

Its length has the law Gamma(d, s) and its direction is uniform (Membership Inference Privacy, Theorem 9; Corollary 10
has another radius, and does not hold: docs/proofs/first-moment.md). It is normal noise of a random scale: `d` normal
numbers, multiplied by the length of `d + 1` further ones. So all that is known of normal noise is known of it, on
average over that scale. Other norms: `leakcap.noise.norm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise.entropy import GRID, Randomness, sampler_distance
from leakcap.noise.laws import Figure

__all__ = ["Exponential", "scales"]

REACH, CELLS = 24.0, 2**14  # deviations up to which success is tabulated, and in how many cells
NEGLIGIBLE = 45.0  # natural logarithm: weights smaller by this much are left out
ROUNDING = 1e-12  # what a sum over scales loses, with room to spare


@dataclass(frozen=True)
class Exponential:
    """Density proportional to `exp(-|x| sqrt(d + 1))` in `d = dimension` coordinates: variance 1 in each."""

    dimension: int

    @property
    def scale(self) -> float:
        """`s` of the density `exp(-|x|/s)`."""
        return 1 / math.sqrt(self.dimension + 1)

    @proves("exponential")
    def success(self, distances: Floats) -> Floats:
        """Of the best guess between two answers, by distance; rounded up.

        Guarantee: exact but for rounding (less than 1e-6), and a concave function of the distance. The best guess is
        the nearer answer, so it is right where the noise does not reach beyond the middle.
        """
        table = _table(self.dimension)
        place = np.minimum(np.asarray(distances) * (CELLS / (2 * REACH)), CELLS - 1e-9)
        cell = place.astype(np.intp)
        found = table.values[cell] + table.rise[cell] * (place - cell) + table.slack
        return np.where(np.asarray(distances) < 2 * REACH, np.minimum(found, 1.0), 1.0)

    def furthest(self, success: float) -> float:
        low, high = 0.0, 2 * REACH
        for _ in range(64):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.success(np.array(middle))) <= success else (low, middle)
        return low

    @proves("exponential")
    def surest(self, distance: float) -> float:
        """The likelihood ratio is at most `exp(distance / scale)`, whatever is released."""
        return min(1.0, float(expit(distance / self.scale)) * (1 + ROUNDING))

    def below(self, deviations: Floats) -> Floats:
        table, size = _table(self.dimension), np.abs(deviations)
        found = np.interp(size, np.linspace(0, REACH, CELLS + 1), table.values, right=1.0)
        return np.where(np.asarray(deviations) < 0, 1 - found, found)

    def quantile(self, probability: float) -> float:
        table = _table(self.dimension)
        size = float(np.interp(max(probability, 1 - probability), table.values, np.linspace(0, REACH, CELLS + 1)))
        return size if probability >= 0.5 else -size

    def average(self, figure: Callable[[float], Figure]) -> Figure:
        sizes, weights = scales(self.dimension)
        total = sum(weight * figure(size) for size, weight in zip(sizes.tolist(), weights.tolist(), strict=True))
        return total  # type: ignore[return-value]  # there is at least one

    @proves("exponential")
    def draw(self, size: int, randomness: Randomness) -> Floats:
        """As many normal numbers, times the length of one more than as many further ones, over its root mean square."""
        numbers = randomness.normals(2 * size + 1)
        length = math.sqrt(math.fsum(number * number for number in numbers[size:].tolist()))
        return np.asarray(numbers[:size] * (length / math.sqrt(size + 1)))

    @proves("exponential")
    def sampler_distance(self, size: int, reach: float, step: float = GRID) -> float:
        """Twice that of normal noise, and what is lost in the scale.

        Guarantee: in every world the law of the released grid point differs from that of the ideal noise by at most
        this much, in total variation.
        """
        scale = math.sqrt(size / 2) * (2.0**-46 + (size + 1) * 2.0**-57)
        return 2 * sampler_distance(size, reach, step) + scale + 2.0**-52


def scales(dimension: int) -> tuple[Floats, Floats]:
    """Scales of the normal noise that exponential noise is made of, and their weights: a sum in place of an integral.

    The square of the scale is chi-square of `dimension + 1` degrees over their number. In its logarithm the integrand
    is analytic in a strip, so that equal steps err by less than the digits kept (docs/proofs/exponential.md).
    """
    half = (dimension + 1) / 2
    step = min(0.2, 0.5 / math.sqrt(half))
    most = NEGLIGIBLE / half
    far = math.ceil((most + math.sqrt(2 * most)) / step)  # further out, weights are negligible on both sides
    logs = step * np.arange(-far, far + 1)
    logs = logs[np.exp(logs) - 1 - logs <= most + 1]
    weights = np.exp(half * (logs - np.expm1(logs)))
    return np.exp(logs / 2), weights / weights.sum()


class _Table(NamedTuple):
    values: Floats  # (CELLS + 1,): probability that the noise along a direction is below each end of a cell
    rise: Floats  # from one end to the next, in the same units
    slack: float  # how far the curve is above its chords at most, and rounding


@lru_cache(maxsize=64)
def _table(dimension: int) -> _Table:
    sizes, weights = scales(dimension)
    ends = np.linspace(0, REACH, CELLS + 1)
    values, density = np.zeros(CELLS + 1), np.zeros(CELLS + 1)
    for size, weight in zip(sizes.tolist(), weights.tolist(), strict=True):
        values += weight * ndtr(ends / size)
        density += weight / size * np.exp(-((ends / size) ** 2) / 2)
    # Between two points a concave curve lies below its tangents there, and so by at most a quarter of the cell's width
    # times the fall of its slope above the chord.
    fall = (density[:-1] - density[1:]).max() / math.sqrt(2 * math.pi)
    slack = float(fall) * (REACH / CELLS) / 4 * (1 + 1e-6) + ROUNDING
    return _Table(np.minimum(values, 1.0), np.diff(np.minimum(values, 1.0)), slack)
