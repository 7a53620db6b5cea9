"""k-ary randomised response: the label itself, or any other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.integer_law import ONE, Chances, below, count_up

__all__ = ["KRR", "response"]


def response(epsilon: float, n: int) -> Chances:
    """The law of whether a label among `n` is kept (0) or replaced by one of the others (1)."""
    others = n - 1
    replaced = count_up(others * np.exp(-epsilon) / (1 + others * np.exp(-epsilon))) if others else 0
    return Chances([ONE - replaced, replaced])


@proves("label-mechanisms")
class KRR(Mechanism):
    """k-ary randomised response.

    The label is kept with probability `e^epsilon / (e^epsilon + C - 1)`; otherwise any other one takes its place.

    Guarantee: epsilon-DP for the label. What leaves is an ordinary label: any file or program can hold it. Best
    where `e^epsilon` exceeds the number of classes.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.

    Raises:
        InputError: epsilon is too small, or the classes are missing or repeat.

    Examples:
        >>> KRR(epsilon=3.0, classes=["no", "yes"]).privatize(["yes", "no"]).shape
        (2,)
    """

    name = "k-ary randomised response"

    def __init__(self, epsilon: float, n_classes: int | None = None, classes: Sequence[Any] | None = None) -> None:
        super().__init__(epsilon, n_classes, classes)
        self.chances = response(self._working_epsilon, self.n_classes)

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        # Every label draws its replacement, needed or not: the time of a call does not reveal whether it was needed.
        found = self.chances.draw(len(codes)).astype(np.int64)
        found *= 1 + below(self.n_classes - 1, len(codes))
        found += codes
        found %= self.n_classes
        return self._classes.of(found)

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`epsilon` at the class that was observed, 0 elsewhere.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
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
        # The best guess is the observed class (the label was kept), or the likeliest class where that is likelier.
        return np.asarray(np.maximum(prior * kept, prior.max(axis=1, keepdims=True) * other).sum(axis=1))

    @property
    def _kept_and_other(self) -> tuple[float, float]:
        """Probability of the label itself, and of any one other class."""
        kept, replaced = self.chances.probabilities
        return float(kept), float(replaced) / (self.n_classes - 1)

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("kept", float(self.chances.probabilities[0])),)
