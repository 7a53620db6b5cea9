"""Ridge regression to the classes from one noised sum: public components, secret labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.mechanisms.gaussian import least_sigma
from leakcap.labels.statistics.base import SummedRows, SumsClassifier
from leakcap.labels.statistics.components import principal_components, strength_of
from leakcap.labels.statistics.shrink import best_round, doubt, refined, shares_of
from leakcap.labels.statistics.white_rows import white_rows
from leakcap.simulate.teaching import generator_of

__all__ = ["Ridge"]

_NOISE_SHARE = 7.0  # noise in all components together, beside the labels' own spread
_WEAKEST = 1 / 32  # of the strength: components of smaller eigenvalues drown in noise
_LEAST_STRENGTH = 1e-4  # of a column's own square: directions without spread are no components
_REFINEMENTS, _MANY = 3, 5  # rounds at most; components for a class from which they help


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
        refine: rounds in which the sums are shrunk towards the model's own predictions, 0 for none; "auto" takes up to
            3, as many as tell most of sums with fresh noise. The model is the mean of all rounds.
        random_state: seed of that fresh noise. It has no part in privacy.

    Attributes:
        classes_: names of the classes, sorted.
        certificate_: what the best attacker can learn of a label.
        sums_: the noised sums: all that was taken from the labels.
        arithmetic_: total variation, at most, between the law of the noised sums and normal noise.
        components_: the public map to components.
        coef_: `(components, classes)`.
        intercept_: `(classes,)`.
        rounds_: rounds of refinement.

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
        random_state: Any = None,
    ) -> None:
        super().__init__(epsilon, n_classes, classes, delta=delta)
        self.components = components
        self.strength = strength
        self.clip = clip
        self.refine = refine
        self.random_state = random_state

    def _public(self, features: npt.NDArray[Any], classes: int) -> SummedRows:
        most = None if self.components == "auto" else checks.count(components=self.components)
        quantile = 0.5 if self.clip == "auto" else checks.probability(clip=self.clip)
        if quantile == 0:
            raise InputError("clip must be above 0: it is the quantile of lengths at which rows are shortened")
        if self.refine != "auto":
            checks.count(at_least=0, refine=self.refine)
        generator_of(self.random_state)
        found = principal_components(features, most)
        strength = self._strength(found.values, len(features), classes)
        if most is None:
            found = found.first(int((found.values >= _WEAKEST * strength).sum()))
        self.components_ = found
        made = white_rows(found, features, strength, quantile)
        settings = (("components", float(len(found.values))), ("strength", strength))
        return SummedRows(made.rows, made.clip, settings, made)

    def _strength(self, values: Floats, rows: int, classes: int) -> float:
        if self.strength != "auto":
            return checks.nonnegative(strength=self.strength)
        sigma = least_sigma(self.epsilon, self.delta)
        # The noise of d components has energy d^2 sigma^2 / n for a class, the labels' own spread about n / classes.
        return _LEAST_STRENGTH * rows + strength_of(values, rows / (_NOISE_SHARE * sigma * np.sqrt(classes)))

    def _learn(self, public: SummedRows, order: npt.NDArray[np.intp]) -> None:
        told, made, count = self.sums_, public.made_of, len(order)
        self.intercept_ = shares_of(told.sums[0, order] / np.sqrt(told.labels), told.deviation**2 / told.labels)
        sums = told.balanced[1:, order] - np.outer(told.totals[1:], self.intercept_)
        variance = told.deviation**2 * (1 - 1 / count)

        def guess(found: Floats) -> Floats:
            return np.asarray(made.guess(found, self.intercept_))

        self.rounds_ = self._rounds(sums, variance, guess)
        # The mean of all rounds: each of them errs in its own way.
        found = np.mean(list(refined(sums, variance, guess, self.rounds_)), axis=0)
        self.coef_, self._doubt = made.solve @ found, doubt(sums, variance)

    def _rounds(self, sums: Floats, variance: float, guess: Callable[[Floats], Floats]) -> int:
        if self.refine != "auto":
            return int(self.refine)
        if len(sums) < _MANY * sums.shape[1]:
            return 0  # few components: the guess repeats their noise
        return best_round(sums, variance, guess, rounds=_REFINEMENTS, rng=generator_of(self.random_state))

    def _scores(self, features: npt.NDArray[Any]) -> Floats:
        weights, intercept = self._linear()
        return np.asarray(self.components_.of(features) @ weights + intercept, dtype=np.float64)

    def _linear(self) -> tuple[Floats, Floats]:
        """Weights of the components, and what is added to them: a column for every class."""
        return self.coef_, self.intercept_

    def _plain(self) -> dict[str, Any]:
        weights, intercept = self._linear()
        return {
            "mean": self.components_.mean.tolist(),
            "weights": (self.components_.directions.astype(np.float64) @ weights).tolist(),
            "intercept": intercept.tolist(),
        }
