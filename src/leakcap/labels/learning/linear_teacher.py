"""A linear classifier that learns from rows without labels too: their Gram matrix is as good as that of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.linear.parts import shared_weights

__all__ = ["LinearTeacher"]


class LinearTeacher(ClassifierMixin, BaseEstimator):
    """Ridge regression to the classes, whose covariance is that of all rows, labelled or not.

    A few labels for each class are enough where features are many. As the teacher of `PATE(semi_supervised=True)`
    hundreds of them are solved at once, for little more than the price of one.

    Args:
        alpha: added to the covariance's diagonal, in its mean variance.

    Attributes:
        classes_: those of the labelled rows.
        coef_: `(features, classes)`.
        intercept_: `(classes,)`.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(2000, centers=3, random_state=0, cluster_std=0.5)
        >>> y[20:] = -1  # nobody knows these
        >>> lc.labels.LinearTeacher().fit(X, y).predict(X[:3]).tolist() == y[:3].tolist()
        True
    """

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> LinearTeacher:
        """Learn from all rows; those with the label -1 have none.

        Args:
            X: features.
            y: labels, -1 where there is none.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: alpha is below 0, or no row has a label.
        """
        alpha = checks.positive(alpha=self.alpha)
        table, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        known = np.asarray(labels != -1)
        if not known.any():
            raise InputError("no row has a label: -1 stands for rows without one")
        self.classes_, codes = np.unique(labels[known], return_inverse=True)
        members, rows = np.eye(len(self.classes_))[codes], table[known]
        shares = members.mean(axis=0)
        centre, inverse = shared_weights(table, alpha)
        self.coef_ = inverse @ (rows.T @ members / len(rows) - np.outer(rows.mean(axis=0), shares))
        self.intercept_ = shares - centre @ self.coef_
        return self

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """A score for every class.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`; with two classes that of the second less that of the first.
        """
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of the largest score.

        Args:
            X: features, as given to the fit.

        Returns:
            A class for each row.
        """
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _scores(self, X: npt.ArrayLike) -> Floats:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_)
