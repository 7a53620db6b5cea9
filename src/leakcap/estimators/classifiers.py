"""What private classifiers share: classes, and the questions that a released model answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.computation import Utility
from leakcap.estimators.data import Rows, checked_weight, validated

__all__ = ["LogProbabilities", "PrivateClassifier", "Probabilities", "Scores"]


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """What private classifiers share. Their classes are those of the whole pool."""

    def predict(self, X: Any) -> Any:
        """The class of each row, by the released model.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            A class for each row.
        """
        return self._asked("predict", X)

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        features, target = validated(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        check_classification_targets(target)
        classes, codes = np.unique(target, return_inverse=True)
        if len(classes) < 2:
            raise InputError("the classifier needs rows of 2 classes at least, and y holds 1 class")
        return Rows(features, codes, classes, checked_weight(weight, features))

    def _accuracy(self, rows: Rows) -> Utility:
        features, codes, classes = rows.features[rows.some], rows.target, rows.classes
        assert codes is not None and classes is not None
        right, most = classes[codes[rows.some]], np.bincount(codes).max() / len(codes)
        return Utility("accuracy", lambda made: float((made.predict(features) == right).mean()), float(most))


class Scores(PrivateEstimator):
    """Models that give every row a score."""

    def decision_function(self, X: Any) -> Any:
        """Scores of the rows, by the released model.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            The score of the second class, `(rows,)`, where there are two classes; otherwise of each, `(rows, classes)`.
        """
        return self._asked("decision_function", X)


class Probabilities(PrivateEstimator):
    """Models that give every row probabilities of the classes."""

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, by the released model: of trees, shares of the classes in a row's leaves.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, classes)`, in the order of `classes_`: positive, and they add to 1.
        """
        return self._asked("predict_proba", X)


class LogProbabilities(Probabilities):
    """Models that give their logarithms too."""

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of the classes, by the released model.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, classes)`, in the order of `classes_`.
        """
        return self._asked("predict_log_proba", X)
