"""How often the best attacker names one label: exactly for each mechanism, and at most for any mechanism.

The attacker knows the prior, the mechanism, every other label and the observation, and names the likeliest class.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import comb

from leakcap.proofs import proves

__all__ = ["of_coordinates", "of_subsets"]

Floats = npt.NDArray[np.float64]


@proves("label-guessing")
def of_coordinates(prior: Floats, zero: Floats, one: Floats) -> float:
    """Of a one-hot vector whose entries are noised alone: the mean, over pure noise, of the largest `prior_c L_c`."""
    order = np.argsort(one / zero, kind="stable")
    ratio, reached = (one / zero)[order], np.concatenate([[0.0], np.cumsum(zero[order])])
    kinds, members = np.unique(prior[prior > 0], return_counts=True)
    levels = np.unique(np.outer(kinds, ratio))
    below = np.ones(len(levels))  # probability that no class exceeds the level
    for p, many in zip(kinds, members, strict=True):
        below *= reached[np.searchsorted(p * ratio, levels, side="right")] ** many
    return min(1.0, float(levels[0] + (np.diff(levels) * (1 - below[:-1])).sum()))


@proves("label-guessing")
def of_subsets(prior: Floats, size: int, inside: float, outside: float) -> float:
    """Of a random set of classes: the likeliest class in it, or the likeliest of all if that is likelier still."""
    ranked, n = np.sort(prior)[::-1], len(prior)
    best = np.arange(n - size + 1)  # rank of the likeliest class that is in the set
    chance = comb(n - best - 1, size - 1) / comb(n, size)
    return min(1.0, float(chance @ np.maximum(inside * ranked[best], outside * ranked[0])))
