"""Linear models in coordinates in which equal noise does equal harm to predictions.

A model is described by its score at the pool's mean, and by how its scores move along directions in which the pool
has variance one. Noise of a given size then moves scores equally, whichever coordinate it falls on, for people like
those of the pool. A coefficient may be far off without harm if its column hardly varies beside the others. On Dry Bean
this helps a support vector machine as much as half the noise would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats

__all__ = ["Coordinates"]

NOTHING = 1e-12  # share of the largest variance below which a direction is rounding


@dataclass(frozen=True, eq=False)
class Coordinates:
    """From coefficients to moves of the score and back; made from the whole pool."""

    centre: Floats
    directions: Floats  # (r, d), orthonormal
    spread: Floats  # (r,): the pool's standard deviation along each

    @staticmethod
    def of(features: Floats) -> Coordinates:
        """The coordinates of a pool: its mean, and its directions of variance above rounding."""
        centre = features.mean(axis=0)
        apart = features - centre
        with np.errstate(all="ignore"):
            scatter = apart.T @ apart / len(apart)
        variances, turned = np.linalg.eigh(scatter)
        kept = variances > NOTHING * max(variances[-1], np.finfo(float).tiny)
        return Coordinates(centre, turned[:, kept].T, np.sqrt(variances[kept]))

    def encode(self, coefficients: Floats, intercept: Floats) -> Floats:
        """`(..., r + 1)`: moves of the score, then the score at the pool's mean."""
        moves = coefficients @ (self.directions.T * self.spread)
        return np.concatenate([moves, (intercept + coefficients @ self.centre)[..., None]], axis=-1)

    def decode(self, numbers: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercept."""
        coefficients = (numbers[..., :-1] / self.spread) @ self.directions
        return coefficients, numbers[..., -1] - coefficients @ self.centre
