"""An attacker who learns how the numbers of the noise depend on each other, beyond their covariance.

Noise of the right size in every direction may still be no noise: if its last number follows from the others, only the
true world explains a release. The attacker learns from releases whose secrets it was told, and is judged on others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from leakcap.audit.attacks.law import LINK_SLACK, NAME
from leakcap.audit.attacks.noise import Noises, magnitudes
from leakcap.audit.statistics import laws
from leakcap.audit.verdicts import SHOWN, Finding, checked, judged
from leakcap.ground.arrays import Floats, Ints

__all__ = ["QUESTIONS", "learnt_noise"]

QUESTIONS = 2
LOOKED_AT = 32  # numbers of the noise that are told by each other: of more, half from either end
PAIRED = 16  # of these, numbers of which all pairs are looked at
MAX_LEARNT = 2**14  # releases to learn from
ROWS = 2**13  # releases whose features are held at a time
LEARN, CHOOSE = 0.25, 0.1  # shares of the releases: to learn from, and to choose by
WORTH_IT = 0.05  # share of a number's variance that has to be explained before worlds are guessed by it
MAX_GUESSES = 2**17  # worlds weighed, over all releases
BLOCK = 2**14  # worlds weighed at a time
ENOUGH = 8  # releases to learn from for each feature


def learnt_noise(noise: Noises, posterior: float | None, alpha: float) -> Iterator[Finding]:
    """Whether a noise number is told by the others; if so, how often that names the world.

    `posterior` is the certified success at naming it; None where worlds are not listed.
    """
    if noise.numbers.shape[1] < 2:
        return
    r = noise.numbers.shape[1]
    some = _ends(np.arange(r), LOOKED_AT)
    looked_at = Noises(noise.numbers[:, some], noise.secret, noise.points[:, some], noise.seen[:, some])
    learnt = min(round(LEARN * len(noise)), MAX_LEARNT)
    chosen = learnt + round(CHOOSE * len(noise))
    learn, choose, judge = (looked_at.part(slice(*ends)) for ends in ((0, learnt), (learnt, chosen), (chosen, None)))
    told = _Told.from_noise(learn.numbers)
    yield _finding(told(judge.numbers), np.hstack([judge.numbers, magnitudes(judge.numbers)]), alpha / QUESTIONS)
    best = _Gain.from_noise(told, choose.numbers)
    if posterior is not None and best.left < 1 - WORTH_IT:
        yield _named(best, judge, posterior, alpha / QUESTIONS)


def _finding(predicted: Floats, wanted: Floats, alpha: float) -> Finding:
    """Given the other numbers, a prediction from them times the number itself is normal, whatever was learnt."""
    size = np.linalg.norm(predicted, axis=0)
    scores = (predicted * wanted).sum(axis=0) / np.where(size > 0, size, 1.0)
    k = len(wanted)
    most, half = max(0.0, float(scores.max())), -float(special.ndtri(SHOWN / 2))
    return checked(
        NAME,
        "how well a noise number follows from the others",
        measured=min(1.0, most / math.sqrt(k)),
        interval=(min(1.0, max(0.0, most - half) / math.sqrt(k)), min(1.0, (most + half) / math.sqrt(k))),
        claim=0.0,
        slack=LINK_SLACK,
        p=laws.scores_p_value(scores),
        alpha=alpha,
        trials=k,
        reading="a correlation of {} with what others foretell, where 0 is expected",
    )


def _named(gain: _Gain, judge: Noises, posterior: float, alpha: float) -> Finding:
    """Guess the world whose noise fits what was learnt."""
    m = len(judge.points)
    count = min(len(judge), max(1, MAX_GUESSES // m))
    rows, wins = max(1, BLOCK // m), 0
    for first in range(0, count, rows):
        some = judge.part(slice(first, min(first + rows, count)))
        noise = some.seen[:, None, :] - judge.points
        flat = noise.reshape(-1, noise.shape[2])
        likely = (gain(flat) - 0.5 * (flat**2).sum(axis=1)).reshape(len(some), m)
        wins += int((likely.argmax(axis=1) == some.secret).sum())
    return judged(
        "world, by the noise as learnt",
        "which of the worlds was the secret one",
        wins=wins,
        trials=count,
        prior=1 / m,
        certified=posterior,
        alpha=alpha,
    )


@dataclass(frozen=True, eq=False)
class _Told:
    """What is foretold of each noise number, and of its size, by the others: ridge regression on many features."""

    weights: Floats  # (features, 2 r)
    centre: Floats  # of the features
    mean: Floats  # (r,): of the noise numbers

    @classmethod
    def from_noise(cls, numbers: Floats) -> _Told:
        r = numbers.shape[1]
        table, of = _features(numbers)
        centre = table.mean(axis=0)
        table = table - centre
        wanted = np.hstack([numbers, magnitudes(numbers)])
        square, product = table.T @ table, table.T @ wanted
        weights = np.zeros((len(of), 2 * r))
        for number in range(r):
            others = np.flatnonzero((of != number).all(axis=1))
            # Many releases teach exact dependence; of few, the ridge keeps chance from being learnt by heart.
            least = 1e-6 * len(table) if len(table) > ENOUGH * len(others) else len(others)
            ridge = square[np.ix_(others, others)] + least * np.eye(len(others))
            both = [number, r + number]
            weights[np.ix_(others, both)] = np.linalg.solve(ridge, product[np.ix_(others, both)])
        return cls(weights, centre, numbers.mean(axis=0))

    def __call__(self, numbers: Floats) -> Floats:
        parts = [numbers[first : first + ROWS] for first in range(0, len(numbers), ROWS)]
        return np.concatenate([(_features(part)[0] - self.centre) @ self.weights for part in parts])


@dataclass(frozen=True, eq=False)
class _Gain:
    """How much likelier noise is by what was learnt about one of its numbers than by the normal law."""

    told: _Told
    number: int
    left: float  # of the variance of that number

    @classmethod
    def from_noise(cls, told: _Told, numbers: Floats) -> _Gain:
        left = ((numbers - told.mean - told(numbers)[:, : len(told.mean)]) ** 2).mean(axis=0)
        return cls(told, int(left.argmin()), float(max(left.min(), 1e-300)))

    def __call__(self, numbers: Floats) -> Floats:
        here = numbers[:, self.number]
        missed = here - self.told.mean[self.number] - self.told(numbers)[:, self.number]
        return np.asarray(0.5 * here**2 - 0.5 * missed**2 / self.left)


def _ends(items: Ints, most: int) -> Ints:
    """All of them, or of more than `most` half from either end."""
    return items if len(items) <= most else np.concatenate([items[: most // 2], items[-(most // 2) :]])


def _features(numbers: Floats) -> tuple[Floats, Ints]:
    """`(k, f)` functions of one or of two noise numbers, and which two these are."""
    r = numbers.shape[1]
    each = np.arange(r)
    turn = 2 * np.pi * special.ndtr(numbers)
    alone = [numbers, np.abs(numbers), numbers**2, numbers**3, magnitudes(numbers), np.cos(turn), np.sin(turn)]
    paired = _ends(each, PAIRED)
    one, other = (paired[place] for place in np.triu_indices(len(paired), 1))
    products = [numbers[:, one] * numbers[:, other], np.sign(numbers[:, one] * numbers[:, other])]
    for sign in (1, -1):
        both = turn[:, one] + sign * turn[:, other]
        products += [np.cos(both), np.sin(both)]
    of = [np.column_stack([each, each])] * len(alone) + [np.column_stack([one, other])] * len(products)
    return np.hstack([*alone, *products]), np.concatenate(of)
