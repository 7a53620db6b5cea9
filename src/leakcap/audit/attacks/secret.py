"""Is the secret as secret as it should be? Every world as likely as any other, whatever was drawn before.

Two tests, exact in finite samples, on the worlds and on their steps from one release to the next, which are uniform
as well if each world is uniform given those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import bdtr, bdtrc

from leakcap.audit.attacks.law import worst
from leakcap.audit.attacks.posterior import blocks
from leakcap.audit.statistics import laws, rates
from leakcap.audit.trials import Trials
from leakcap.audit.verdicts import SHOWN, Finding, checked
from leakcap.ground.arrays import Floats, Ints

__all__ = ["QUESTIONS", "by_prior", "coins", "learnt_prior", "uniform"]

NAME = "secret"
QUESTIONS = 3
SINGLE_SLACK = 0.01  # a probability
COIN_SLACK = 0.05  # a probability
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


def by_prior(secret: Ints, shares: Floats, alpha: float) -> Finding:
    """Whether each input is drawn by its chance: exact binomial tails, times the number of inputs."""
    trials, counts = len(secret), np.bincount(secret, minlength=len(shares))
    tails = np.minimum(bdtr(counts, trials, shares), bdtrc(counts - 1, trials, shares))
    tails = np.where(counts == 0, bdtr(0, trials, shares), tails)
    farthest = int(tails.argmin())
    ends = rates.interval(int(counts[farthest]), trials, SHOWN)
    off = sorted(abs(end - shares[farthest]) for end in ends)
    return checked(
        NAME,
        "a single input, beyond its chance",
        measured=abs(counts[farthest] / trials - shares[farthest]),
        interval=(0.0 if ends[0] <= shares[farthest] <= ends[1] else off[0], off[1]),
        claim=0.0,
        slack=SINGLE_SLACK,
        p=min(1.0, 2 * len(shares) * float(tails.min())),
        alpha=alpha,
        trials=trials,
        reading="the farthest is {} off",
    )


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


def coins(trials: Trials, alpha: float, rng: np.random.Generator) -> Iterator[Finding]:
    """Whether everybody's coin is fair, and falls as it does whatever other people's do."""
    partner = rng.permutation(trials.units)
    heads, near, far = (np.zeros(trials.units, dtype=np.int64) for _ in range(3))
    low, high = _usual_numbers(trials.units)
    usual = 0
    for rows in blocks(len(trials)):
        inside = trials.part(rows).inside()
        heads += inside.sum(axis=0)
        count = inside.sum(axis=1)
        usual += int(((low <= count) & (count <= high)).sum())
        near += (inside == np.roll(inside, 1, axis=1)).sum(axis=0)  # with the next in the table, who may be of a kind
        far += (inside == inside[:, partner]).sum(axis=0)
    apart = partner != np.arange(trials.units)
    fair = partial(_fair, trials=len(trials), alpha=alpha / 3)
    yield fair("a single person's coin, beyond a half", heads, rate=0.5)
    yield fair("two people's coins that fall alike, beyond a half", np.append(near, far[apart]), rate=0.5)
    rate = float(bdtr(high, trials.units, 0.5) - bdtr(low - 1, trials.units, 0.5))
    yield fair("a usual number of participants, beyond its share", np.array([usual]), rate=rate)


def _usual_numbers(units: int) -> tuple[int, int]:
    """Numbers of participants between which about half of all releases lie."""
    reach = int(0.6745 * np.sqrt(units) / 2)
    return units // 2 - reach, units - units // 2 + reach


def _fair(question: str, counts: Ints, *, trials: int, rate: float, alpha: float) -> Finding:
    """The count farthest from its share of the releases: exact binomial tails, times the number of counts."""
    farthest = int(counts[np.abs(counts - rate * trials).argmax()])
    ends = rates.interval(farthest, trials, SHOWN)
    off = sorted(abs(end - rate) for end in ends)
    return checked(
        NAME,
        question,
        measured=abs(farthest / trials - rate),
        interval=(0.0 if ends[0] <= rate <= ends[1] else off[0], off[1]),
        claim=0.0,
        slack=COIN_SLACK,
        p=laws.count_p_value(counts, trials, rate),
        alpha=alpha,
        trials=trials,
        reading="the farthest is {} off",
    )


def learnt_prior(secret: Ints, m: int) -> Floats:
    """How likely each world is, as far as releases with known secrets tell: counts, and one more for each."""
    counts = np.bincount(secret, minlength=m) + 1.0
    return np.asarray(counts / counts.sum())
