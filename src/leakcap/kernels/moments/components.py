"""Principal components in all worlds at once, turned to agree with the pool's as closely as a rotation can."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import in_parts
from leakcap.kernels.moments.entry import moments
from leakcap.kernels.rows import table_of
from leakcap.worlds import Units, Worlds

__all__ = ["aligned", "pca"]

FAR = 1e-4  # squared cosine of the largest angle between two spaces, below which singular vectors are taken


def pca(
    features: npt.ArrayLike,
    worlds: Worlds,
    units: Units | None = None,
    *,
    components: int,
    reference: Floats | None = None,
) -> Floats:
    """`(m, 1 + components, d)`: a world's column means, then its principal directions, aligned to the reference.

    Components of two worlds may differ by signs, by order and by any rotation among like variances; orthogonal
    Procrustes removes that and leaves the space they span. The reference, `(components, d)`, is the pool's own
    components if None. Where directions beyond the last component have as much variance as the last, a plain fit has no
    one answer, and neither has this.
    """
    table = table_of(features, worlds, units)
    d = table.shape[1]
    if not 1 <= components <= d:
        raise InputError(f"components must be from 1 to the number of columns, {d}")
    found = moments(table, worlds, units)
    if found.rows.min() <= components:
        raise InputError("a world has too few rows for so many components: ask for fewer, or use a higher rate")
    if reference is None:
        reference = _directions(np.cov(table, rowvar=False).reshape(1, d, d), components)[0]
    towards = reference
    turned = in_parts(lambda scatter: aligned(_directions(scatter, components), towards), found.scatter)
    return np.concatenate([found.mean[:, None], np.concatenate(turned)], axis=1)


def _directions(scatter: Floats, components: int) -> Floats:
    """`(m, components, d)`: eigenvectors of the largest eigenvalues, as rows."""
    return np.linalg.eigh(scatter)[1][:, :, : -components - 1 : -1].transpose(0, 2, 1)


def aligned(directions: Floats, reference: Floats) -> Floats:
    """Each world's directions turned, by one orthogonal matrix, as close to the reference as can be."""
    across = reference @ directions.transpose(0, 2, 1)
    # The closest orthogonal matrix to A is (A A')^(-1/2) A; squares lose digits where a cosine is near 0.
    cosines, axes = np.linalg.eigh(across @ across.transpose(0, 2, 1))
    far = cosines[:, 0] < FAR
    scaled = axes / np.sqrt(np.maximum(cosines, FAR))[:, None]
    turn = scaled @ (axes.transpose(0, 2, 1) @ across)
    if far.any():
        left, _, right = np.linalg.svd(across[far])
        turn[far] = left @ right
    return np.asarray(turn @ directions)
