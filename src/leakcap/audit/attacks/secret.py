"""Is the secret as secret as it should be? Every world as likely as any other, whatever was drawn before.

Two tests, exact in finite samples, on the worlds and on their steps from one release to the next, which are uniform
as well if each world is uniform given those before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leakcap.audit.attacks.law import worst
from leakcap.audit.statistics import laws, rates
from leakcap.audit.verdicts import SHOWN, Finding, checked
from leakcap.ground.arrays import Floats, Ints

__all__ = ["QUESTIONS", "learnt_prior", "uniform"]

NAME = "secret"
QUESTIONS = 3
SINGLE_SLACK = 0.01  # a probability
UNEVEN_SLACK = 0.1  # root mean square, as a share of 1 / m
UPPER = 1.645  # deviations to about the upper end of a chi-square number


def uniform(secret: Ints, m: int, alpha: float, rng: np.random.Generator) -> Iterator[Finding]:
    """Whether the `m` worlds are drawn alike, and independently of the ones before."""
    share = alpha / QUESTIONS
    counts = np.bincount(secret, minlength=m)
    steps = np.bincount(np.diff(secret) % m, minlength=m)
    yield _single("a single world, beyond its share", counts, share)
    yield _spread(counts, share, rng)
    yield _single("a step from world to world, beyond its share", steps, share, rng)


def _single(question: str, counts: Ints, alpha: float, rng: np.random.Generator | None = None) -> Finding:
    """The largest and the smallest count: exact binomial tails, times the number of worlds."""
    m, trials = len(counts), int(counts.sum())
    most = int(counts.max())
    ends = rates.interval(most, trials, SHOWN)
    p = laws.count_p_value(counts, trials, 1 / m)
    if rng is not None:
        scores = laws.split_scores(counts, rng)
        p = worst(p, laws.energies_p_value((scores**2).sum(), len(scores)))
    return checked(
        NAME,
        question,
        measured=most / trials - 1 / m,
        interval=(ends[0] - 1 / m, ends[1] - 1 / m),
        claim=0.0,
        slack=SINGLE_SLACK,
        p=p,
        alpha=alpha,
        trials=trials,
        reading="the most frequent has {} more than its share of 1/m",
    )


def _spread(counts: Ints, alpha: float, rng: np.random.Generator) -> Finding:
    """Chi-square of all counts: the worlds are halved again and again, and every half is a binomial count."""
    scores = laws.split_scores(counts, rng)
    energy, count = float((scores**2).sum()), max(len(scores), 1)
    # Beyond chance, the sum of squares grows by trials x m x (the sum of squared differences from 1 / m).
    trials, excess = int(counts.sum()), max(0.0, energy - count)
    most = excess + UPPER * np.sqrt(2 * count + 4 * excess) + UPPER**2
    return checked(
        NAME,
        "unevenness over all worlds, as a share of 1/m",
        measured=np.sqrt(excess / trials),
        interval=(0.0, float(np.sqrt(most / trials))),
        claim=0.0,
        slack=UNEVEN_SLACK,
        p=laws.energies_p_value(energy, count),
        alpha=alpha,
        trials=trials,
        reading="probabilities of worlds differ by a share of {} from each other, beyond chance",
    )


def learnt_prior(secret: Ints, m: int) -> Floats:
    """How likely each world is, as far as releases with known secrets tell: counts, and one more for each."""
    counts = np.bincount(secret, minlength=m) + 1.0
    return np.asarray(counts / counts.sum())
