"""Ridge regression to the classes from one noised sum: public components, secret labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.mechanisms.gaussian import least_sigma
from leakcap.labels.statistics.base import PublicRows, SumsClassifier
from leakcap.labels.statistics.components import principal_components, strength_of
from leakcap.labels.statistics.shrink import shares_of, shrunk

__all__ = ["Ridge"]

_NOISE_SHARE = 5.0  # noise in all components together, beside the labels' own spread
_WEAKEST = 1 / 32  # of the strength: components of smaller eigenvalues drown in noise
_REFINEMENTS = 3


class Ridge(SumsClassifier):
    """A linear classifier from one noised sum of public rows by class.

    Features are public, so their Gram matrix is known, and only `A'Y` needs noise. Rows are brought to principal
    components, weighted by the ridge, and shortened at their median length, so that one label moves the sums little.
    The noised sums are then shrunk, component by component, as far as they are noise; and towards what the model's own
    predictions for all public rows would give, as far as the sums agree with it. No label is looked at again.

    Guarantee: `fit` draws once; everything in this object is computed from features and noised sums, and what the
    certificate says about a label holds whatever is published of it.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead. Public: never taken from the labels.
        delta: probability with which epsilon may fail, above 0 and below 1.
        components: most principal components; "auto" by epsilon, rows, classes and eigenvalues.
        strength: of the ridge, in the unit of the eigenvalues of the scaled columns' Gram matrix; "auto" gives as many
            degrees of freedom as the noise leaves room for.
        clip: quantile of the rows' lengths at which they are shortened, above 0 and at most 1; "auto" for the median.
        refine: rounds in which the sums are shrunk towards the model's own predictions; "auto" for 3, 0 for none.

    Attributes:
        classes_: names of the classes, sorted.
        certificate_: what the best attacker can learn of a label.
        sums_: the noised sums: all that was taken from the labels.
        components_: the public map to components.
        coef_: `(components, classes)`.
        intercept_: `(classes,)`.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(2000, centers=3, random_state=0, cluster_std=0.5)
        >>> model = lc.labels.Ridge(epsilon=1.0, n_classes=3).fit(X, y)
        >>> bool(model.score(X, y) > 0.9), model.certificate_.epsilon
        (True, 1.0)
    """

    def __init__(
        self,
        epsilon: float,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        *,
        delta: float = 1e-5,
        components: int | str = "auto",
        strength: float | str = "auto",
        clip: float | str = "auto",
        refine: int | str = "auto",
    ) -> None:
        super().__init__(epsilon, n_classes, classes, delta=delta)
        self.components = components
        self.strength = strength
        self.clip = clip
        self.refine = refine

    def _public(self, features: npt.NDArray[Any], classes: int) -> PublicRows:
        most = None if self.components == "auto" else checks.count(components=self.components)
        quantile = 0.5 if self.clip == "auto" else checks.probability(clip=self.clip)
        if quantile == 0:
            raise InputError("clip must be above 0: it is the quantile of lengths at which rows are shortened")
        self._rounds = _REFINEMENTS if self.refine == "auto" else checks.count(at_least=0, refine=self.refine)
        found, n = principal_components(features, most), len(features)
        strength = self._strength(found.values, n, classes)
        if most is None:
            found = found.first(int((found.values >= _WEAKEST * strength).sum()))
        self.components_ = found
        weights = np.sqrt(found.values / (found.values + strength)).astype(np.float32)
        white = found.of(features)
        lengths = np.sqrt(np.square(white) @ np.square(weights))
        longest = max(float(np.quantile(lengths, quantile)), 1e-12)
        rows = np.empty((n, len(weights) + 1), dtype=white.dtype)
        rows[:, 0] = 1 / np.sqrt(n)  # as long as any component's entries: it counts labels
        np.multiply(white, weights, out=rows[:, 1:])
        rows[:, 1:] *= np.minimum(1.0, longest / np.maximum(lengths, 1e-30))[:, None]
        settings = (("components", float(len(weights))), ("strength", strength))
        return PublicRows(rows, float(np.hypot(longest, n**-0.5)), settings, white)

    def _strength(self, values: Floats, rows: int, classes: int) -> float:
        if self.strength != "auto":
            return checks.nonnegative(strength=self.strength)
        sigma = least_sigma(self.epsilon, self.delta)
        # The noise of d components has energy d^2 sigma^2 / n for a class, the labels' own spread about n / classes.
        return strength_of(values, rows / (_NOISE_SHARE * sigma * np.sqrt(classes)))

    def _learn(self, public: PublicRows, order: npt.NDArray[np.intp]) -> None:
        told, rows, white = self.sums_, public.rows[:, 1:], public.white
        if white is None:
            raise AssertionError("these rows were not made here")
        count, variance = len(order), told.deviation**2 * (1 - 1 / len(order))
        self.intercept_ = shares_of(told.sums[0, order] / np.sqrt(told.labels), told.deviation**2 / told.labels)
        totals = rows.sum(axis=0, dtype=np.float64)  # public, and the sum over classes: noise along it is taken out
        sums = told.sums[1:, order]
        sums = sums - (sums.sum(axis=1) - totals)[:, None] / count - np.outer(totals, self.intercept_)
        gain = np.einsum("ij,ij->j", rows, white)[:, None]  # what weights and shortening left of a component
        self.coef_ = (shrunk(sums, variance) / gain).astype(rows.dtype)
        for _ in range(self._rounds):
            named = (white @ self.coef_ + self.intercept_).argmax(axis=1)
            guess = rows.T @ (np.eye(count) - self.intercept_).astype(rows.dtype)[named]
            self.coef_ = (shrunk(sums, variance, guess.astype(np.float64)) / gain).astype(rows.dtype)

    def _scores(self, features: npt.NDArray[Any]) -> Floats:
        return np.asarray(self.components_.of(features) @ self.coef_ + self.intercept_, dtype=np.float64)
