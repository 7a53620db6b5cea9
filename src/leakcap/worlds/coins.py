"""Simulated coins for everybody, without worlds of nobody or hardly anybody: functions fail there, and it tells little.

A release tosses all coins (`fair_bits`). What it may do in worlds that are never simulated is allowed for by their
probability, which is tiny but for pools of a dozen (docs/proofs/trace.md).
"""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.proofs import proves
from leakcap.worlds.draw import RandomBits, fair_bits
from leakcap.worlds.worldset import Worlds

__all__ = ["FEWEST_SIMULATED", "crowded_bits", "smallest_simulated", "unseen_share"]

FEWEST_SIMULATED = 3  # units in a simulated world, where leaving smaller ones out costs next to nothing
MAX_UNSEEN = 0.01  # probability of what is left out


def smallest_simulated(n: int) -> int:
    """How many units a simulated world holds at least."""
    return max(k for k in range(FEWEST_SIMULATED + 1) if _share_below(n, k) <= MAX_UNSEEN)


@proves("trace")
def unseen_share(n: int) -> float:
    """The probability that fair coins for `n` units make a world that is never simulated; rounded up."""
    return _share_below(n, smallest_simulated(n)) * (1 + 1e-12)


def crowded_bits(n: int, m: int, rng: RandomBits) -> Worlds:
    """`m` independent worlds by fair coins, given that each has `smallest_simulated(n)` units or more."""
    worlds, least = fair_bits(n, m, rng), smallest_simulated(n)
    while len(small := np.flatnonzero(worlds.sizes() < least)):
        worlds.packed[small] = fair_bits(n, len(small), rng).packed
    return worlds


def _share_below(n: int, k: int) -> float:
    """The probability of fewer than `k` heads in `n` tosses of a fair coin."""
    return sum(math.comb(n, heads) for heads in range(k)) / 2**n
