"""Naive Bayes from noised counts: public bins of every column, counted by secret class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.statistics.base import SummedRows, SumsClassifier
from leakcap.labels.statistics.shrink import shares_of

__all__ = ["NaiveBayes"]

_RAREST = 1e-3  # of a bin's share over all classes: no bin rules a class out


class NaiveBayes(SumsClassifier):
    """Naive Bayes from one noised table of counts: how often every bin of every column occurs in every class.

    Columns with few values are taken as categories, others are cut at public quantiles. How often a bin occurs in all
    classes together is public; counts are shrunk to what that would be without any connection, column by column, as
    far as they are noise.

    Guarantee: `fit` draws once; everything in this object is computed from features and noised counts, and what the
    certificate says about a label holds whatever is published of it.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead. Public: never taken from the labels.
        delta: probability with which epsilon may fail, above 0 and below 1.
        bins: most bins of a column, at least 2.

    Attributes:
        classes_: names of the classes, sorted.
        certificate_: what the best attacker can learn of a label.
        sums_: the noised counts: all that was taken from the labels.
        arithmetic_: total variation, at most, between the law of the noised counts and normal noise.
        edges_: for every column, the values at which a new bin starts.
        priors_: shares of the classes.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(2000, centers=3, random_state=0, cluster_std=0.5)
        >>> model = lc.labels.NaiveBayes(epsilon=1.0, n_classes=3).fit(X, y)
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
        bins: int = 8,
    ) -> None:
        super().__init__(epsilon, n_classes, classes, delta=delta)
        self.bins = bins

    def _public(self, features: npt.NDArray[Any], classes: int) -> SummedRows:
        most = checks.count(at_least=2, bins=self.bins)
        self.edges_ = [_edges(column, most) for column in features.T]
        self._starts = np.cumsum([0, *(len(edges) + 1 for edges in self.edges_)])
        rows = np.zeros((len(features), int(self._starts[-1])), dtype=np.float32)
        rows[np.arange(len(rows))[:, None], self._places(features)] = 1.0
        return SummedRows(rows, float(np.sqrt(features.shape[1])), (("bins", float(rows.shape[1])),))

    def _places(self, features: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """For every row and column, the place of its bin among all bins."""
        found = [
            np.searchsorted(edges, column, side="right") for edges, column in zip(self.edges_, features.T, strict=True)
        ]
        return np.asarray(np.stack(found, axis=1) + self._starts[:-1])

    def _learn(self, public: SummedRows, order: npt.NDArray[np.intp]) -> None:
        told, count = self.sums_, len(order)
        counts, everybody, variance = told.balanced[:, order], told.totals.sum(), told.deviation**2
        # Every column counts every label once, so their mean is the best count of a class.
        self.priors_ = shares_of(counts.sum(axis=0) / everybody, variance * len(counts) / everybody**2)
        alone = np.outer(told.totals, self.priors_)
        rest = counts - alone
        for start, end in zip(self._starts[:-1], self._starts[1:], strict=True):
            signal = max(float(np.square(rest[start:end]).mean()) - variance * (1 - 1 / count), 0.0)
            rest[start:end] *= signal / (signal + variance)
        found = np.maximum(alone + rest, _RAREST * alone)
        for start, end in zip(self._starts[:-1], self._starts[1:], strict=True):
            found[start:end] /= found[start:end].sum(axis=0)
        self._log_chances = np.log(found)

    def _scores(self, features: npt.NDArray[Any]) -> Floats:
        found = np.tile(np.log(self.priors_), (len(features), 1))
        for places in self._places(features).T:
            found += self._log_chances[places]
        return found

    def _plain(self) -> dict[str, Any]:
        bins = zip(self._starts[:-1], self._starts[1:], strict=True)
        return {
            "edges": [edges.tolist() for edges in self.edges_],
            "log_chances": [self._log_chances[start:end].tolist() for start, end in bins],
            "log_shares": np.log(self.priors_).tolist(),
        }

    def _chances(self, scores: Floats) -> Floats:
        return np.asarray(softmax(scores, axis=1))


def _edges(column: npt.NDArray[Any], most: int) -> Floats:
    """Where a new bin starts: at every value but the least, or at quantiles where there are many values."""
    values = np.unique(column)
    if len(values) > most:
        values = np.unique(np.quantile(column, np.arange(most) / most, method="higher"))
    return np.asarray(values[1:], dtype=np.float64)
