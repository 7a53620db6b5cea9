"""Lloyd's K-Means in all worlds from one start: scikit-learn's definition, every step one product for all worlds."""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.checks import count, nonnegative
from leakcap.kernels.gpu.device import Tensor, dense, load, on, send, sizes, tile_bytes
from leakcap.kernels.gpu.moments import sums_of
from leakcap.worlds import Worlds

__all__ = ["kmeans"]


def kmeans(
    features: Floats,
    worlds: Worlds,
    start: Floats,
    *,
    iterations: int = 300,
    tolerance: float = 1e-4,
    device: str = "cuda",
) -> Floats:
    """`(m, k, d)`: the centres that `KMeans(init=start, n_init=1)` finds in each world.

    A world stops when its centres move by less than `tolerance` times the mean variance of its columns (squared
    distances, summed), as scikit-learn's do. An empty cluster takes the row farthest from its centre. Worlds of
    fewer rows than clusters are refused.
    """
    count(iterations=iterations)
    nonnegative(tolerance=tolerance)
    torch = load()
    table = send(features, on(device))
    begin = send(start, table.device)
    if begin.ndim != 2 or begin.shape[1] != table.shape[1]:
        raise InputError(f"start must be clusters x {table.shape[1]} columns")
    if int(worlds.sizes().min()) < len(begin):
        raise InputError(f"a world has fewer rows than the {len(begin)} clusters: choose fewer clusters")
    middle = table.mean(dim=0)
    table, begin = table - middle, begin - middle
    variance = _variance(table, worlds)
    packed = send(worlds.packed, table.device, torch.uint8)
    centres = begin.expand(worlds.m, *begin.shape).clone()
    active = torch.arange(worlds.m, device=table.device)
    # Rounding alone can move centres that stand still by this much.
    still = torch.maximum(tolerance * variance, 1e-28 * (variance + (begin**2).sum()))
    for _ in range(iterations):
        old = centres[active]
        new = _lloyd(table, packed[active], old)
        centres[active] = new
        active = active[((new - old) ** 2).sum(dim=(1, 2)) > still[active]]
        if not len(active):
            break
    return (centres + middle).cpu().numpy()


def _variance(table: Tensor, worlds: Worlds) -> Tensor:
    """`(m,)`: the mean over columns of the variance of each world's rows."""
    torch = load()
    both = torch.hstack([table, table**2])
    sums = sums_of(lambda rows, columns: both[rows, columns], both.shape[1], worlds, table.device)
    mean, square = (sums / sizes(worlds, table.device)[:, None]).chunk(2, dim=1)
    return (square - mean**2).mean(dim=1).clamp(min=0)


def _lloyd(table: Tensor, packed: Tensor, centres: Tensor) -> Tensor:
    """One step in every world: rows join the nearest centre, centres move to the mean of their rows."""
    torch = load()
    (n, d), (m, k, _) = table.shape, centres.shape
    counted = torch.hstack([table, table.new_ones((n, 1))])
    sums = table.new_zeros((m * k, d + 1))
    numbers = torch.arange(k, device=table.device)[None, :, None]
    step = max(8, tile_bytes(table.device) // (8 * m * k) // 8 * 8)
    for first in range(0, n, step):
        some = slice(first, min(first + step, n))
        nearest = _nearest(table[some], centres)
        # Rows outside the world join no cluster.
        nearest = torch.where(dense(packed, some.start, some.stop, torch.bool), nearest, -1)
        joined = (nearest[:, None, :] == numbers).to(table.dtype)
        sums.addmm_(joined.view(m * k, -1), counted[some])
    sums = sums.view(m, k, d + 1)
    for world in (sums[..., -1] == 0).any(dim=1).nonzero()[:, 0].tolist():
        _fill_empty(table, packed[world], centres[world], sums[world])
    return sums[..., :-1] / sums[..., -1:].clamp(min=1)


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """`(m, rows)`: the nearest centre of each row; the first of equals."""
    torch = load()
    m, k, d = centres.shape
    flat = centres.view(m * k, d)
    half = 0.5 * (flat**2).sum(dim=1, keepdim=True)
    return torch.addmm(half, flat, rows.T, alpha=-1).view(m, k, -1).argmin(dim=1)


def _fill_empty(table: Tensor, packed: Tensor, centres: Tensor, sums: Tensor) -> None:
    """Give each empty cluster a row that lies far from its centre, the way scikit-learn does, in one world."""
    torch = load()
    inside = dense(packed[None], 0, len(table), torch.bool)[0]
    rows = table[inside]
    nearest = _nearest(rows, centres[None])[0]
    apart = ((rows - centres[nearest]) ** 2).sum(dim=1).cpu().numpy()
    empty = (sums[:, -1] == 0).nonzero()[:, 0].tolist()
    if apart.max() > 0:
        farthest = np.argpartition(apart, -len(empty))[: -len(empty) - 1 : -1]
        for cluster, row in zip(empty, farthest.tolist(), strict=True):
            moved = torch.cat([rows[row], rows.new_ones(1)])
            sums[int(nearest[row])] -= moved
            sums[cluster] = moved
    # Fewer different rows than clusters: what is still empty shares the centre of the largest.
    sums[sums[:, -1] == 0] = sums[int(sums[:, -1].argmax())].clone()
