"""A proposed covariance of all outputs, seen along the directions in which the outputs move."""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise.leverage import spectrum
from leakcap.noise.subspace import Subspace

__all__ = ["inside", "roots_per_world"]

NOTHING = 1e-12  # of the largest variance: less is none
SINGULAR = 1e-10
MAX_NUMBERS = 2**27
DENSE = 4096  # outputs up to which d x d matrices are looked at

NOT_COVERED = (
    "the proposed covariance is singular where the outputs move: along some direction worlds differ and there is no "
    "noise, so the answer would name its world. Add noise there"
)


@proves("proposed-noise")
def inside(space: Subspace, covariance: Floats) -> tuple[Floats, Floats]:
    """`(variances, turn)` of the noise along the outputs' own directions, as far as noise outside does not tell it.

    The part of it that follows from noise outside hides nothing from whoever sees both, and is not counted.
    """
    own, other = _split(space)
    scaled = _checked(covariance[None], space.scale)[0]
    within, across, beyond = own.T @ scaled @ own, own.T @ scaled @ other, other.T @ scaled @ other
    if len(beyond):
        size, turn = spectrum(beyond)
        there = size > NOTHING * max(float(np.abs(scaled).max()), 1e-300)
        along = across @ turn[:, there]
        within = within - (along / size[there]) @ along.T
    variances, turn = spectrum((within + within.T) / 2)
    if not variances[0] > SINGULAR * variances[-1]:
        raise InputError(NOT_COVERED)
    return variances, turn


@proves("proposed-noise")
def roots_per_world(space: Subspace, covariances: Floats) -> tuple[Floats, Floats]:
    """Coordinates of all worlds, and a lower triangular root of each world's covariance, wherever there is noise.

    Noise that depends on the world tells about it outside of the outputs' own directions, too: these count.
    """
    if covariances.size > MAX_NUMBERS:
        raise InputError("a covariance for every world takes too much memory here: propose one for all, or a density")
    own, other = _split(space)
    scaled = _checked(covariances, space.scale)
    mean = scaled.mean(axis=0)
    basis = own
    if other.shape[1]:
        size, turn = spectrum(other.T @ mean @ other)
        noisy = size > NOTHING * max(float(np.abs(mean).max()), 1e-300)
        basis = np.hstack([own, other @ turn[:, noisy]])
    within = basis.T @ scaled @ basis
    sizes = np.linalg.eigvalsh(within)
    if not (sizes[:, 0] > SINGULAR * sizes[:, -1].max()).all():
        raise InputError(NOT_COVERED + "; in every world, and wherever any world has noise")
    points = np.zeros((len(covariances), basis.shape[1]))
    points[:, : space.rank] = space.coordinates
    return points, np.asarray(np.linalg.cholesky(within), dtype=np.float64)


def _split(space: Subspace) -> tuple[Floats, Floats]:
    """Orthonormal columns along which outputs (scaled by the roots of their weights) move, and all others."""
    if len(space.centre) > DENSE:
        raise InputError(f"covariances are verified for up to {DENSE:,} outputs")
    own = space.basis() * space.scale[:, None]
    whole = np.linalg.qr(own, mode="complete")[0]
    return own, whole[:, own.shape[1] :]


def _checked(covariances: Floats, scale: Floats) -> Floats:
    """Scaled, symmetric and nowhere negative."""
    size = float(np.abs(covariances).max())
    if not np.abs(covariances - covariances.transpose(0, 2, 1)).max() <= 1e-9 * size:
        raise InputError("the proposed covariance must be symmetric")
    scaled = covariances * scale[:, None] * scale
    scaled = (scaled + scaled.transpose(0, 2, 1)) / 2
    sizes = np.linalg.eigvalsh(scaled)
    if not (sizes[:, 0] >= -1e-9 * np.maximum(sizes[:, -1], 0.0)).all() or size == 0:
        raise InputError("the proposed covariance must be positive: along some direction it has a negative variance")
    return np.asarray(scaled)
