"""Laplace noise on the one-hot vector, on a grid: the mechanism of ALIBI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.coordinates import CoordinateMechanism
from leakcap.labels.mechanisms.integer_law import Chances

__all__ = ["Laplace"]

STEPS = 256  # grid cells from 0 to 1


@proves("label-mechanisms")
class Laplace(CoordinateMechanism):
    """Laplace noise of scale `2/epsilon` on every entry of the one-hot vector, rounded to a grid and cut to [0, 1].

    The cut loses nothing: of a value outside [0, 1] only the side says anything about the label.

    Guarantee: epsilon-DP for the label, by whole-number weights of the 257 values an entry can take. `UnaryBits`
    says more about the label at the same epsilon; this one is here to compare with the literature.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.

    Raises:
        InputError: epsilon is too small, or the classes are missing or repeat.

    Examples:
        >>> Laplace(epsilon=1.0, n_classes=3).privatize([0, 1, 2]).shape
        (3, 3)
    """

    name = "laplace"

    def __init__(self, epsilon: float, n_classes: int | None = None, classes: Sequence[Any] | None = None) -> None:
        super().__init__(epsilon, n_classes, classes)
        x = self._working_epsilon / 2
        decay = np.exp(-x / STEPS)  # of the two-sided geometric law, per cell
        # Exponents are taken directly: powers of a rounded decay would be off by 256 roundings.
        law = -np.expm1(-x / STEPS) / (1 + decay) * np.exp(-x * (np.arange(STEPS + 1) / STEPS))
        law[0] = 1 / (1 + decay)  # all that falls to 0 or below
        law[-1] = np.exp(-x) / (1 + decay)  # to 1 or above
        self.zero = Chances.rounded(law.tolist())
        self.one = self.zero.mirrored()
        self.values = (np.arange(STEPS + 1) / STEPS).astype(np.float32)

    @property
    def scale(self) -> float:
        """Scale of the noise on each entry: `2/epsilon`."""
        return 2 / self.epsilon

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`clip(2 o - 1, -1, 1) / scale`, for an entry `o` of the observation.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
        score = self._table(observed).astype(np.float32)
        score *= 2
        score -= 1
        np.clip(score, -1, 1, out=score)
        score /= np.float32(self.scale)
        return score

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("scale", self.scale), ("grid_step", 1 / STEPS))
