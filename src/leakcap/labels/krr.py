"""k-ary randomised response: the label itself, or any other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from leakcap.labels.chances import ONE, Chances, below, count_up
from leakcap.labels.mechanism import Floats, Mechanism
from leakcap.proofs import proves

__all__ = ["KRR", "response"]


def response(epsilon: float, n: int) -> Chances:
    """Whether a label among `n` is kept (0) or replaced by one of the others (1)."""
    others = n - 1
    replaced = count_up(others * np.exp(-epsilon) / (1 + others * np.exp(-epsilon))) if others else 0
    return Chances([ONE - replaced, replaced])


@proves("label-mechanisms")
class KRR(Mechanism):
    """The label is kept with probability `e^epsilon / (e^epsilon + C - 1)`, else any other one takes its place.

    Guarantee: epsilon-DP for the label. What leaves is an ordinary label: any file or program can hold it. Best
    where `e^epsilon` exceeds the number of classes.

    >>> KRR(epsilon=3.0, classes=["no", "yes"]).privatize(["yes", "no"]).shape
    (2,)
    """

    name = "k-ary randomised response"

    def __init__(self, epsilon: float, n_classes: int | None = None, classes: Sequence[Any] | None = None) -> None:
        super().__init__(epsilon, n_classes, classes)
        self.chances = response(self._working_epsilon, self.n_classes)

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        # Every label draws its replacement, needed or not: the time of a call does not tell whether it was.
        found = self.chances.draw(len(codes)).astype(np.int64)
        found *= 1 + below(self.n_classes - 1, len(codes))
        found += codes
        found %= self.n_classes
        return self._classes.of(found)

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`epsilon` at the class that was observed."""
        codes = self._classes.seen(observed)
        score = np.zeros((len(codes), self.n_classes), dtype=np.float32)
        score[np.arange(len(codes)), codes] = self.epsilon
        return score

    def _information(self, prior: Floats) -> Floats:
        kept, other = self._kept_and_other
        seen = other + (kept - other) * prior
        given = xlogy(kept, kept) + xlogy(1 - kept, other)  # minus the entropy of the observation, given the label
        return np.asarray(np.maximum(given - xlogy(seen, seen).sum(axis=1), 0))

    def _guesses(self, prior: Floats) -> Floats:
        kept, other = self._kept_and_other
        # At its own class the label was kept; elsewhere the likeliest class is the best guess, if likelier still.
        return np.asarray(np.maximum(prior * kept, prior.max(axis=1, keepdims=True) * other).sum(axis=1))

    @property
    def _kept_and_other(self) -> tuple[float, float]:
        """Probability of the label itself, and of any one other class."""
        kept, replaced = self.chances.probabilities
        return float(kept), float(replaced) / (self.n_classes - 1)

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("kept", float(self.chances.probabilities[0])),)
