"""Ridge regression and least squares in all worlds: moments, then one batched solve.

As on the CPU the normal equations are made in coordinates in which the pool has covariance one, so that columns of
very different size or that nearly agree cost no digits.
"""

from __future__ import annotations

import numpy as np

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.checks import nonnegative
from leakcap.kernels.gpu.device import Tensor, dense, load, on, send
from leakcap.kernels.gpu.moments import moments_of
from leakcap.worlds import Worlds

__all__ = ["ridge"]

SINGULAR = 1e-7  # a direction that has less than this share of the pool's variance in a world, beside the others


def ridge(features: Floats, targets: Floats, worlds: Worlds, *, alpha: float = 1.0, device: str = "cuda") -> Floats:
    """`(m, d + 1)`, or `(m, k, d + 1)` for k targets: coefficients, then the intercept, which is not penalised.

    `alpha=0` is least squares; of several solutions it takes the one with the smallest coefficients. A world without
    rows gets zeros.
    """
    nonnegative(alpha=alpha)
    torch = load()
    table = send(features, on(device))
    wanted = send(np.reshape(targets, (len(table), -1)), table.device)
    centre, level = table.mean(dim=0), wanted.mean(dim=0)
    basis = _basis(table - centre)
    rank = basis.shape[1]
    found = moments_of(torch.hstack([(table - centre) @ basis, wanted - level]), worlds)
    left = found.scatter[:, :rank, :rank] + alpha * (basis.T @ basis)
    apart = _singular(left) | (found.rows == 0)
    left[apart] = torch.eye(rank, dtype=left.dtype, device=left.device)
    solved = torch.linalg.solve(left, found.scatter[:, :rank, rank:])
    weights = basis @ solved  # (m, d, k)
    predicted = (found.mean[:, None, :rank] @ solved)[:, 0] + centre @ weights  # on average, before the intercept
    intercept = level + found.mean[:, rank:] - predicted
    for world in apart.nonzero()[:, 0].tolist():
        mask = dense(send(worlds.packed[world : world + 1], table.device, torch.uint8), 0, worlds.n, torch.bool)[0]
        weights[world], intercept[world] = _alone(table[mask], wanted[mask], alpha)
    result = torch.cat([weights.transpose(1, 2), intercept[:, :, None]], dim=2).cpu().numpy()
    if not np.isfinite(result).all():
        raise NumericalError("ridge regression has no finite solution in some world: scale the columns or raise alpha")
    return result[:, 0] if np.ndim(targets) == 1 else result


def _basis(apart: Tensor) -> Tensor:
    """`(d, rank)`: coordinates in which the pool has covariance one; directions without variance are left out."""
    torch = load()
    _, size, turn = torch.linalg.svd(torch.linalg.qr(apart, mode="r")[1], full_matrices=False)
    kept = size > size[0] * max(apart.shape) * 2.0**-52
    return turn[kept].T * (len(apart) ** 0.5 / size[kept])


def _singular(left: Tensor) -> Tensor:
    """Which equations have directions that the others nearly explain: they need more digits than they have."""
    torch = load()
    if not left.shape[1]:
        return torch.zeros(len(left), dtype=torch.bool, device=left.device)
    scale = torch.diagonal(left, dim1=1, dim2=2).clamp(min=0).sqrt()
    empty = (scale <= SINGULAR * scale.amax(dim=1, keepdim=True)).any(dim=1)
    scale = torch.where(scale > 0, scale, 1.0)[:, :, None]
    factor, failed = torch.linalg.cholesky_ex(left / scale / scale.transpose(1, 2))
    pivots = torch.diagonal(factor, dim1=1, dim2=2)
    return empty | (failed != 0) | ~(pivots**2 >= SINGULAR).all(dim=1)


def _alone(table: Tensor, wanted: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """One world by itself, by singular values, without normal equations."""
    torch = load()
    d = table.shape[1]
    if not len(table):
        return table.new_zeros((d, wanted.shape[1])), wanted.new_zeros(wanted.shape[1])
    centre, level = table.mean(dim=0), wanted.mean(dim=0)
    turn, size, back = torch.linalg.svd(table - centre, full_matrices=False)
    kept = size > size[0] * max(table.shape) * 2.0**-52
    shrunk = torch.where(kept, size / (size**2 + alpha).clamp(min=1e-300), 0.0)
    weights = back.T @ (shrunk[:, None] * (turn.T @ (wanted - level)))
    return weights, level - centre @ weights
