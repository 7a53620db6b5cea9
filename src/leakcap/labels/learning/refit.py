"""A base fitted round after round: each time to what its own last predictions make of the observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from leakcap.ground.arrays import Bools, Floats
from leakcap.labels.learning import likelihood as soft
from leakcap.labels.learning.likelihood import Undo

__all__ = ["Chain", "Whole"]

Whole = npt.NDArray[np.int64]
_STILL = 1e-3  # mean change of a probability that counts as none
_FOUND_IN_NOISE = 0.015  # share of pure noise that a base may fit and still predict its own rows
_BELIEF = 0.2  # of what an observation leaves open, that rounds after the first fill by a belief


@dataclass
class Chain:
    """Predictions for all rows by a base fitted to the used ones, round after round."""

    base: Any
    X: Any
    scores: Floats
    used: Bools
    fold: Whole | None = None  # where given, used rows are predicted by models that did not see them
    start: Floats | None = None  # what is known of each row beforehand, in logarithms
    believed: bool = False  # whether that stays where observations say nothing, as what sums of all labels tell does
    model: Any = None
    undo: Undo | None = None

    @property
    def folds(self) -> int:
        return 0 if self.fold is None else int(self.fold.max()) + 1

    def naive(self) -> Floats:
        """Predictions of the first fit, from what is known already. Weights average 1, so penalties count as usual."""
        known = soft.even(self.scores.shape[1]) if self.start is None else self.start
        weights = self._weights(known, 1.0)
        weights /= weights[self.used].sum(axis=1).mean()
        if self.start is not None:
            self.undo = None
            return self._fit(weights)
        self.undo = Undo.of(self.scores[self.used], weights[self.used])
        return self.undo(self._fit(weights))

    def step(self, log_prior: Floats) -> Floats:
        """Predictions after one more round: the base is fitted to what these predictions make of the observations."""
        self.undo = None
        return self._fit(self._weights(log_prior, _BELIEF))

    def _weights(self, log_prior: Floats, share: float) -> Floats:
        """What observations make of these predictions; what they leave open, for a share, is what is believed."""
        weights = soft.informed(self.scores, log_prior)
        if self.believed and self.start is not None:
            weights += share * (1 - weights.sum(axis=1, keepdims=True)) * np.exp(self.start)
        return weights

    def two_steps(self, log_prior: Floats) -> tuple[Floats, Floats]:
        """Two rounds, and predictions carried on in their direction (squared extrapolation).

        Expectation maximisation crawls where most of a label is left to guess. The point it crawls to stays the same;
        a longer step is taken only if it makes the observations likelier than the two rounds did.
        """
        first = self.step(log_prior)
        second = self.step(first)
        reached = self.likelihood(second)
        change, bend = _centred(first - log_prior), _centred(second - 2 * first + log_prior)
        length = float(np.sqrt((change**2).sum() / max(float((bend**2).sum()), 1e-300)))
        while length > 1.01:
            ahead = np.asarray(log_softmax(log_prior + 2 * length * change + length**2 * bend, axis=1))
            if self.likelihood(ahead) >= reached:
                return second, ahead
            length = (length + 1) / 2
        return second, second

    def climb(self, found: Floats, rounds: int) -> tuple[Floats, Floats, tuple[float, ...]]:
        """Predictions after at most so many rounds more, where they lead, and the likelihood after each round.

        Rounds end where predictions come to rest.
        """
        trace, ahead = [self.likelihood(found)], found
        for _ in range(rounds):
            last = found
            found, ahead = (self.step(ahead),) * 2 if self.folds else self.two_steps(ahead)
            trace.append(self.likelihood(found))
            if _change(found, last) < _STILL:
                break
        return found, ahead, tuple(trace)

    def agreed(self, log_prior: Floats) -> Floats:
        """Predictions after a fit to the predicted classes of those rows whose observation favours no other class."""
        self.undo = None
        best = log_prior.argmax(axis=1)
        own = np.take_along_axis(self.scores, best[:, None], axis=1)[:, 0]
        weights = np.zeros_like(self.scores)
        weights[np.arange(len(best)), best] = own >= self.scores.max(axis=1) - 1e-6
        return self._fit(weights)

    def likelihood(self, log_prior: Floats) -> float:
        return float(soft.marginal(self.scores[self.used], log_prior[self.used]).mean())

    def is_flexible(self) -> bool:
        """Whether the base finds much to fit in weights that were shuffled between rows: in nothing but noise."""
        classes = self.scores.shape[1]
        weights = soft.informed(np.random.RandomState(0).permutation(self.scores), soft.even(classes))
        if not weights.any():
            return False  # no observation says anything: there is no noise to fit
        weights /= weights.sum(axis=1).mean()
        fit = np.exp(soft.predicted(soft.fit_weighted(self.base, self.X, weights), self.X, classes))
        whole = weights.sum(axis=1, keepdims=True)
        target = weights / np.maximum(whole, 1e-12)
        left, all_of_it = (float((whole * (target - p) ** 2).sum()) for p in (fit, weights.sum(axis=0) / weights.sum()))
        return left < (1 - _FOUND_IN_NOISE) * all_of_it

    def _fit(self, weights: Floats) -> Floats:
        classes = self.scores.shape[1]
        self.model = _fitted(self.base, self.X, weights=weights, rows=self.used, near=self.model)
        found = soft.predicted(self.model, self.X, classes)
        for k in range(self.folds):
            here = self.used & (self.fold == k)
            if not here.any():
                continue
            other = _fitted(self.base, self.X, weights=weights, rows=self.used & ~here, near=None)
            found[here] = soft.predicted(other, _rows(self.X, here), classes)
        return found


def _fitted(base: Any, X: Any, weights: Floats, rows: Bools, near: Any) -> Any:
    if rows.all():
        return soft.fit_weighted(base, X, weights, near)
    return soft.fit_weighted(base, _rows(X, rows), weights[rows], near)


def _rows(X: Any, rows: Bools) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, np.flatnonzero(rows))


def _change(one: Floats, other: Floats) -> float:
    return float(np.abs(np.exp(one) - np.exp(other)).mean())


def _centred(table: Floats) -> Floats:
    return np.asarray(table - table.mean(axis=1, keepdims=True))
