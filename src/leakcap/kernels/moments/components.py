"""Principal components in all worlds at once, turned to agree with the pool's as closely as a rotation can."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, in_parts
from leakcap.kernels.moments.blocks import from_moments
from leakcap.kernels.moments.entry import Moments
from leakcap.kernels.moments.sums import rows_in
from leakcap.kernels.rows import table_of
from leakcap.worlds import Units, Worlds

__all__ = ["aligned", "leading", "leading_cost", "pca"]

FAR = 1e-4  # squared cosine of the largest angle between two spaces, below which singular vectors are taken
MIN_WIDE = 256  # columns from which only some eigenvectors are made
FEW_COMPONENTS = 40  # columns a component from which they are sought from the pool's
BLOCKS, RESTARTS = 5, 3  # of as many vectors as there are components, and times that they are made anew
EIGEN, SOME_EIGEN = 0.3, 0.15  # nanoseconds of one core for the cube of the columns: all eigenvectors, or some
RESIDUAL = 1e-13  # of the largest eigenvalue: what is left of the eigenvectors' equation


def pca(
    features: npt.ArrayLike,
    worlds: Worlds,
    units: Units | None = None,
    *,
    components: int,
    reference: Floats | None = None,
    memory: int = Machine().memory,
) -> Floats:
    """`(m, 1 + components, d)`: a world's column means, then its principal directions, aligned to the reference.

    Components of two worlds may differ by signs, by order and by any rotation among like variances; orthogonal
    Procrustes removes that and leaves the space they span. The reference, `(components, d)`, is the pool's own
    components if None. Where directions beyond the last component have as much variance as the last, a plain fit has no
    one answer, and neither has this. Worlds are taken in parts whose matrices fit into `memory`, in bytes.
    """
    table = table_of(features, worlds, units)
    d = table.shape[1]
    if not 1 <= components <= d:
        raise InputError(f"components must be from 1 to the number of columns, {d}")
    if rows_in(worlds, units).min() <= components:
        raise InputError("a world has too few rows for so many components: ask for fewer, or use a higher rate")
    towards = (
        _directions(np.cov(table, rowvar=False).reshape(1, d, d), components)[0] if reference is None else reference
    )

    def described(found: Moments) -> Floats:
        turned = in_parts(lambda scatter: aligned(leading(scatter, towards), towards), found.scatter)
        return np.concatenate([found.mean[:, None], np.concatenate(turned)], axis=1)

    return from_moments(described, table, worlds, units, memory=memory)


def leading(scatter: Floats, reference: Floats) -> Floats:
    """`(m, k, d)`: eigenvectors of the largest eigenvalues of every matrix, as rows; as many as the reference has.

    They are sought from the reference, `(k, d)`, where that is less work: matrices are those of halves of one pool.
    """
    components, d = reference.shape
    if d < MIN_WIDE or components * FEW_COMPONENTS > d:
        return _directions(scatter, components)
    found = np.empty((len(scatter), components, d))
    for matrix, rows in zip(scatter, found, strict=True):
        near = _from_near(matrix, reference)
        rows[:] = _directions(matrix[None], components)[0] if near is None else near
    return found


def leading_cost(columns: int) -> float:
    """Nanoseconds of one core that `leading` takes for one matrix at most, as seen on some."""
    return (SOME_EIGEN if columns >= MIN_WIDE else EIGEN) * columns**3


def _directions(scatter: Floats, components: int) -> Floats:
    """`(m, components, d)`: eigenvectors of the largest eigenvalues, as rows."""
    d = scatter.shape[1]
    if d < MIN_WIDE:
        return np.linalg.eigh(scatter)[1][:, :, : -components - 1 : -1].transpose(0, 2, 1)
    made = [eigh(matrix, subset_by_index=[d - components, d - 1], check_finite=False)[1] for matrix in scatter]
    return np.stack(made)[:, :, ::-1].transpose(0, 2, 1)


def _from_near(matrix: Floats, reference: Floats) -> Floats | None:
    """Leading eigenvectors by block Lanczos steps from a space near theirs, or None if they are not reached."""
    k = len(reference)
    start: Floats = np.linalg.qr(reference.T)[0]
    for _ in range(RESTARTS):
        basis, image = start, matrix @ start
        for _ in range(BLOCKS):
            fresh = image[:, -k:]
            for _ in range(2):  # once more: the first time leaves what rounding hid
                fresh = fresh - basis @ (basis.T @ fresh)
            fresh = np.linalg.qr(fresh)[0]
            basis, image = np.hstack([basis, fresh]), np.hstack([image, matrix @ fresh])
        values, turn = np.linalg.eigh(basis.T @ image)
        start = basis @ turn[:, : -k - 1 : -1]
        left = image @ turn[:, : -k - 1 : -1] - start * values[: -k - 1 : -1]
        if np.linalg.norm(left) <= RESIDUAL * values[-1]:
            return np.linalg.qr(start)[0].T
    return None


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
