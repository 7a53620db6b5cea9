"""Sums, means and covariances in all worlds: one f64 matrix product of masks and features, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import Tensor, dense, drawn, load, on, send, sizes, tile_bytes
from leakcap.worlds import Worlds

__all__ = ["DeviceMoments", "covariances", "masked_sums", "means", "moments_of", "sums_of"]

COLUMNS = 2048  # features that are made and multiplied together


def masked_sums(features: Floats, worlds: Worlds, *, device: str = "cuda") -> Floats:
    """`(m, d)`: for every world, the sum of the features of the rows in it."""
    table = send(features, on(device))
    return sums_of(lambda rows, columns: table[rows, columns], table.shape[1], worlds, table.device).cpu().numpy()


def means(table: Floats, worlds: Worlds, *, device: str = "cuda") -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    found = moments_of(send(table, on(device)), worlds, second=False)
    return found.mean.cpu().numpy()


def covariances(table: Floats, worlds: Worlds, *, device: str = "cuda") -> Floats:
    """`(m, d, d)`: covariances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = moments_of(send(table, on(device)), worlds)
    return (found.scatter / (found.rows - 1).clamp(min=1)[:, None, None]).cpu().numpy()


@dataclass(frozen=True, eq=False)
class DeviceMoments:
    """On the device: `rows` `(m,)`, `mean` `(m, d)` and `scatter` `(m, d, d)`, sums of products about that mean."""

    rows: Tensor
    mean: Tensor
    scatter: Tensor


def moments_of(table: Tensor, worlds: Worlds, second: bool = True) -> DeviceMoments:
    """Moments of a table on its device; in a world without rows they are 0."""
    torch = load()
    n, d = table.shape
    centre = table.mean(dim=0) if n else table.new_zeros(d)
    apart = table - centre  # sums about the middle of the pool keep rounding errors small
    rows = sizes(worlds, table.device)
    count = rows.clamp(min=1)[:, None]
    first = sums_of(lambda some, columns: apart[some, columns], d, worlds, table.device)
    mean = torch.where(rows[:, None] > 0, centre + first / count, 0.0)
    if not second:
        return DeviceMoments(rows, mean, None)
    left, right = torch.triu_indices(d, d, device=table.device)

    def products(some: slice, columns: slice) -> Tensor:
        return apart[some][:, left[columns]] * apart[some][:, right[columns]]

    upper = sums_of(products, len(left), worlds, table.device)
    upper -= first[:, left] * (first / count)[:, right]
    upper[rows < 2] = 0.0  # what one row leaves is rounding
    scatter = table.new_empty((worlds.m, d, d))
    scatter[:, left, right] = upper
    scatter[:, right, left] = upper
    diagonal = torch.diagonal(scatter, dim1=1, dim2=2)
    diagonal.clamp_(min=0.0)
    return DeviceMoments(rows, mean, scatter)


def sums_of(make: Callable[[slice, slice], Tensor], width: int, worlds: Worlds, device: object) -> Tensor:
    """Sums over the rows of every world of features that `make(rows, columns)` gives a block at a time."""
    torch = load()
    packed = drawn(worlds, device)
    half = torch.zeros((len(packed), width), dtype=torch.float64, device=packed.device)
    total = torch.zeros(width, dtype=torch.float64, device=packed.device)
    # One tile of masks, unpacked to f64, and one of features share the memory.
    step = max(8, tile_bytes(packed.device) // (8 * (len(packed) + min(width, COLUMNS))) // 8 * 8)
    for start in range(0, worlds.n, step):
        rows = slice(start, min(start + step, worlds.n))
        masks = dense(packed, rows.start, rows.stop, torch.float64)
        for column in range(0, width, COLUMNS):
            columns = slice(column, min(column + COLUMNS, width))
            made = make(rows, columns)
            half[:, columns].addmm_(masks, made)
            total[columns] += made.sum(dim=0)
    return torch.cat([half, total - half]) if worlds.paired else half
