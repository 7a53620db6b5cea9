"""The average over blocks of what teachers say, asked in steps: each about the last, and cut closer to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.estimators.distilled_model import shrunk
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.ground.arrays import Bools, Floats
from leakcap.sessions.block_vectors import BlockVectors
from leakcap.sessions.fitting import Fitting

__all__ = ["BlockAverage", "noise_of_mean"]

SPREAD_SHARE = 0.02  # of a step, for how far blocks are from its centre
LEAST_SPREAD = 0.02
QUIET = 0.2  # noise that one step would leave in the votes of a row, below which several are better
# Shares of the steps, and where vectors are cut: so many times their root mean square distance from the centre.
ONE_STEP, STEPS = ((1.0,), 1.0), ((0.15, 0.25, 0.6), 0.7)


def noise_of_mean(square: float, blocks: int) -> float:
    """Deviation of the noise in the mean vote over all public rows, at most, for so much of a clock."""
    return math.sqrt(2 / square) / blocks


@dataclass(frozen=True, eq=False)
class BlockAverage:
    """Asks for the average of vectors of blocks."""

    fitting: Fitting
    teachers: TaughtBlocks
    public: bool

    def asked(self, share: float) -> Floats:
        """`(directions, classes)`: the average, as far as it stands out of the noise."""
        classes, directions = self.teachers.classes, self.teachers.basis.shape[1]
        noise = noise_of_mean(self.fitting.square * share, self.teachers.blocks) * math.sqrt(directions)
        shares, times = ONE_STEP if noise > QUIET else STEPS
        centre = np.zeros(directions * classes)
        for step, part in enumerate(shares):
            radius = times * self._spread(centre, share * part * SPREAD_SHARE, step)
            vectors = _about(self.teachers.vectors, centre)
            said, noise = self._mean(
                vectors, len(centre), radius, share=share * part * (1 - SPREAD_SHARE), step=f"votes {step}"
            )
            centre = centre + _heard(said.reshape(directions, classes), noise).ravel()
        return centre.reshape(directions, classes)

    def _spread(self, centre: Floats, share: float, step: int) -> float:
        """Root mean square distance of blocks from the centre, about; none is further than shares of votes allow."""
        furthest = math.sqrt(len(self.teachers.asked) * (1 - 1 / self.teachers.classes))

        def squares(mask: Bools) -> Floats:
            apart = np.linalg.norm(self.teachers.vectors(mask) - centre, axis=1, keepdims=True) / furthest
            return np.asarray(np.minimum(apart**2, 1.0) - 0.5)

        found, _ = self._mean(squares, 1, 0.5, share=share, step=f"spread {step}")
        return furthest * math.sqrt(min(max(float(found[0]) + 0.5, LEAST_SPREAD), 1.0))

    def _mean(
        self, vectors: Callable[[Bools], Floats], numbers: int, radius: float, *, share: float, step: str
    ) -> tuple[Floats, float]:
        asked = BlockVectors(vectors, self.fitting.units.count, numbers, radius, public=self.public)
        noised = self.fitting.ask(asked, share, step=step, blocks=self.teachers.blocks)
        return noised.value / self.teachers.blocks, float(noised.deviations[0]) / self.teachers.blocks


def _about(vectors: Callable[[Bools], Floats], centre: Floats) -> Callable[[Bools], Floats]:
    return lambda mask: vectors(mask) - centre


def _heard(said: Floats, noise: float) -> Floats:
    """What remains in every direction after noise of this size is taken off (James and Stein)."""
    said = said - said.mean(axis=1, keepdims=True)  # shares of one vote: the rest is noise
    return said * shrunk((said**2).sum(axis=1, keepdims=True), (said.shape[1] - 1) * noise**2)
