"""What a law of noise must say of itself: how well two answers can be told apart under it, and how it is drawn.

Every law here has variance 1 along every direction of the noised coordinates, so that distances and scales are in noise
deviations whatever the law. `Normal` is the default; `leakcap.noise.exponential` has the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from leakcap.ground.arrays import Floats
from leakcap.noise.entropy import GRID, Randomness, sampler_distance

__all__ = ["NORMAL", "Law", "LawOf", "Normal", "normal"]

Figure = TypeVar("Figure", float, Floats)


class Law(Protocol):
    """The law of noise in some coordinates, with variance 1 along every direction."""

    def success(self, distances: Floats) -> Floats:
        """Of the best guess between two answers that are equally likely, so many noise deviations apart; at most."""
        ...

    def furthest(self, success: float) -> float:
        """A distance at which no guess has more than this success, in noise deviations."""
        ...

    def surest(self, distance: float) -> float:
        """Posterior probability of either of these two answers that no release exceeds."""
        ...

    def below(self, deviations: Floats) -> Floats:
        """Probability that the noise along one direction is below."""
        ...

    def quantile(self, probability: float) -> float:
        """What the noise along one direction is below with this probability."""
        ...

    def average(self, figure: Callable[[float], Figure]) -> Figure:
        """The mean of a figure over the scale of normal noise, where the law is normal noise of a random scale."""
        ...

    def draw(self, size: int, randomness: Randomness) -> Floats:
        """The noise of so many coordinates."""
        ...

    def sampler_distance(self, size: int, reach: float, step: float = GRID) -> float:
        """Total variation, at most, between what is drawn, on the grid, and the ideal law; `reach` bounds answers."""
        ...


LawOf = Callable[[int], Law]  # from the number of noised coordinates


@dataclass(frozen=True)
class Normal:
    """Independent normal numbers."""

    def success(self, distances: Floats) -> Floats:
        return np.asarray(ndtr(distances / 2))

    def furthest(self, success: float) -> float:
        return 2 * float(ndtri(success))

    def surest(self, distance: float) -> float:
        return 1.0 if distance else 0.5

    def below(self, deviations: Floats) -> Floats:
        return np.asarray(ndtr(deviations))

    def quantile(self, probability: float) -> float:
        return float(ndtri(probability))

    def average(self, figure: Callable[[float], Figure]) -> Figure:
        return figure(1.0)

    def draw(self, size: int, randomness: Randomness) -> Floats:
        return randomness.normals(size)

    def sampler_distance(self, size: int, reach: float, step: float = GRID) -> float:
        return sampler_distance(size, reach, step)


NORMAL = Normal()


def normal(size: int) -> Law:
    """The same law whatever the number of coordinates."""
    return NORMAL
