"""Logistic regression by sums alone: of the labels its likelihood holds nothing but sums of rows by class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from leakcap.ground.arrays import Floats
from leakcap.labels.statistics.white_rows import WhiteRows

__all__ = ["LogisticSums", "LogisticWeights"]

_TURNS, _STEPS = 2, 10  # of offsets and weights; of the search for weights within each
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class LogisticWeights:
    """A logistic model of components: a row and an offset for every class.

    Args:
        weights: `(components, classes)`.
        offsets: `(classes,)`.
    """

    weights: Floats
    offsets: Floats


@dataclass(frozen=True)
class LogisticSums:
    """Public rows, and the shares of the classes: with sums by class they make a likelihood.

    A row that was shortened counts as far as it was kept, so that the sums of shortened rows are all that is needed:
    the log-likelihood of labels is the inner product of weights and sums, and of offsets and the classes' counts, less
    what makes chances of scores. Counts of kept rows are not summed: the classes' shares of all of them stand for them.

    Args:
        made: of the rows that were summed.
        shares: of the classes; the offsets are such that predictions have them over all rows.
    """

    made: WhiteRows
    shares: Floats

    @cached_property
    def _rows(self) -> npt.NDArray[np.float32]:
        """Components of spread 1."""
        return np.asarray(self.made.white * np.float32(self._root))

    @property
    def _root(self) -> float:
        return float(np.sqrt(len(self.made.white)))

    def fit(self, sums: Floats, penalty: float, start: LogisticWeights | None = None) -> LogisticWeights:
        """The likeliest weights, with a penalty on their squares.

        Args:
            sums: of weighted and shortened components by class, the classes' shares of all rows among them.
            penalty: on squared weights, beside what all rows say of a class at most.
            start: what to start from.
        """
        wanted, shape = self._of_spread_1(sums), sums.shape
        weights = np.zeros(shape) if start is None else start.weights / self._root
        offsets = np.log(self.shares) if start is None else start.offsets
        kept, strength = self.made.kept[:, None], penalty * float(self.made.kept.sum()) / shape[1]

        def loss(flat: Floats) -> tuple[float, Floats]:
            found = flat.reshape(shape)
            scores = self._rows @ found.astype(np.float32) + offsets.astype(np.float32)
            most = scores.max(axis=1, keepdims=True)
            chances = np.exp(scores - most)
            total = chances.sum(axis=1, keepdims=True)
            chances *= kept / total
            value = float((kept * (np.log(total) + most)).sum(dtype=np.float64))
            slope = self._rows.T @ chances - wanted + strength * found
            return value - float((found * (wanted - strength / 2 * found)).sum()), slope.astype(np.float64).ravel()

        for _ in range(_TURNS):
            weights = minimize(loss, weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
            weights = weights.reshape(shape)
            offsets = self._levelled(self._rows @ weights.astype(np.float32), offsets)
        return LogisticWeights(weights * self._root, offsets)

    def log_likelihood(self, model: LogisticWeights, sums: Floats) -> float:
        """Of labels with these sums; linear in them, so that independent noise leaves its mean as it is."""
        weights = model.weights / self._root
        scores = self._rows @ weights.astype(np.float32) + model.offsets.astype(np.float32)
        told = float((weights * self._of_spread_1(sums)).sum())
        kept = self.made.kept.astype(np.float64)
        return told + float(model.offsets @ self.shares * kept.sum() - kept @ logsumexp(scores, axis=1))

    def doubt(self, model: LogisticWeights, other: LogisticWeights, deviation: float) -> float:
        """Deviation of the difference between two log-likelihoods, by noise of this deviation on every sum.

        Sums over classes are known: noise has been taken out of them.
        """
        apart = (model.weights - other.weights) / self.made.weights[:, None]
        return deviation * float(np.linalg.norm(apart - apart.mean(axis=1, keepdims=True)))

    def _of_spread_1(self, sums: Floats) -> Floats:
        return np.asarray(sums / self.made.weights[:, None] * self._root)

    def _levelled(self, scores: npt.NDArray[np.float32], offsets: Floats) -> Floats:
        """Offsets by which predictions have the classes' shares: the constant column is summed whole, not shortened."""
        for _ in range(10):
            said = softmax(scores + offsets.astype(np.float32), axis=1).mean(axis=0, dtype=np.float64)
            offsets = offsets + np.log(self.shares / np.maximum(said, _LEAST_SHARE))
        return np.asarray(offsets)
