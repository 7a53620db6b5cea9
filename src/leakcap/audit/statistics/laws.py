"""Whether numbers follow a law that is known to the last digit: normal noise, uniform worlds. Proof page: audit.

Every p-value here is valid in finite samples, far into the tail. None rests on a limit theorem: sums of normal numbers
are normal, sums of their squares are chi-square, counts are binomial, and the distance of an empirical distribution
is bounded by Massart's inequality. Where several statistics are looked at, the smallest p-value is multiplied by their
number, which holds however they depend on each other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.audit.statistics.tails import SMALLEST, at_least, at_most
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves

__all__ = [
    "count_p_value",
    "distances",
    "distances_p_value",
    "energies_p_value",
    "extremes_p_value",
    "scores_p_value",
    "split_scores",
]


@proves("audit")
def scores_p_value(scores: npt.ArrayLike) -> float:
    """P-value of the largest of these scores in absolute value.

    Guarantee: valid if each score is standard normal under the claim, whatever their dependence.
    """
    found = np.abs(np.asarray(scores, dtype=np.float64)).ravel()
    return _smallest(special.erfc(found.max(initial=0.0) / math.sqrt(2)), found.size)


@proves("audit")
def energies_p_value(energies: npt.ArrayLike, numbers: npt.ArrayLike) -> float:
    """P-value of sums of squares, each of so many independent standard normal numbers: both tails, the worst of all.

    Guarantee: valid if each sum is chi-square with `numbers` degrees of freedom under the claim, whatever their
    dependence.
    """
    energy, count = np.broadcast_arrays(np.asarray(energies, dtype=np.float64), np.asarray(numbers, dtype=np.float64))
    tails = 2 * np.minimum(special.chdtr(count, energy), special.chdtrc(count, energy))
    return _smallest(float(tails.min(initial=1.0)), energy.size)


@proves("audit")
def distances(uniforms: Floats) -> Floats:
    """Kolmogorov's distance of each column from the uniform law on [0, 1]."""
    ranked = np.sort(uniforms, axis=0)
    steps = np.arange(len(ranked) + 1)[:, None] / len(ranked)
    return np.asarray(np.maximum(steps[1:] - ranked, ranked - steps[:-1]).max(axis=0))


@proves("audit")
def distances_p_value(found: npt.ArrayLike, numbers: int) -> float:
    """P-value of Kolmogorov distances of samples of so many independent numbers: the worst of all.

    Guarantee: valid by the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, `2 exp(-2 n D^2)`,
    for every n, whatever the dependence between samples.
    """
    far = np.asarray(found, dtype=np.float64).ravel()
    return _smallest(2 * math.exp(-min(700.0, 2 * numbers * float(far.max(initial=0.0)) ** 2)), far.size)


@proves("audit")
def count_p_value(counts: npt.ArrayLike, trials: int, rate: float) -> float:
    """P-value of counts, too large or too small, each of `trials` independent events of probability `rate`.

    Guarantee: valid if each count is binomial under the claim, whatever their dependence (exact binomial tails).
    """
    found = np.asarray(counts, dtype=np.float64).ravel()
    high = float(at_least(found.max(), trials, rate))
    low = float(at_most(found.min(), trials, rate))
    return _smallest(2 * min(high, low), found.size)


@proves("audit")
def extremes_p_value(largest: float, numbers: int) -> float:
    """P-value of the largest absolute value among so many standard normal numbers, too small or too large.

    Guarantee: exact for independent numbers: all of them stay below `t` with probability `(1 - 2 Q(t))^n`.
    """
    log_below = numbers * math.log1p(-min(1 - 1e-16, special.erfc(largest / math.sqrt(2))))
    return _smallest(2 * min(math.exp(max(log_below, -700.0)), -math.expm1(log_below)), 1)


@proves("audit")
def split_scores(counts: Ints, rng: np.random.Generator) -> Floats:
    """Independent standard normal scores of a table of counts that should be uniform over its cells.

    The cells are halved again and again. Given the count of a part, that of its first half is binomial; its place in
    that law, with ties broken at random, is uniform, and independent of the places in other splits.

    Guarantee: if the counts are multinomial with equal chances, the `len(counts) - 1` scores are independent standard
    normals, for every number of trials; the sum of their squares is chi-square.
    """
    scores: list[Floats] = []
    parts = [np.asarray(counts, dtype=np.int64)]
    while parts:
        parts = [part for part in parts if len(part) > 1]
        halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in parts]
        first = np.array([one.sum() for one, _ in halves])
        whole = np.array([part.sum() for part in parts])
        rate = np.array([len(one) / len(part) for (one, _), part in zip(halves, parts, strict=True)])
        if len(first):
            scores.append(_placed(first, whole, rate, rng))
        parts = [half for pair in halves for half in pair]
    return np.concatenate(scores) if scores else np.empty(0)


def _placed(first: Ints, whole: Ints, rate: Floats, rng: np.random.Generator) -> Floats:
    """Normal score of the place of a binomial count in its law, ties broken at random."""
    here, count = first.astype(np.float64), whole.astype(np.float64)
    upto, from_here = special.bdtr(here, whole, rate), np.where(here == 0, 1.0, special.bdtrc(here - 1, whole, rate))
    below = np.where(here == 0, 0.0, special.bdtr(here - 1, whole, rate))
    above = np.where(here == count, 0.0, special.bdtrc(here, whole, rate))
    share = rng.random(len(first))
    # The nearer tail is the one with digits.
    lower = below + share * (upto - below)
    upper = above + (1 - share) * (from_here - above)
    low, high = special.ndtri(np.maximum(lower, SMALLEST)), -special.ndtri(np.maximum(upper, SMALLEST))
    return np.asarray(np.where(lower < 0.5, low, high))


def _smallest(p: Any, statistics: int) -> float:
    """Bonferroni: the smallest of so many p-values, rounded up to what a double holds."""
    return float(min(1.0, max(float(p), SMALLEST) * max(statistics, 1)))
