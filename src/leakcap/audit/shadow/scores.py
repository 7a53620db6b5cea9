"""Scores of units under released models: one number for each release and unit, larger where the unit fits better.

Predictions come as arrays with a row for each release; models of the papers as their released numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats

__all__ = [
    "fit_of",
    "hinge_margin",
    "kmeans_confidence",
    "log_likelihood",
    "logit_confidence",
    "logit_of_scores",
    "negative_squared_error",
    "svm_confidence",
]

MAX_MADE_NUMBERS = 2**22  # numbers that are made at a time


def logit_confidence(probability: npt.ArrayLike) -> Floats:
    """`log(p / (1 - p))` of the probability of the true label (Carlini et al. 2022, section V).

    Probabilities 0 and 1 count as the nearest that a double tells apart from them, so the result is finite.
    """
    p = _probabilities(probability)
    tiny, next_to_one = np.finfo(np.float64).tiny, np.finfo(np.float64).epsneg
    return np.log(np.maximum(p, tiny)) - np.log(np.maximum(1 - p, next_to_one))


def logit_of_scores(scores: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """The same from class scores (logits) `(..., n, classes)`: exact where `1 - p` would round to 0."""
    own, others = _own_and_others(scores, labels)
    return np.asarray(own - logsumexp(others, axis=-1))


def hinge_margin(scores: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """True class score less the best of the others, from `(..., n, classes)` (Carlini et al. 2022, section VI)."""
    own, others = _own_and_others(scores, labels)
    return np.asarray(own - others.max(axis=-1))


def log_likelihood(probability: npt.ArrayLike) -> Floats:
    """Minus the log loss: the log-probability of the true label; 0 counts as the least normal double."""
    return np.log(np.maximum(_probabilities(probability), np.finfo(np.float64).tiny))


def negative_squared_error(predicted: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """Minus the squared error of predictions `(..., n)`, for true values `(n,)`."""
    return np.asarray(-((np.asarray(predicted, dtype=np.float64) - np.asarray(truth, dtype=np.float64)) ** 2))


def kmeans_confidence(rows: npt.ArrayLike, centres: npt.ArrayLike, longest: float | None = None) -> Floats:
    """`(t, n)`: `1 - d(x) / longest`, `d` the distance from a row to the nearest released centre.

    After PAC-Private Algorithms, Appendix D, which takes one less a normalised distance to the row's own cluster and
    does not say by what it is divided. The default is the diagonal of the unit cube in which its data lie: a constant,
    so that the score of one row tells nothing of other rows.

    Args:
        rows: `(n, features)`.
        centres: `(t, clusters, features)`.
    """
    x, c = np.asarray(rows, dtype=np.float64), np.asarray(centres, dtype=np.float64)
    if x.ndim != 2 or c.ndim != 3 or c.shape[2] != x.shape[1]:
        raise InputError("centres must be releases x clusters x features, with the features of the rows")
    found = np.empty((len(c), len(x)))
    step = max(1, MAX_MADE_NUMBERS // max(1, c.shape[1] * x.size))
    for start in range(0, len(c), step):
        apart = x[None, None] - c[start : start + step, :, None]
        found[start : start + step] = np.sqrt((apart**2).sum(axis=3).min(axis=1))
    return np.asarray(1 - found / (np.sqrt(x.shape[1]) if longest is None else longest))


def svm_confidence(rows: npt.ArrayLike, slopes: npt.ArrayLike, offsets: npt.ArrayLike) -> Floats:
    """`(t, n)`: the largest over classes of `1 / (1 + exp(-d))`, `d` the signed distance to the class's hyperplane.

    PAC-Private Algorithms, Appendix D, after Platt. One hyperplane between two classes counts for both, with either
    sign.

    Args:
        rows: `(n, features)`.
        slopes: `(t, lines, features)`; `offsets` `(t, lines)`.
    """
    x = np.asarray(rows, dtype=np.float64)
    w, b = np.asarray(slopes, dtype=np.float64), np.asarray(offsets, dtype=np.float64)
    if x.ndim != 2 or w.ndim != 3 or w.shape[2] != x.shape[1] or b.shape != w.shape[:2]:
        raise InputError("slopes must be releases x lines x features, and offsets releases x lines")
    norms = np.linalg.norm(w, axis=2)
    norms[norms == 0] = 1.0  # no line at all: its offset says which side everybody is on
    found = np.empty((len(w), len(x)))
    step = max(1, MAX_MADE_NUMBERS // max(1, w.shape[1] * len(x)))
    for start in range(0, len(w), step):
        part = slice(start, start + step)
        distances = (w[part] @ x.T + b[part, :, None]) / norms[part, :, None]
        found[part] = np.abs(distances[:, 0]) if w.shape[1] == 1 else distances.max(axis=1)
    return np.asarray(expit(found))


def fit_of(model: Any, X: Any, y: Any = None) -> Floats:
    """How well a fitted scikit-learn estimator fits each row, by what it can do.

    Classifiers: the logit-scaled confidence in the right class (the margin, where there are no probabilities).
    Regressors: minus the squared error. Clusterings: one less the normalised distance to the nearest centre. Others:
    minus the squared error of what `inverse_transform` restores, or minus the squared size of what `transform` gives.
    """
    rows = np.asarray(X, dtype=np.float64)
    if hasattr(model, "classes_") and y is not None:
        own = np.searchsorted(model.classes_, np.asarray(y))
        if hasattr(model, "predict_proba"):
            return logit_confidence(np.asarray(model.predict_proba(X))[np.arange(len(own)), own])
        scores = np.asarray(model.decision_function(X))
        return hinge_margin(np.column_stack([-scores, scores]) if scores.ndim == 1 else scores, own)
    if hasattr(model, "cluster_centers_"):
        return kmeans_confidence(rows, np.asarray(model.cluster_centers_)[None])[0]
    if hasattr(model, "predict") and y is not None:
        off = np.asarray(model.predict(X)) - np.asarray(y)
        return np.asarray(-(off**2).reshape(len(rows), -1).sum(axis=1))
    if hasattr(model, "inverse_transform"):
        return np.asarray(-((np.asarray(model.inverse_transform(model.transform(X))) - rows) ** 2).sum(axis=1))
    if hasattr(model, "transform"):
        return np.asarray(-(np.asarray(model.transform(X)) ** 2).sum(axis=1))
    raise InputError("no score is known for this estimator: give score=, a function of the estimator and the data")


def _probabilities(given: npt.ArrayLike) -> Floats:
    p = np.asarray(given, dtype=np.float64)
    if (p < 0).any() or (p > 1).any():
        raise InputError("probabilities must lie between 0 and 1: for class scores use logit_of_scores")
    return p


def _own_and_others(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Each row's score of its own class, and those of the other classes."""
    given, own = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if given.ndim < 2 or given.shape[-1] < 2 or own.shape != (given.shape[-2],) or own.dtype.kind not in "iu":
        raise InputError("class scores must be ... x rows x classes (two or more), with a class number for each row")
    if len(own) and not (own.min() >= 0 and own.max() < given.shape[-1]):
        raise InputError("labels must be numbers of classes, from 0")
    mine = own[:, None] == np.arange(given.shape[-1])
    others = given[..., ~mine].reshape(*given.shape[:-1], given.shape[-1] - 1)
    return given[..., mine].reshape(given.shape[:-1]), others
