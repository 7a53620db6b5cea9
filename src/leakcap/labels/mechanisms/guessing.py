"""How often the best attacker names one label: exactly for each mechanism, and at most for any mechanism.

The attacker knows the prior, the mechanism, every other label and the observation, and names the likeliest class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["of_coordinates", "of_subsets"]


@proves("label-guessing")
def of_coordinates(prior: Floats, zero: Floats, one: Floats) -> float:
    """For a one-hot vector whose entries are noised alone: the mean, over pure noise, of the largest `prior_c L_c`."""
    order = np.argsort(one / zero, kind="stable")
    ratio = (one / zero)[order]
    # Chances of a ratio at or above each: they may be tiny while the ratios are huge, so none is a difference from 1.
    above = np.append(np.cumsum(zero[order][::-1])[::-1], 0.0)
    kinds, members = np.unique(prior[prior > 0], return_counts=True)
    levels = np.unique(np.outer(kinds, ratio))
    none = np.zeros(len(levels))  # log-probability that no class exceeds the level
    with np.errstate(divide="ignore"):
        for p, many in zip(kinds, members, strict=True):
            none += many * np.log1p(-np.minimum(above[np.searchsorted(p * ratio, levels, side="right")], 1.0))
    return min(1.0, _up(float(levels[0] + (np.diff(levels) * -np.expm1(none[:-1])).sum())))


@proves("label-guessing")
def of_subsets(prior: Floats, size: int, inside: float, outside: float) -> float:
    """For a random set of classes: the likeliest class in it, or the likeliest of all where that is likelier still."""
    ranked, n = np.sort(prior)[::-1], len(prior)
    best = np.arange(n - size + 1)  # rank of the likeliest class that is in the set
    chance = np.exp(_log_comb(n - best - 1, size - 1) - _log_comb(n, size))
    return min(1.0, _up(float(chance @ np.maximum(inside * ranked[best], outside * ranked[0]))))


def _log_comb(n: Any, k: int) -> Any:
    """Logarithm of the number of subsets: the number itself overflows beyond a thousand classes."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _up(success: float) -> float:
    """A success rate raised beyond the rounding of the sums."""
    return success * (1 + 1e-11)
