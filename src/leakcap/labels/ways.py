"""Which of three ways to learn from secret labels costs least: noised sums, votes, or labels privatised one by one.

A linear model's scores err, and the error has a variance in proportion to what its learner had less than labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.special import entr, ndtr

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.base import Mechanism, checked_prior
from leakcap.labels.mechanisms.gaussian import least_sigma

__all__ = ["Advice", "enough_rows", "weighed"]

# Responses are advised where, beside sums, they cost a quarter of a point of accuracy at most, by a figure for learners
# that waste nothing: real ones then stay within a point. Sums with so many times more noise than labels have spread are
# little more than noise, and a likelihood would follow it.
COST, DROWNED = 0.0025, 16.0
HALF, SURE = 1.0, 4.0  # doubt in observations; what a variance of 2 makes of the nats of a class
WORST = 0.3003  # the most of t (1 - t / sqrt(1 + t^2)), at t = .79
USUAL_DELTA = 1e-5
MOST_ROWS = 1e12  # for each column: whoever has so many may take any way


@dataclass(frozen=True)
class Advice:
    """What to take, and why; `str(advice)` says it in words.

    Attributes:
        method: "statistics" or "responses".
        nats: what observations of all labels tell, for each coefficient of a linear model.
        mechanism: which observations, if they are taken.
        words: the reason.
        model: which class of `lc.labels` learns.
        cost: accuracy that a linear model loses by observations beside noised sums, about and at most, as a share.
    """

    method: str
    nats: float
    mechanism: str
    words: str
    model: str = ""
    cost: float = 0.0

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class _WaysCompared:
    """What observations and sums leave of so many labels, as a linear model needs them.

    Args:
        classes: how many.
        nats: of observations, for each coefficient.
        doubt: of an observation: what it does not tell of its label, beside what it tells.
        noise: of sums, beside the spread of labels in them.
    """

    classes: int
    nats: float
    doubt: float
    noise: float

    @property
    def cost(self) -> float:
        """Accuracy that observations lose beside sums, where features tell just so much of labels that it is most.

        Let features hardly tell `C` classes apart: chances are `(1 + s_c)/C`, scores `s_c` of deviation `t`, and their
        estimates err by a variance `v`. Of the mean of the largest of `C` normals, `m`, a choice by the estimates
        misses `t m (1 - t / sqrt(t^2 + v)) / C`, `WORST m sqrt(v) / C` at most. Efficient learners have
        `v = C / (2 nats)`, and by sums as much less as their noise is less than the doubt in observations. That is so
        for errors that are not large (a variance of 2 at most), or where observations tell half of what labels tell:
        otherwise a likelihood follows chance, while sums drop what is noise.
        """
        most = 1 - 1 / self.classes
        if not self.nats:
            return most
        known = self.doubt <= HALF or SURE * self.nats >= self.classes
        less = max(0.0, 1 - math.sqrt((1 + self.noise) / (1 + self.doubt))) if known else 1.0
        return min(most, WORST * _largest_normal(self.classes) / math.sqrt(2 * self.classes * self.nats) * less)


def weighed(
    mechanism: Mechanism,
    prior: npt.ArrayLike | None,
    *,
    rows: int,
    columns: int,
    curator: bool = True,
    delta: float = USUAL_DELTA,
) -> Advice:
    """Which way to learn from this many labels, from public facts alone; `mechanism` is what would privatise each."""
    rows, columns = checks.count(rows=rows), checks.count(columns=columns)
    if not 0 <= delta < 1:
        raise InputError("delta must be at least 0 and below 1")
    means = _means(mechanism, prior, rows_each=rows / min(rows, columns), delta=delta)
    coefficients, count, epsilon = (
        min(rows, columns) * (mechanism.n_classes - 1),
        mechanism.n_classes,
        mechanism.epsilon,
    )
    name = type(mechanism).__name__
    told = (
        f"{rows:,} observations at epsilon {epsilon:g} tell {means.nats:.2g} nats for each of {coefficients:,} "
        "coefficients"
    )
    if curator and delta > 0 and means.cost > COST:
        model, settings = ("LDA", ", readout='auto'") if means.noise > DROWNED else ("Logistic", "")
        words = (
            f"Statistics: lc.labels.{model}(epsilon={epsilon:g}, n_classes={count}{settings}). {told}; one noised sum "
            f"tells more: without it a linear model may lose {100 * means.cost:.2g} points of "
            "accuracy. Votes (lc.labels.PATE) are for teachers that are not linear: they cost more than sums"
        )
        return Advice("statistics", means.nats, name, words, model=model, cost=means.cost)
    if means.cost <= COST:
        why = "as much as noised sums would, within a quarter of a point, and any model learns from them"
    else:
        why = "few, but delta is 0" if curator else "few, but nobody sees the labels themselves"
    chosen = f"lc.labels.auto({epsilon:g}, {count}{'' if prior is None else ', prior'})"
    words = f"Responses: {chosen}, then lc.labels.Classifier with any base. {told}: {why}"
    return Advice("responses", means.nats, name, words, model="Classifier", cost=means.cost)


def enough_rows(mechanism: Mechanism, prior: npt.ArrayLike | None, delta: float = USUAL_DELTA) -> float:
    """Rows for each column of features from which on observations cost no more than sums, about."""
    low, high = 1.0, MOST_ROWS
    for _ in range(60):
        middle = math.sqrt(low * high)
        costly = _means(mechanism, prior, rows_each=middle, delta=delta).cost > COST
        low, high = (middle, high) if costly else (low, middle)
    return high


def _means(mechanism: Mechanism, prior: npt.ArrayLike | None, *, rows_each: float, delta: float) -> _WaysCompared:
    """Of so many rows for each column."""
    count, shares = mechanism.n_classes, checked_prior(prior, mechanism.n_classes)
    told, spread = mechanism.mutual_information(prior), float(1 - np.square(shares).sum(axis=-1).mean())
    if not told > 0 < spread:
        return _WaysCompared(count, 0.0, doubt=math.inf, noise=0.0)
    doubt = max(0.0, float(entr(shares).sum(axis=-1).mean()) / told - 1)
    noise = least_sigma(mechanism.epsilon, delta or USUAL_DELTA) ** 2 * (count - 1) / (spread * rows_each)
    return _WaysCompared(count, rows_each * told / (count - 1), doubt=doubt, noise=noise)


def _largest_normal(count: int) -> float:
    """Mean of the largest of so many independent normal variables."""
    return float(quad(lambda x: x * count * math.exp(-x * x / 2) * ndtr(x) ** (count - 1), -9, 9)[0]) / math.sqrt(
        math.tau
    )
