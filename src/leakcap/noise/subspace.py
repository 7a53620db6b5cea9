"""The outputs' own subspace: a common centre, a few directions, and each world's coordinates in them.

Releases are rebuilt from coordinates. What a tolerance cuts off is replaced by the centre in every world
alike, so it cannot name the world (docs/proofs/rebuild.md). No `d x d` matrix is ever made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, NumericalError
from leakcap.ground.arrays import Floats

__all__ = ["Subspace", "subspace"]

MEMORY = 2 * 2**30
ALIKE = 10.0  # outputs whose spreads lie within this factor are of one scale


@dataclass(frozen=True, eq=False)
class Subspace:
    """`outputs ~ centre + coordinates @ directions / scale`; directions are orthonormal rows in scaled outputs.

    `scale` is the square root of the utility weights. Directions are kept as combinations of centred outputs
    (`dual`) when the outputs are many, so that a million of them cost nothing more.
    """

    centre: Floats
    scale: Floats
    coordinates: Floats  # (m, r)
    directions: Floats | None  # (r, d)
    dual: Floats | None  # (m, r)
    outputs: Floats
    flat: npt.NDArray[np.bool_]  # outputs that are constant up to rounding
    prior: Floats | None = None  # the chance of each world; None: all alike

    @property
    def rank(self) -> int:
        return int(self.coordinates.shape[1])

    @property
    def variances(self) -> Floats:
        """Variance of each coordinate over worlds (under a uniform prior divided by m)."""
        if self.prior is not None:
            return np.asarray(self.prior @ self.coordinates**2)
        squares: Floats = np.einsum("wr,wr->r", self.coordinates, self.coordinates)
        return squares / len(self.coordinates)

    def lift(self, coordinates: Floats) -> Floats:
        """Displacements from the centre, in outputs: `(r,)` gives `(d,)`, and `(k, r)` gives `(k, d)`."""
        if self.directions is not None:
            return np.asarray(coordinates @ self.directions / self.scale)
        assert self.dual is not None
        mix = (self.dual @ coordinates.T).T
        # The centre's share of the mix is taken out once instead of centring a copy of all outputs.
        return np.where(self.flat, 0.0, mix @ self.outputs - mix.sum(axis=-1, keepdims=True) * self.centre)

    def project(self, value: Floats) -> Floats:
        """Coordinates of one output vector (confidence mode)."""
        return self.project_displacement((value - self.centre) * self.scale)

    def project_displacement(self, scaled: Floats) -> Floats:
        if self.directions is not None:
            return self.directions @ scaled
        assert self.dual is not None
        weighted = np.where(self.flat, 0.0, scaled * self.scale)
        return self.dual.T @ (self.outputs @ weighted - self.centre @ weighted)

    def turned(self, turn: Floats | None) -> Subspace:
        """The same subspace with its directions rotated."""
        if turn is None:
            return self
        return replace(
            self,
            coordinates=self.coordinates @ turn,
            directions=None if self.directions is None else turn.T @ self.directions,
            dual=None if self.dual is None else self.dual @ turn,
        )

    def basis(self) -> Floats:
        """`(d, r)`: what a unit step along each coordinate does to the outputs."""
        if self.directions is not None:
            return self.directions.T / self.scale[:, None]
        assert self.dual is not None
        basis = self.outputs.T @ self.dual - np.outer(self.centre, self.dual.sum(axis=0))
        return np.where(self.flat[:, None], 0.0, basis)


def subspace(
    outputs: Floats, weights: npt.ArrayLike | None = None, memory: int = MEMORY, prior: Floats | None = None
) -> Subspace:
    """The subspace that the outputs of all worlds span around their mean, both under the prior."""
    m, d = outputs.shape
    if np.abs(outputs).max() > 1e150:
        raise NumericalError("the outputs are too large to decompose; rescale them or bound them with clip=")
    centre = outputs.mean(axis=0) if prior is None else prior @ outputs
    low, high = outputs.min(axis=0), outputs.max(axis=0)
    if 0 < (high - low).max() < 1e-140:
        raise NumericalError("the outputs are too small to decompose; rescale them")
    constant = low == high
    centre[constant] = low[constant]
    # Low-order bits of a constant (three values of one mean over 1,024 worlds) are no output: flatten them.
    flat = high - low <= 2.0**-36 * np.maximum(np.abs(low), np.abs(high))
    scale = _scale(weights, outputs, flat, prior)
    stretch = 1.0 if prior is None else np.sqrt(m * prior)[:, None]  # of rows, so that likely ones count for more
    scale_used = np.where(flat, 0.0, scale)
    # Rounding of the outputs themselves: directions below it are noise of the arithmetic.
    rounding = 4 * np.finfo(float).eps * math.sqrt(m * d) * float((np.abs(centre) * scale_used).max())
    if 4 * outputs.nbytes <= memory or d <= 4 * m:
        centred = (outputs - centre) * scale_used
        left, singular, directions = np.linalg.svd(centred * stretch, full_matrices=False)
        kept = singular > max(rounding, singular[0] * max(m, d) * np.finfo(float).eps)
        coordinates = left[:, kept] * singular[kept] if prior is None else centred @ directions[kept].T
        return Subspace(
            centre,
            scale,
            coordinates,
            directions=np.ascontiguousarray(directions[kept]),
            dual=None,
            outputs=outputs,
            flat=flat,
            prior=prior,
        )
    gram = np.zeros((m, m))
    block = max(1, memory // 4 // (8 * m))
    for start in range(0, d, block):
        part = slice(start, start + block)
        centred = (outputs[:, part] - centre[part]) * scale_used[part] * stretch
        gram += centred @ centred.T
    square, left = np.linalg.eigh(gram)
    # Squaring costs half the digits: directions below 1e-7 of the largest are left to the centre.
    kept = square > max(rounding**2, square[-1] * m * np.finfo(float).eps * 8)
    singular = np.sqrt(square[kept][::-1])
    left = left[:, kept][:, ::-1]
    return Subspace(
        centre,
        scale,
        left * singular / stretch,
        directions=None,
        dual=stretch * left / singular,
        outputs=outputs,
        flat=flat,
        prior=prior,
    )


def _scale(weights: npt.ArrayLike | None, outputs: Floats, flat: npt.NDArray[np.bool_], prior: Floats | None) -> Floats:
    d = outputs.shape[1]
    if weights is None or isinstance(weights, str):
        spread = outputs.std(axis=0) if prior is None else np.sqrt(prior @ (outputs - prior @ outputs) ** 2)
        spread = np.where(flat, 0.0, spread)
        moving = spread[spread > 0]
        if weights is None:
            # Outputs on like scales count alike; otherwise units of measurement must not matter.
            weights = "equal" if not len(moving) or moving.max() <= ALIKE * moving.min() else "relative"
        if weights == "equal":
            return np.ones(d)
        if weights == "relative":
            return np.asarray(1 / np.where(spread > 0, spread, 1.0))
        raise InputError("weights must be None, 'equal', 'relative', or a positive number for each output")
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights must hold one positive number for each of the {d} outputs") from None
    if given.size != d:
        raise InputError(f"weights must hold one positive number for each of the {d} outputs, not {given.size}")
    if not np.isfinite(given).all() or given.min() <= 0:
        raise InputError("weights must be positive and finite")
    return np.sqrt(given.ravel())
