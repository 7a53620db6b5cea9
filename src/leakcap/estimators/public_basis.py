"""Directions in which votes about public rows are kept: rows that are alike are heard together.

One row's votes would drown in noise, and the average over thousands of rows does not. What rows have in common follows
from the public rows alone: their columns, and in which leaves of trees that are drawn by chance they fall.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomTreesEmbedding

from leakcap.ground.arrays import Floats

__all__ = ["public_basis"]

TREES, DEPTH = 64, 5
ALIKE = 30.0  # times the smallest deviation of a column: wider ones are in units of their own
TINY = 1e-9  # eigenvalues, beside the largest


def public_basis(rows: Floats, directions: int) -> Floats:
    """`(rows, directions)`, orthonormal, or fewer where rows have no more in common; the first is the same for all."""
    leaves = RandomTreesEmbedding(TREES, max_depth=DEPTH, sparse_output=False, random_state=0).fit_transform(rows)
    parts = [leaves - leaves.mean(axis=0), _columns(rows)]
    joined = np.hstack([part / max(np.sqrt((part**2).sum()), np.finfo(float).tiny) for part in parts])
    few = len(joined) < joined.shape[1]  # rows: what they have in common is found from the smaller of two products
    values, vectors = np.linalg.eigh(joined @ joined.T if few else joined.T @ joined)
    order = np.argsort(values)[::-1][: max(0, directions - 1)]
    order = order[values[order] > TINY * max(values.max(), np.finfo(float).tiny)]
    found = vectors[:, order] if few else joined @ vectors[:, order]
    return np.linalg.qr(np.hstack([np.ones((len(rows), 1)), found]))[0]


def _columns(rows: Floats) -> Floats:
    """Columns about their means. Where their sizes are alike, these say what matters, as of principal components."""
    centred = rows - rows.mean(axis=0)
    sizes = centred.std(axis=0)
    centred, sizes = centred[:, sizes > 0], sizes[sizes > 0]
    alike = len(sizes) and sizes.max() <= ALIKE * sizes.min()
    return np.asarray(centred if alike else centred / sizes)
