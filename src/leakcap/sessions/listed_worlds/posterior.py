"""What the public history says about the secret: a weight for every world.

A weight is a product of cell masses, kept as a fraction and a power of two: it neither underflows nor loses more than
two roundings an answer, so that its relative error is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.sessions.listed_worlds.cells import Channel

__all__ = ["Posterior"]

UNIT = 2.0**-53  # of rounding, relative
SPARE = 64  # roundings beside sums: logarithms, the normal integral, weights


@dataclass(frozen=True, eq=False)
class Posterior:
    """Weights of all worlds after some answers, up to a common factor: `fraction * 2**power`.

    Attributes:
        fraction: `(worlds,)`, 0 or from 1/2 to 1.
        power: `(worlds,)`, whole numbers.
        answers: how many cells the weights were multiplied by.
    """

    fraction: Floats
    power: npt.NDArray[np.int64]
    answers: int = 0

    @classmethod
    def uniform(cls, worlds: int) -> Posterior:
        """Before any answer."""
        return cls(np.full(worlds, 0.5), np.ones(worlds, dtype=np.int64))

    def after(self, cells: Channel, cell: int) -> Posterior:
        """With one more answer."""
        fraction, moved = np.frexp(self.fraction * cells.masses()[:, cell])
        power = self.power + moved
        alive = fraction > 0
        if not alive.any():
            raise NumericalError("this answer is impossible in every world: the stored history is damaged")
        return Posterior(fraction, np.where(alive, power - power[alive].max(), 0), self.answers + 1)

    def weights(self) -> Floats:
        """Probabilities of the worlds, up to a factor next to 1."""
        alive = self.fraction > 0
        power = self.power - self.power[alive].max()
        plain = np.where(alive, np.ldexp(self.fraction, np.maximum(power, -1100).astype(np.intc)), 0.0)
        return plain / plain.sum()

    def rounding(self, cells: Channel) -> float:
        """How far sums of `weights` times cell masses over worlds and cells are off, relative, at most.

        All terms are positive, so the error of a sum is that of its terms and one rounding a term, in any order.
        """
        m, k = cells.counts.shape
        return (m + k + 3 * self.answers + SPARE) * UNIT
