"""Learning from a table of scores: how likely each observation is under every class, whatever mechanism made it.

Every likelihood is a mixture: `exp(score_c) = least + (exp(score_c) - least)`. The first part is the same for all
classes, as if the observation had been drawn without looking at the label. So the model is fitted to the other part
only, each class of a row weighted by the chance, under the current prediction, that the observation came from it.
This is expectation maximisation with less left to guess than with whole labels: the marginal likelihood never falls,
it takes several times fewer rounds, and the first round, where nothing is predicted yet, is naive training itself.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.learning.soft_logistic import fits_rows_once, fitted_rows_once

__all__ = [
    "Undo",
    "class_prior",
    "even",
    "fit_weighted",
    "informed",
    "marginal",
    "power",
    "predicted",
    "share",
    "weight_name",
]

_NEGLIGIBLE = 1e-4  # weight of a class in a row, next to the mean row, below which the base is spared the copy
_LEAST = 1e-6  # a model's probability that counts as never
_BEYOND_CHANCE = 4.0  # nats that one more number gains by chance once in 200 times
_CLIPPED = 0.02  # share of the class prior that a class keeps where undoing the noise would leave it none


def even(n_classes: int) -> Floats:
    """Logarithms of even probabilities, one row."""
    return np.full((1, n_classes), -np.log(n_classes))


def marginal(scores: Floats, log_prior: Floats) -> Floats:
    """Log-likelihood of each observation when the classes have these probabilities, up to a constant per row.

    It looks at observations only, so it may judge models on rows they were not fitted to at no cost in epsilon.
    """
    return np.asarray(logsumexp(scores + log_prior, axis=1) - logsumexp(scores, axis=1))


def class_prior(scores: Floats, rounds: int = 500) -> Floats:
    """Shares of the classes that make the observations likeliest."""
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    share = np.full(scores.shape[1], 1 / scores.shape[1])
    for _ in range(rounds):
        better = share * (likelihood / (likelihood @ share)[:, None]).mean(axis=0)
        change = np.abs(better - share).max()
        share = better
        if change < 1e-6:
            break
    share = np.maximum(share, 1e-3 / len(share))
    return np.asarray(share / share.sum())


def informed(scores: Floats, log_prior: Floats) -> Floats:
    """Weight of each class in each row: the chance that the observation was drawn because of that class."""
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    prior = np.exp(log_prior)
    total = (prior * likelihood).sum(axis=1, keepdims=True)
    likelihood -= likelihood.min(axis=1, keepdims=True)
    likelihood *= prior
    likelihood /= total
    return likelihood


@dataclass(frozen=True)
class Undo:
    """Class probabilities (in logarithms) behind the predictions of a model that was fitted to naive weights.

    Such a model predicts `high` for the true class and `low` for every other one, on average over the noise. The
    order of the classes in a row stays as the model had it, wherever none is clipped.
    """

    high: float
    low: float
    prior: Floats

    @classmethod
    def of(cls, scores: Floats, weights: Floats) -> Undo:
        """The undoing for these scores: `high` and `low` follow from the mean weights of the rows of each class."""
        prior = class_prior(scores)
        true = softmax(scores + np.log(prior), axis=1)
        by_class = (true.T @ weights) / true.sum(axis=0)[:, None]
        whole, own = float(by_class.sum()), float(np.trace(by_class))
        return cls(own / whole, (whole - own) / whole / (len(prior) - 1), prior)

    def __call__(self, log_predicted: Floats) -> Floats:
        if not self.high > self.low:
            return np.broadcast_to(np.log(self.prior), log_predicted.shape).copy()
        share = (np.exp(log_predicted) - self.low) / (self.high - self.low)
        np.maximum(share, _CLIPPED * self.prior, out=share)
        return np.asarray(np.log(share / share.sum(axis=1, keepdims=True)))


def fit_weighted(base: Any, X: Any, weights: Floats, near: Any = None) -> Any:
    """A copy of the base, fitted to rows repeated once for every class that weighs something there.

    `near` is a model fitted to similar weights: logistic regression starts from there, which changes the time it takes
    and little else, as there is one best fit. Where it can be fitted to every row once, it is.
    """
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils import _safe_indexing

    counted = weights > _NEGLIGIBLE * float(weights.sum(axis=1).mean())
    if not counted.any():
        raise InputError("these observations say nothing about the labels: there is nothing to learn from them")
    if counted.sum() > len(counted) and fits_rows_once(base, X, int(counted.any(axis=0).sum())):
        return fitted_rows_once(base, X, np.where(counted, weights, 0), near)
    row, code = np.nonzero(counted)
    rows = X if len(row) == len(weights) and (np.diff(row) == 1).all() else _safe_indexing(X, row)
    if (code == code[0]).all():
        return DummyClassifier(strategy="prior").fit(rows, code)
    model, settings = clone(base), base.get_params(deep=False)
    if isinstance(near, LogisticRegression) and np.array_equal(near.classes_, np.unique(code)):
        model = copy.deepcopy(near).set_params(warm_start=True)
    model.fit(rows, code, **{weight_name(model): weights[row, code]})
    return model.set_params(warm_start=settings["warm_start"]) if "warm_start" in settings else model


def weight_name(base: Any) -> str:
    """The keyword by which the base takes sample weights: its own, or that of the last step of a pipeline."""
    from sklearn.pipeline import Pipeline

    return f"{base.steps[-1][0]}__sample_weight" if isinstance(base, Pipeline) else "sample_weight"


def predicted(model: Any, X: Any, n_classes: int) -> Floats:
    """Logarithms of the model's probabilities, with a column for every class: one it never saw is hardly possible."""
    chances = model.predict_proba(X)
    found = np.full((len(chances), n_classes), _LEAST)
    found[:, np.asarray(model.classes_, dtype=np.int64)] = chances
    np.maximum(found, _LEAST, out=found)
    return np.asarray(np.log(found / found.sum(axis=1, keepdims=True)))


def power(scores: Floats, log_predicted: Floats) -> tuple[float, float]:
    """The power by which predictions for rows outside the fit should be read, and what they are worth then, in nats.

    A model that is too sure of itself needs a power below 1. The likelihood of the observations judges: predictions are
    left as they are unless it gains what chance gives once in 200 times, since a power also shifts the shares of the
    classes. The power counts as one estimated number (Akaike). Which class comes first does not change.
    """

    def loss(log_power: float) -> float:
        return -float(marginal(scores, log_softmax(np.exp(log_power) * log_predicted, axis=1)).sum())

    plain = loss(0.0)
    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-3})
    return (float(np.exp(best.x)), -float(best.fun) - 1) if best.fun + _BEYOND_CHANCE < plain else (1.0, -plain)


@proves("label-learning")
def share(one: Floats, other: Floats) -> float:
    """The share of the other in the mixture of two predictions that makes held-out observations likeliest.

    Both are log-likelihoods of the same observations. The likelihood of a mixture is the mixture of likelihoods, so
    this is a concave problem in one number, and the mixture is worth at least as much as the better of the two.
    """

    def loss(s: float) -> float:
        return -float(np.logaddexp(np.log1p(-s) + one, np.log(s) + other).sum())

    ends = (1e-6, 1 - 1e-6)
    return float(minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-3}).x)
