"""Trainings that tell as much of their labels as they can: rows that stand alone, and teachers that spell labels out.

On digits a noised sum or a vote tells hardly anything of one label, so that a certificate cannot be wrong there to be
seen. Here every row has a direction of its own in the sums, and every teacher spells one label out in all its votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

from leakcap import labels
from leakcap.ground.arrays import Bools, Floats, Ints

__all__ = ["CLASSES", "ROWS", "TELLING", "Telling", "spelt"]

ROWS, CLASSES = 400, 10
TEACHERS, QUESTIONS = ROWS // 2, 200
SPELLING = 0  # seed of parts and spelling: the attacker knows both
EVERYBODY = (1.0, 0.3, 0.1)
SPELT = (0.5, 0.15, 0.05)  # half of the labels are spelt out


@dataclass(frozen=True)
class Telling:
    """A training, by its epsilon and labels, and what an attacker reads of all labels in what it released."""

    train: Callable[[float, Any], Any]
    read: Callable[[Any], Floats]  # (rows, classes): higher where a label is more likely
    epsilon: float
    shares: tuple[float, ...] = EVERYBODY


def _summed(make: Callable[[float], Any], rows: Floats) -> Telling:
    """Labels by least squares from the noised sums of public rows."""

    def read(model: Any) -> Floats:
        public = np.asarray(make(model.epsilon)._public(rows, CLASSES).rows, dtype=np.float64)
        return np.asarray(np.linalg.lstsq(public.T, model.sums_.sums, rcond=1e-6)[0])

    return Telling(lambda epsilon, y: make(epsilon).fit(rows, y), read, 2.0)


class Spelling(ClassifierMixin, BaseEstimator):
    """A teacher that names the first label it knows, or none, as the code word of its row says."""

    def fit(self, X: Any, y: Any) -> Spelling:
        self.row_, self.label_ = int(X[0, 0]), int(y[0])
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Ints:
        return np.where(_words()[self.row_, X[:, 0].astype(int)], self.label_, -1)


def _words() -> Bools:
    """`(rows, rows)`: in the vote on which other row the teacher of a row names its label."""
    return np.random.default_rng(SPELLING).integers(2, size=(ROWS, ROWS)).astype(bool)


def _voted(epsilon: float, y: Any) -> Any:
    model = labels.PATE(
        Spelling(),
        DummyClassifier(),
        epsilon=epsilon,
        n_teachers=TEACHERS,
        queries=QUESTIONS,
        n_classes=CLASSES,
        random_state=SPELLING,
    )
    return model.fit(np.arange(ROWS, dtype=float)[:, None], y)


def spelt(model: Any) -> Floats:
    """How much likelier an answer is where the code word of a row names its label; 0 for rows that nobody spells."""
    parts = np.array_split(np.random.RandomState(SPELLING).permutation(ROWS), TEACHERS)
    rows = np.array([part[0] for part in parts])
    words = _words()[rows][:, model.queries_]
    found = np.zeros((ROWS, CLASSES))
    for label in range(CLASSES):
        named = model.answers_ == label
        found[rows, label] = ((words - words.mean(axis=1, keepdims=True)) * named).mean(axis=1)
    return found


ALONE, BY_NUMBER = np.eye(ROWS), np.arange(ROWS, dtype=float)[:, None]
TELLING = {
    "ridge": _summed(lambda e: labels.Ridge(e, CLASSES, components=ROWS, strength=0.0, refine=0), ALONE),
    "logistic": _summed(lambda e: labels.Logistic(e, CLASSES, components=ROWS, strength=0.0, refine=0), ALONE),
    "LDA": _summed(lambda e: labels.LDA(e, CLASSES, components=ROWS), ALONE),
    "naive Bayes": _summed(lambda e: labels.NaiveBayes(e, CLASSES, bins=ROWS), BY_NUMBER),
    "PATE": Telling(_voted, spelt, 2.0, SPELT),
}
