"""Intervals for epsilon as the paper on label privacy computes them: heuristics, kept beside the exact ones.

They are no bounds. Guesses about one canary are weighed by their number, and the interval divides by the number of
canaries as if all weighed alike: on a model that knows nothing it misses in 22 % of cases, not in 5 (benchmarks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakcap.audit.canaries import CanaryKey
from leakcap.ground.arrays import Floats, Ints

__all__ = [
    "PAPER_THRESHOLDS",
    "Heuristic",
    "best_of_thresholds",
    "decoy_counts",
    "normal_rule",
    "weighted_interval",
    "weighted_rule",
]

PAPER_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
NORMAL = 1.96


@dataclass(frozen=True)
class Heuristic:
    """A success rate with its interval by the normal law; `canaries` had a guess.

    Attributes:
        success: share of right guesses.
        low: lower end of the interval.
        high: upper end.
        canaries: number of canaries about which anything was guessed.
    """

    success: float
    low: float
    high: float
    canaries: int

    @property
    def epsilons(self) -> tuple[float, float, float]:
        """Epsilon at the estimate and at both ends (Theorem B.1 of the paper)."""
        return _epsilon(self.success), _epsilon(self.low), _epsilon(self.high)


def normal_rule(right: int, guesses: int) -> Heuristic:
    """The normal interval of a share of right guesses."""
    if not guesses:
        return Heuristic(0.5, 0.0, 1.0, 0)
    share = right / guesses
    half = NORMAL * math.sqrt(share * (1 - share) / guesses)
    return Heuristic(share, max(0.0, share - half), min(1.0, share + half), guesses)


def weighted_rule(probabilities: Floats, key: CanaryKey, threshold: float) -> Heuristic:
    """Appendix B: every decoy of a canary, each canary with its number of guesses as its weight.

    The attacker guesses the label believed more, and abstains where neither is believed by `threshold`.
    """
    return weighted_interval(*decoy_counts(probabilities, key, threshold))


def decoy_counts(probabilities: Floats, key: CanaryKey, threshold: float) -> tuple[Ints, Ints]:
    """Right guesses and all guesses about each canary, against each of its decoys."""
    each = np.arange(key.count)
    planted = probabilities[each, key.planted][:, None]
    decoy = np.ones_like(probabilities, dtype=np.bool_)
    decoy[each, key.planted] = False
    if len(key.classes) > 2:
        decoy[each, key.truths] = False
    speaks = decoy & (np.maximum(planted, probabilities) >= threshold)
    return (speaks & (planted > probabilities)).sum(axis=1), speaks.sum(axis=1)


def weighted_interval(right: Ints, guesses: Ints) -> Heuristic:
    """The interval from counts of each canary; of canaries without a guess nothing is said."""
    some = guesses > 0
    if not some.any():
        return Heuristic(0.5, 0.0, 1.0, 0)
    shares, weights = right[some] / guesses[some], guesses[some] / guesses.sum()
    mean = float(right.sum() / guesses.sum())
    spread = 1 - float((weights**2).sum())
    variance = float(weights @ (shares - mean) ** 2) / spread if spread > 0 else 0.0
    half = NORMAL * math.sqrt(variance / len(shares))  # the fault: so many do not count alike
    return Heuristic(mean, max(0.0, mean - half), min(1.0, mean + half), len(shares))


def best_of_thresholds(probabilities: Floats, key: CanaryKey) -> float:
    """The largest lower end for epsilon over seven thresholds, guesses turned round where they were mostly wrong.

    As the paper's experiments did it, without a correction for so many looks.
    """
    ends = []
    for threshold in PAPER_THRESHOLDS:
        rule = weighted_rule(probabilities, key, threshold)
        half = rule.success - rule.low
        ends.append(_epsilon(max(rule.success, 1 - rule.success) - half) if rule.canaries else 0.0)
    return max(ends)


def _epsilon(success: float) -> float:
    if success >= 1:
        return math.inf
    return max(0.0, math.log(success / (1 - success))) if success > 0 else 0.0
