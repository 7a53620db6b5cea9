"""Noise in the outputs' own subspace, and the one place where a released vector is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.noise.entropy import Randomness
from leakcap.noise.laws import NORMAL, Law
from leakcap.noise.subspace import Subspace

__all__ = ["Noise", "released_vector"]

DENSE = 4096  # outputs up to which d x d matrices are made on request


@dataclass(frozen=True, eq=False, repr=False)
class Noise:
    """Noise along the directions of a subspace, normal unless another law is given; custodian side.

    `floor` is the deviation in directions that carry nothing (and the least in those that do), in outputs
    scaled by the square roots of their utility weights.
    """

    space: Subspace
    deviations: Floats
    floor: float = 0.0
    law: Law = NORMAL

    @property
    def factor(self) -> Floats:
        """`(d, r)` with covariance = `factor @ factor.T`."""
        inside = self.space.basis() * self.deviations
        if not self.floor:
            return inside
        d = len(self.space.centre)
        if d > DENSE:
            raise InputError(f"the factor of noise with a floor is made for up to {DENSE:,} outputs")
        scaled = self.space.basis() * self.space.scale[:, None]
        outside = np.linalg.qr(scaled, mode="complete")[0][:, self.space.rank :] if self.space.rank else np.eye(d)
        return np.hstack([inside, self.floor * outside / self.space.scale[:, None]])

    def covariance(self) -> Floats:
        """`(d, d)`, for up to 4,096 outputs."""
        if len(self.space.centre) > DENSE:
            raise InputError(f"the covariance is made for up to {DENSE:,} outputs; use factor (d, r)")
        factor = self.factor
        return factor @ factor.T

    @property
    def output_deviations(self) -> Floats:
        """Standard deviation of the noise in each output."""
        rank, outputs = self.space.rank, len(self.space.centre)
        total, inside = np.zeros(outputs), np.zeros(outputs)
        block = max(1, min(64, 2**22 // max(outputs, 1)))  # directions at a time: outputs may be many
        for start in range(0, rank, block):
            steps = np.eye(min(block, rank - start), rank, start)
            unit = self.space.lift(steps) ** 2
            total += self.deviations[start : start + len(steps)] ** 2 @ unit
            inside += unit.sum(axis=0) * self.space.scale**2
        if self.floor:
            total += self.floor**2 * np.maximum(1 - inside, 0) / self.space.scale**2
        return np.sqrt(total)

    @property
    def std(self) -> float:
        """Total root-mean-square noise: the root of the sum of variances over all outputs."""
        return float(np.sqrt((self.output_deviations**2).sum()))

    def __repr__(self) -> str:
        return f"Noise(outputs={len(self.space.centre)}, directions={self.space.rank}, std={self.std:.4g})"


@proves("rebuild", "sampler")
def released_vector(
    noise: Noise, coordinates: Floats, step: float, randomness: Randomness, *, whole: Floats | Ints | float = 0.0
) -> Floats:
    """One released vector for a world with these coordinates, and `whole` steps of the grid beside them.

    The noisy coordinates are rounded to a grid first; everything after that depends on the grid point alone,
    so neither low-order bits nor directions outside the subspace can tell the world.
    """
    space = noise.space
    whitened = coordinates / noise.deviations
    point = np.rint((whitened + noise.law.draw(space.rank, randomness)) / step) + whole
    value = space.centre + space.lift(point * step * noise.deviations)
    if noise.floor:
        free = noise.floor * randomness.normals(len(space.centre))
        inside = space.lift(space.project_displacement(free)) * space.scale
        value = value + (free - inside) / space.scale
    return np.asarray(value)
