"""Linear discriminant analysis from one noised sum: the classes' means are secret, the common spread is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.statistics.base import SummedRows
from leakcap.labels.statistics.ridge import Ridge
from leakcap.labels.statistics.white_rows import WhiteRows

__all__ = ["LDA", "discriminants"]

READOUTS = ("ridge", "discriminant")
NEARER = 0.875  # of the squared distance to the noised sums, that discriminants must leave to be taken
_LEAST_SPREAD = 0.02  # of a direction within classes, beside its spread over all rows


def discriminants(coef: Floats, shares: Floats, rows: int, doubt: float) -> tuple[Floats, Floats]:
    """Weights and offsets by Bayes' rule, from the coefficients that `Ridge` makes of the same sums.

    Args:
        coef: `(components, classes)`.
        shares: of the classes.
        rows: how many were summed.
        doubt: share of noise in the sums.
    """
    means = coef / (np.sqrt(rows) * shares)
    # Within classes the spread is I - B B'; its inverse times the means, by the singular values of B.
    left, sizes, _ = np.linalg.svd(means * np.sqrt(shares), full_matrices=False)
    # Noise between the means would seem to leave no spread within: as far as they are noise, all spread is within.
    within = np.maximum(1 - np.square(sizes) * (1 - doubt), max(_LEAST_SPREAD, doubt))
    slopes = means + left @ ((1 / within - 1)[:, None] * (left.T @ means))
    return np.asarray(np.sqrt(rows) * slopes), np.asarray(np.log(shares) - 0.5 * (means * slopes).sum(axis=0))


class LDA(Ridge):
    """Linear discriminants from the sums that `Ridge` takes, with probabilities by Bayes' rule.

    The sums give the mean of every class. The spread of all rows is public, so the spread within classes follows from
    the means: what is left when the spread between them is taken out. Take it in the place of `Ridge` where
    probabilities matter, or classes are rare; with `readout="auto"` the noised sums themselves say which of the two
    is right more often.

    Guarantee: as for `Ridge`: `fit` draws once; everything in this object is computed from features and noised sums.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead. Public: never taken from the labels.
        delta: probability with which epsilon may fail, above 0 and below 1.
        components: most principal components; "auto" by epsilon, rows, classes and eigenvalues.
        strength: of the ridge; "auto" gives as many degrees of freedom as the noise leaves room for.
        clip: quantile of the rows' lengths at which they are shortened; "auto" for the median.
        refine: rounds in which the sums are shrunk towards the model's own predictions; "auto" takes up to 3.
        random_state: seed of the fresh noise by which "auto" chooses. It has no part in privacy.
        readout: how the sums are read: "discriminant"; "ridge", as `Ridge` does; or "auto": the one whose classes for
            all public rows add up to the noised sums more closely, "ridge" if they are much alike. It costs nothing.

    Attributes:
        classes_: names of the classes, sorted.
        certificate_: what the best attacker can learn of a label.
        sums_: the noised sums: all that was taken from the labels.
        arithmetic_: total variation, at most, between the law of the noised sums and normal noise.
        means_: `(components, classes)`, means of the classes in components of spread 1.
        priors_: shares of the classes.
        readout_: "discriminant" or "ridge".

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(2000, centers=3, random_state=0, cluster_std=0.5)
        >>> model = lc.labels.LDA(epsilon=1.0, n_classes=3).fit(X, y)
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
        readout: str = "discriminant",
    ) -> None:
        super().__init__(
            epsilon,
            n_classes,
            classes,
            delta=delta,
            components=components,
            strength=strength,
            clip=clip,
            refine=refine,
            random_state=random_state,
        )
        self.readout = readout

    def _public(self, features: npt.NDArray[Any], classes: int) -> SummedRows:
        checks.choice((*READOUTS, "auto"), readout=self.readout)
        return super()._public(features, classes)

    def _learn(self, public: SummedRows, order: npt.NDArray[np.intp]) -> None:
        super()._learn(public, order)
        scale = np.sqrt(self.sums_.labels)
        self.priors_, self.means_ = self.intercept_, self.coef_ / (scale * self.intercept_)
        self._weights, self._offsets = discriminants(self.coef_, self.priors_, self.sums_.labels, self._doubt)
        self.readout_ = self._nearer(public.made_of, order) if self.readout == "auto" else self.readout

    def _nearer(self, made: WhiteRows, order: npt.NDArray[np.intp]) -> str:
        """The readout that would explain the noised sums, if it were right about every row."""
        told = self.sums_
        sums = told.balanced[1:, order] - np.outer(told.totals[1:], self.priors_)
        ridge, discriminant = (
            float(np.square(sums - made.sums_of(*self._read(one), self.priors_)).sum()) for one in READOUTS
        )
        return READOUTS[discriminant < NEARER * ridge]

    def _read(self, readout: str) -> tuple[Floats, Floats]:
        if readout == "ridge":
            return self.coef_, self.intercept_
        return self._weights, self._offsets

    def _linear(self) -> tuple[Floats, Floats]:
        return self._read(self.readout_)

    def _chances(self, scores: Floats) -> Floats:
        return super()._chances(scores) if self.readout_ == "ridge" else np.asarray(softmax(scores, axis=1))
