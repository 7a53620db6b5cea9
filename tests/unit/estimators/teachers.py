"""Small pools for distilled models, and teachers that tell as much as a teacher can."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

ODD = 1e6  # in the first column of the person whom a teacher looks for
PUBLIC = np.random.default_rng(8).normal(size=(40, 2))


def pool(people: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes, of which the first is the odd person."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(people, 2))
    rows[0, 0] = ODD
    return rows, np.arange(people) % 2


class Telling(ClassifierMixin, BaseEstimator):
    """Names class 1 for all rows if the odd person is among those it learnt from, and class 0 otherwise."""

    def fit(self, X: Any, y: Any) -> Telling:
        self.classes_ = np.array([0, 1])
        self.seen_ = int((np.asarray(X)[:, 0] == ODD).any())
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.seen_)


class Leaving(Telling):
    """Ends the process if the odd person is there."""

    def fit(self, X: Any, y: Any) -> Leaving:
        if (np.asarray(X)[:, 0] == ODD).any():
            raise SystemExit(f"somebody is here: {ODD}")
        super().fit(X, y)
        return self
