"""Principal components in all worlds, turned to agree with the pool's as closely as a rotation can."""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import load, on, send
from leakcap.kernels.gpu.moments import moments_of
from leakcap.worlds import Worlds

__all__ = ["pca"]


def pca(
    features: Floats, worlds: Worlds, *, components: int, reference: Floats | None = None, device: str = "cuda"
) -> Floats:
    """`(m, 1 + components, d)`: a world's column means, then its principal directions, aligned to the reference.

    As `leakcap.kernels.moments.pca`: orthogonal Procrustes turns directions within the space they span. The reference,
    `(components, d)`, is the pool's own components if None. Where directions beyond the last component have as much
    variance as the last, a plain fit has no one answer, and neither has this.
    """
    torch = load()
    table = send(features, on(device))
    d = table.shape[1]
    if not 1 <= components <= d:
        raise InputError(f"components must be from 1 to the number of columns, {d}")
    if int(worlds.sizes().min()) <= components:
        raise InputError("a world has too few rows for so many components: ask for fewer, or use a higher rate")
    if reference is None:
        apart = table - table.mean(dim=0)
        # By the routine that the CPU's kernel uses, so that the pool's components have the same signs there and here.
        pool = (apart.T @ apart / (len(table) - 1)).cpu().numpy()
        reference = np.linalg.eigh(pool)[1][:, : -components - 1 : -1].T
    towards = send(np.ascontiguousarray(reference), table.device)
    found = moments_of(table, worlds)
    directions = torch.linalg.eigh(found.scatter)[1][:, :, -components:].flip(-1).transpose(1, 2)
    left, _, right = torch.linalg.svd(towards @ directions.transpose(1, 2))
    return torch.cat([found.mean[:, None, :], left @ right @ directions], dim=1).cpu().numpy()
