"""What clocks mean: the success of the best guess after so much of them is spent."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from leakcap.caps import Cap, Membership
from leakcap.custody.ledger.accounts import TICKS
from leakcap.ground.proofs import proves
from leakcap.modes.clock import Clock

__all__ = ["TICKS", "Clock", "success_within", "surest_of", "told_after"]

ROUNDING = 1e-12  # relative: what the normal law loses, with room to spare


@proves("linear-sessions")
def told_after(square: float, distance: float = 0.0) -> float:
    """Success of the best guess at one person after answers of so much squared distance in all; rounded up."""
    return min(1.0, float(ndtr(math.sqrt(square) / 2)) * (1 + ROUNDING) + distance)


@proves("clock")
def success_within(caps: tuple[Cap, ...]) -> float:
    """What caps of a session on a list of worlds promise about guessing; 1 where none of them is about that."""
    return min((cap.limit for cap in caps if isinstance(cap, Membership)), default=1.0)


@lru_cache(maxsize=256)  # certificates ask for the same few again and again
def surest_of(square: float, people: int) -> float:
    """How sure an attacker is, on average, of whomever the answers give away most, of so many people.

    It is what is reached where everybody's clock is used up by answers that hold each of them alike: the mean of the
    largest of `people` posterior probabilities.
    """
    if square <= 0:
        return 0.5
    apart = math.sqrt(square)
    # The log-odds of one person are normal about +-square/2; the sign is the coin's.
    grid = np.linspace(0.0, square / 2 + 12 * apart, 20_001)
    below = ndtr((grid - square / 2) / apart) - ndtr((-grid - square / 2) / apart)
    largest = np.clip(below, 0.0, 1.0) ** people
    sure = 1 / (1 + np.exp(-grid))
    return float(sure[-1] - np.trapezoid(largest, sure))
