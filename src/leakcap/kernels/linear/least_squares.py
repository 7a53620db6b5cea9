"""Ridge regression and least squares in all worlds at once.

The normal equations square the condition of the data. They are therefore made in coordinates in which the pool has
covariance one (from its singular values, which squares nothing): a world is a sample of the pool, so its equations are
nearly those of an identity and no digits are lost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine
from leakcap.kernels.moments.blocks import bytes_a_world, in_blocks
from leakcap.kernels.moments.entry import moments
from leakcap.kernels.rows import table_of
from leakcap.worlds import Units, Worlds

__all__ = ["ridge"]

SINGULAR = 1e-7  # a direction that has less than this share of the pool's variance in a world, beside the others


def ridge(
    features: npt.ArrayLike,
    targets: npt.ArrayLike,
    worlds: Worlds,
    units: Units | None = None,
    *,
    alpha: float = 1.0,
    memory: int = Machine().memory,
) -> Floats:
    """`(m, d + 1)`, or `(m, k, d + 1)` for k targets: coefficients, then the intercept, which is not penalised.

    `alpha=0` is least squares; of several solutions it takes the one with the smallest coefficients. A world without
    rows gets zeros. Equations take the square of the columns in each world: so many worlds are taken together as fit
    into `memory`, in bytes.
    """
    checks.nonnegative(alpha=alpha)
    table, wanted = table_of(features, worlds, units), table_of(_as_columns(targets), worlds, units)
    centre, level = table.mean(axis=0), wanted.mean(axis=0)
    basis = basis_of(table - centre)
    rank = basis.shape[1]
    turned = np.hstack([(table - centre) @ basis, wanted - level])

    def solved(some: Worlds) -> Floats:
        found = moments(turned, some, units)
        left = found.scatter[:, :rank, :rank] + alpha * (basis.T @ basis)
        apart = _singular(left) | (found.rows[:, 0] == 0)
        left[apart] = np.eye(rank)
        turned_weights = np.linalg.solve(left, found.scatter[:, :rank, rank:])
        weights = basis @ turned_weights  # (m, d, k)
        predicted = (found.mean[:, None, :rank] @ turned_weights)[:, 0] + centre @ weights  # without the intercept
        intercept = level + found.mean[:, rank:] - predicted
        for world in np.flatnonzero(apart).tolist():
            rows = some.mask(world) if units is None else units.rows_in(some.mask(world))
            weights[world], intercept[world] = fit_alone(table[rows], wanted[rows], alpha)
        return np.concatenate([weights.transpose(0, 2, 1), intercept[:, :, None]], axis=2)

    answer = np.empty((worlds.m, wanted.shape[1], table.shape[1] + 1))
    for numbers, some in in_blocks(worlds, memory // bytes_a_world(turned.shape[1])):
        answer[numbers] = solved(some)
    return answer[:, 0] if np.ndim(targets) == 1 else answer


def _as_columns(targets: npt.ArrayLike) -> npt.NDArray[np.generic]:
    given = np.asarray(targets)
    return given[:, None] if given.ndim == 1 else given


def basis_of(apart: Floats) -> Floats:
    """`(d, rank)`: coordinates in which the pool has covariance one; directions without variance are left out."""
    _, size, turn = np.linalg.svd(np.linalg.qr(apart, mode="r"), full_matrices=False)
    kept = size > size.max(initial=0.0) * max(apart.shape) * np.finfo(float).eps
    return np.asarray(turn[kept].T * (np.sqrt(len(apart)) / size[kept]))


def _singular(left: Floats) -> npt.NDArray[np.bool_]:
    """Which equations have directions that the others nearly explain: they need more digits than they have."""
    scale = np.sqrt(np.einsum("mii->mi", left))
    empty = (scale <= SINGULAR * scale.max(axis=1, initial=0.0)[:, None]).any(axis=1)
    scaled = left / np.where(scale > 0, scale, 1)[:, :, None] / np.where(scale > 0, scale, 1)[:, None, :]
    scaled[empty] = np.eye(left.shape[1])
    try:
        pivots = np.einsum("mii->mi", np.linalg.cholesky(scaled))
    except np.linalg.LinAlgError:
        pivots = np.sqrt(np.maximum(np.linalg.eigvalsh(scaled), 0.0))
    return np.asarray(empty | (pivots**2 < SINGULAR).any(axis=1))


def fit_alone(features: Floats, targets: Floats, alpha: float) -> tuple[Floats, Floats]:
    """One world by itself, without normal equations."""
    if not len(features):
        return np.zeros((features.shape[1], targets.shape[1])), np.zeros(targets.shape[1])
    centre, level = features.mean(axis=0), targets.mean(axis=0)
    held = np.sqrt(alpha) * np.eye(features.shape[1])  # a penalty is rows of its own
    left = np.vstack([features - centre, held])
    right = np.vstack([targets - level, np.zeros((features.shape[1], targets.shape[1]))])
    weights = np.linalg.lstsq(left, right)[0]
    return weights, level - centre @ weights
