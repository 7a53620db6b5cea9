"""What all label-private statistics share: public rows are made first, labels are summed once, the rest follows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.given import (
    SpendsLabels,
    check_rows,
    given_labels,
    refuse_again,
    refuse_mixed,
    refuse_unfitted,
    sorted_names,
)
from leakcap.labels.mechanisms.base import SMALLEST_EPSILON
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.mechanisms.simplex import project
from leakcap.labels.statistics.components import features_of
from leakcap.labels.statistics.sums import calibrated, whole_rows

__all__ = ["NoisedSums", "SummedRows", "SumsClassifier"]


@dataclass(frozen=True)
class SummedRows:
    """A table made of features alone, and the length to which its rows are shortened.

    Args:
        rows: `(n, columns)`.
        clip: most length of a row.
        settings: figures for the certificate.
        made_of: what a model goes on from besides.
    """

    rows: npt.NDArray[Any]
    clip: float
    settings: tuple[tuple[str, float], ...] = ()
    made_of: Any = None


@dataclass(frozen=True)
class NoisedSums:
    """What left of the labels: sums of public rows by class, with noise of this deviation.

    Args:
        sums: `(columns, classes)`.
        totals: `(columns,)`, of all rows whatever their class: public, and without noise.
        deviation: of the noise on every entry of `sums`.
        labels: number of rows.
    """

    sums: Floats
    totals: Floats
    deviation: float
    labels: int

    @property
    def balanced(self) -> Floats:
        """The sums with the noise on their sum over classes taken out: it is known what they add to."""
        return np.asarray(self.sums - (self.sums.sum(axis=1) - self.totals)[:, None] / self.sums.shape[1])


class SumsClassifier(SpendsLabels, ClassifierMixin, BaseEstimator):
    """A classifier made of noised sums; subclasses say of which rows, and what follows from them."""

    def __init__(
        self,
        epsilon: float,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        *,
        delta: float = 1e-5,
    ) -> None:
        self.epsilon = epsilon
        self.n_classes = n_classes
        self.classes = classes
        self.delta = delta

    _most_arithmetic = math.inf  # total variation that is counted on, by a model that learns from this one

    def fit(self, X: Any, y: npt.ArrayLike) -> Any:
        """Sum public rows by the secret labels, with noise, and learn from the noised sums alone.

        It works once: a second call would spend epsilon again.

        Args:
            X: features, a row for each label; public.
            y: the labels, one column.

        Returns:
            The classifier itself, fitted. It may be published.

        Raises:
            InputError: settings, features or labels cannot be used (nothing is drawn then), or labels were summed
                before. The message never quotes a label.
        """
        epsilon, delta, classes = self._checked()
        labels = given_labels(y)
        features = features_of(X, least_rows=classes.count)
        check_rows(features, len(labels))
        public = self._public(features, classes.count)
        mechanism = calibrated(epsilon, delta, classes, rows=len(labels), columns=public.rows.shape[1])
        if mechanism.distance > self._most_arithmetic:
            raise InputError("arithmetic of the prior would cost too much of delta: give it a smaller epsilon")
        rows, codes = whole_rows(public.rows, public.clip, mechanism.length), classes.codes(labels)
        self.certificate_ = mechanism.certificate(len(labels), (("clip", public.clip), *public.settings))
        self.arithmetic_ = mechanism.distance
        step = public.clip / mechanism.length
        noised = np.asarray(mechanism.release(rows, codes) * step, dtype=np.float64)
        totals = np.asarray(rows.sum(axis=0, dtype=np.int64) * step, dtype=np.float64)
        self.sums_ = NoisedSums(noised, totals, mechanism.sigma * public.clip, len(labels))
        self.classes_, order = sorted_names(classes.names)
        self.n_features_in_ = features.shape[1]
        self._learn(public, order)
        return self

    @abstractmethod
    def _public(self, features: npt.NDArray[Any], classes: int) -> SummedRows:
        """Rows to be summed: of features and settings alone."""

    @abstractmethod
    def _learn(self, public: SummedRows, order: npt.NDArray[np.intp]) -> None:
        """What follows from `sums_` and public rows; columns of the model in this order of the classes."""

    @abstractmethod
    def _scores(self, features: npt.NDArray[Any]) -> Floats:
        """A score for every class, the largest for the likeliest."""

    def decision_function(self, X: Any) -> Floats:
        """A score for every class, `(rows, classes)`; with two classes that of the second less that of the first.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`, or `(rows,)` with two classes.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        scores = self._scores(self._features(X))
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of every row.

        Args:
            X: features, as given to the fit.

        Returns:
            A class for each row.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        best = self._scores(self._features(X)).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`, in the order of `classes_`.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        return self._chances(self._scores(self._features(X)))

    def _chances(self, scores: Floats) -> Floats:
        return np.asarray(0.99 * project(scores) + 0.01 / scores.shape[1])  # no class is ruled out

    def portable(self) -> dict[str, Any]:
        """The model in plain numbers and lists, for a file that any language reads; it holds the noised sums too.

        `Ridge` and `LDA`: the scores of a row are `(row - mean) @ weights + intercept`. `NaiveBayes`: they are
        `log_shares`, and for every column its `log_chances` in the bin that `edges` put the row into. The largest score
        names the class.

        Returns:
            `classes` in the order of the scores, the numbers above, and `sums`: `noised`, by column and class in the
            order of the settings, their public `totals`, the `deviation` of the noise and the number of `labels`.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        refuse_unfitted(self, "classes_", "fit(X, y)")
        told = self.sums_
        sums = {
            "noised": told.sums.tolist(),
            "totals": told.totals.tolist(),
            "deviation": told.deviation,
            "labels": told.labels,
        }
        return {"classes": self.classes_.tolist(), **self._plain(), "sums": sums}

    @abstractmethod
    def _plain(self) -> dict[str, Any]:
        """What scores are computed from, in plain numbers."""

    def _features(self, X: Any) -> npt.NDArray[Any]:
        refuse_unfitted(self, "classes_", "fit(X, y)")
        features = features_of(X)
        if features.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: give the columns of the fit"
            )
        return features

    def _checked(self) -> tuple[float, float, Classes]:
        epsilon, delta = checks.positive(epsilon=self.epsilon), checks.fraction(delta=self.delta)
        if epsilon < SMALLEST_EPSILON:
            raise InputError(f"epsilon must be at least {SMALLEST_EPSILON:g}: below that the labels say nothing")
        refuse_again(self, "take clone(model) for other labels")
        classes = Classes(self.n_classes, self.classes)
        refuse_mixed(classes.names)
        return epsilon, delta, classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # they are filled in
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")
