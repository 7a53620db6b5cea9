"""Unary bits: the one-hot vector with every bit flipped at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from leakcap.errors import InputError
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.coordinates import CoordinateMechanism
from leakcap.labels.mechanisms.integer_law import ONE, Chances, count_up

__all__ = ["UnaryBits"]


@proves("label-mechanisms")
class UnaryBits(CoordinateMechanism):
    """The one-hot vector with every bit flipped with probability `1/(1 + e^(epsilon/2))`.

    Guarantee: epsilon-DP for the label. At equal epsilon it says more about the label than `Laplace` under every prior,
    since a Laplace-noised bit is a post-processing of a flipped bit.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.
        optimised: True keeps a true bit with probability 1/2 and sets a false one with `1/(1 + e^epsilon)`. Shares of
            rare classes are then estimated with less variance, but an observation says less about its label.

    Raises:
        InputError: epsilon is too small, or the classes are missing or repeat.

    Examples:
        >>> bits = UnaryBits(epsilon=2.0, n_classes=4).privatize([0, 3])
        >>> bits.shape, bits.dtype
        ((2, 4), dtype('bool'))
    """

    name = "unary bits"

    def __init__(
        self,
        epsilon: float,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        *,
        optimised: bool = False,
    ) -> None:
        super().__init__(epsilon, n_classes, classes)
        self.optimised = bool(optimised)
        self.values = np.array([False, True])
        if self.optimised:
            false_set = count_up(float(expit(-self._working_epsilon)))
            self.zero, self.one = Chances([ONE - false_set, false_set]), Chances([ONE // 2, ONE // 2])
        else:
            flip = min(count_up(float(expit(-self._working_epsilon / 2))), ONE // 2)
            self.zero = Chances([ONE - flip, flip])
            self.one = self.zero.mirrored()

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`epsilon` where the bit is set, 0 elsewhere.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
        given = self._table(observed)
        if not ((given == 0) | (given == 1)).all():
            raise InputError("observed must hold bits, 0 or 1, as privatize() gives")
        score = given.astype(np.float32)
        score *= np.float32(self.epsilon)
        return score

    def _settings(self) -> tuple[tuple[str, float], ...]:
        false_set, true_set = float(self.zero.probabilities[1]), float(self.one.probabilities[1])
        return (("false_bit_set", false_set), ("true_bit_set", true_set))
