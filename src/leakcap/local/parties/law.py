"""The noise that parties draw together: sums of fair coins, none of which anybody knows.

A coin is the exclusive or of coins of several parties, one of whom at least is outside any coalition of the size that
is guarded against. So the noise, to every coalition, is a sum of fair coins of which it knows nothing: a whole number
of steps of a fine grid, with a law that is known exactly. Three kinds of coins add up to one number: many of weight 8,
which make it bell-shaped; 256 of weight 1, which fill the gaps between multiples of 8; and some of weights 1/2, 1/4 and
so on, which together are uniform, so that sums need not be rounded to the grid of the others before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import gammaln, ndtr

from leakcap.caps import Cap
from leakcap.errors import CapError, InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Extent
from leakcap.modes.about_one import furthest_apart
from leakcap.modes.pool import FINE, told_apart
from leakcap.noise.bounded import charge, least_deviations
from leakcap.noise.laws import NORMAL

__all__ = ["CoinLaw", "CoinNoise", "calibrated"]

COARSE = 8
FILLING = 256  # coins of weight 1: their deviation, 8, is that of a gap, which leaves no trace of it
MOST_COINS = 1_300_000  # of one party, in all numbers
LEAST_COINS = 2**10
ROUNDING = 1e-9  # what the law's masses are off by in all, with room to spare


@dataclass(frozen=True)
class CoinLaw:
    """The law of the noise in one number: how many coins there are of each kind."""

    coarse: int
    filling: int = FILLING
    dither: int = 22  # coins below weight 1

    @property
    def count(self) -> int:
        """Of coins in one number."""
        return self.coarse + self.filling + self.dither

    @property
    def deviation(self) -> float:
        """Of the noise, in units of the coins of weight 1; without the coins below."""
        return math.sqrt((COARSE**2 * self.coarse + self.filling) / 4)

    @property
    def step(self) -> float:
        """Of the finest grid, in deviations of the noise."""
        return 2.0**-self.dither / self.deviation

    def weights(self) -> Ints:
        """Of all coins, in finest steps."""
        whole = 1 << self.dither
        return np.concatenate(
            [
                np.full(self.coarse, COARSE * whole, dtype=np.int64),
                np.full(self.filling, whole, dtype=np.int64),
                1 << np.arange(self.dither, dtype=np.int64),
            ]
        )

    @property
    def middle(self) -> int:
        """The mean of the sum of all coins, in finest steps; rounded up."""
        return (int(self.weights().sum()) + 1) // 2

    def masses(self) -> Floats:
        """Of the sum of coins of weight 1 and above, at whole numbers from the least on."""
        return _masses(self.coarse, self.filling)

    @proves("parties")
    def distance(self) -> float:
        """In total variation, between that sum and a normal law of the same deviation that was rounded; rounded up."""
        return _distance(self.coarse, self.filling)


@cache
def _masses(coarse: int, filling: int) -> Floats:
    wide = np.zeros(COARSE * coarse + 1)
    wide[::COARSE] = _heads(coarse)
    narrow = _heads(filling)
    found = np.zeros(len(wide) + filling)
    for place, mass in enumerate(narrow):
        found[place : place + len(wide)] += mass * wide
    return found


def _heads(coins: int) -> Floats:
    """The law of how many of these fair coins show heads."""
    heads = np.arange(coins + 1)
    found = np.exp(gammaln(coins + 1) - gammaln(heads + 1) - gammaln(coins - heads + 1) - coins * math.log(2))
    return np.asarray(found / found.sum())


@cache
def _distance(coarse: int, filling: int) -> float:
    masses = _masses(coarse, filling)
    deviation = CoinLaw(coarse, filling).deviation
    edges = (np.arange(len(masses) + 1) - len(masses) / 2) / deviation
    normal = np.diff(ndtr(edges))
    beyond = 2 * float(ndtr(edges[0]))
    return float(np.abs(masses - normal).sum() + beyond) / 2 + ROUNDING


@dataclass(frozen=True, eq=False)
class CoinNoise:
    """Noise that keeps caps, from what was declared alone: nothing of it depends on the rows."""

    law: CoinLaw
    deviations: Floats  # of the noise in each sum
    moved: float  # squared distance, in deviations, by which one person moves the sums
    dithered: float  # the same, with what coins below weight 1 add to it
    everywhere: float  # the distance, not squared, that holds for every outcome of those coins
    distance: float  # in total variation, from normal noise
    success: float  # of the best guess at whether somebody is in the sums
    replaced: float  # of the best guess at which of two people's rows is in the sums

    @property
    def steps(self) -> Floats:
        """What `whole_steps` is to take for deviations, so that its multiples are finest steps of the noise."""
        return self.deviations * (self.law.step / FINE)

    @property
    def largest(self) -> float:
        """`moved`, in units of `steps`."""
        return self.moved * (FINE / self.law.step) ** 2


@proves("parties")
def calibrated(extent: Extent, caps: tuple[Cap, ...], law: CoinLaw | None = None) -> CoinNoise:
    """The least noise of such coins that keeps caps on one person.

    Guarantee: whoever knows the rows of everybody else, and all that any coalition of the guarded size sees, tells with
    at most `success` whether a given person is in the sums. Rounded up; certain; no row was looked at.
    """
    numbers = len(extent.limits)
    chosen = law or CoinLaw(_coins(numbers))
    # The sum of coins of weight 1 and above is moved by a whole number, next to what the person brings: its mean
    # square is larger by the variance of rounding, 1/4 at most, in each number that may move.
    may_move = charge(replace(extent, limits=np.ones(numbers)), np.ones(numbers))
    rounding = may_move / (4 * chosen.deviation**2)
    distance = numbers * chosen.distance()
    allowed = furthest_apart(caps, NORMAL, distance) ** 2 - rounding
    if not allowed > 0:
        raise CapError(
            "this cap is too close to a coin flip for so many numbers from coins that parties toss together: choose a "
            "larger one, or ask for fewer columns"
        )
    deviations = least_deviations(extent, allowed)
    moved = charge(extent, deviations)
    return CoinNoise(
        law=chosen,
        deviations=deviations,
        moved=moved,
        dithered=moved + rounding,
        everywhere=math.sqrt(moved) + math.sqrt(may_move) / chosen.deviation,
        distance=distance,
        success=told_apart(moved + rounding, distance),
        replaced=told_apart(4 * moved + 2 * rounding, distance),
    )


def _coins(numbers: int) -> int:
    """As many as a party can toss in seconds; a power of 4."""
    most = MOST_COINS // numbers
    if most < LEAST_COINS:
        raise InputError(
            f"{numbers:,} sums are too many for noise that parties toss together, which takes up to "
            f"{MOST_COINS // LEAST_COINS:,}: ask about fewer columns or bins"
        )
    return min(4 ** int(math.log(most, 4) + 1e-9), 2**14)
