"""How far apart a randomised function's answers on two data sets are, if seeds are matched as well as they can be.

The attacker sees one answer and not its seed, so two data sets are as alike as their clouds of answers: the seeds of
one may be paired with those of the other in any order (docs/proofs/secret-seeds.md).
"""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate, Wagers, upper

__all__ = ["distance_upper", "matched_differences", "permuted_distances"]

ROUNDED_UP = 1 + 1e-12  # more than a sum of squares loses to rounding


def matched_differences(first: Floats, second: Floats) -> Floats:
    """Differences of two clouds of `(seeds, r)` answers, paired so that their squares have the least sum."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and not needed to import leakcap

    # The squares of the answers themselves are the same in every order: only the products differ. Any order is sound,
    # so what rounding does to the choice does no harm.
    _, order = linear_sum_assignment(first @ second.T, maximize=True)
    return first - second[order]


@proves("secret-seeds")
def permuted_distances(pairs: Floats) -> Floats:
    """Least mean squared distance of each pair of clouds, `(pairs, 2, seeds, r)`, over all ways to match their seeds.

    It is the minimal-permutation distance of Algorithm 2 of PAC Privacy; rounded up.
    """
    matched = (matched_differences(first, second) for first, second in pairs)
    return np.array([float(np.einsum("sr,sr->", one, one)) / len(one) for one in matched]) * ROUNDED_UP


@proves("secret-seeds", "wagers")
def distance_upper(pilot: Floats, measured: Floats, most: float, gamma: float) -> float:
    """Upper bound on the expected distance of a pair, none of which exceeds `most`.

    `pilot` distances set the stake, before the others are drawn.

    Guarantee: for independent `measured` distances of one law, the expectation is at most this with probability
    `1 - gamma` over them, whatever the pilot was.
    """
    seen, tried = measured / most, pilot / most
    wagers = Wagers.placed(
        np.array([tried.mean()]),
        np.array([tried.var()]),
        most=1.0,
        draws=len(seen),
        log_term=math.log(1 / gamma),
    )
    base, stake = wagers.base.astype(np.float64), wagers.stake.astype(np.float64)
    mean = MeanEstimate.from_wagers(
        np.array([np.log(base - stake * seen).sum()]),
        wagers,
        variance=np.array([seen.var()]),
        draws=len(seen),
        rounding=1e-12,
        slip=1e-12,
    )
    return min(1.0, float(upper(mean, math.log(2 / gamma))[0])) * most * ROUNDED_UP
