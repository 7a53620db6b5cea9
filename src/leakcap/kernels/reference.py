"""What each kernel computes, in plain NumPy and one world at a time: slow, and easy to believe."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.worlds import Worlds

Floats = npt.NDArray[np.float64]


def means(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    found = np.zeros((worlds.m, table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows):
            found[w] = rows.mean(axis=0)
    return found


def covariances(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d, d)`: covariances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = np.zeros((worlds.m, table.shape[1], table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows) > 1:
            found[w] = np.cov(rows, rowvar=False)
    return found


def variances(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: column variances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = np.zeros((worlds.m, table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows) > 1:
            found[w] = rows.var(axis=0, ddof=1)
    return found


def ridge(features: Floats, targets: Floats, worlds: Worlds, alpha: float = 1.0) -> Floats:
    """`(m, d + 1)`: coefficients and intercept of least squares with extra rows for the penalty; zeros without rows."""
    d = features.shape[1]
    found = np.zeros((worlds.m, d + 1))
    for w in range(worlds.m):
        rows, wanted = features[worlds.mask(w)], targets[worlds.mask(w)]
        if len(rows):
            left = np.vstack([rows - rows.mean(axis=0), np.sqrt(alpha) * np.eye(d)])
            found[w, :d] = np.linalg.lstsq(left, np.concatenate([wanted - wanted.mean(), np.zeros(d)]))[0]
            found[w, d] = wanted.mean() - rows.mean(axis=0) @ found[w, :d]
    return found


def pca(features: Floats, worlds: Worlds, components: int) -> Floats:
    """`(m, 1 + components, d)`: means and principal directions by singular values, turned towards the pool's."""
    towards = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)[2][:components]
    found = np.empty((worlds.m, 1 + components, features.shape[1]))
    for w in range(worlds.m):
        rows = features[worlds.mask(w)]
        found[w, 0] = rows.mean(axis=0)
        directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:components]
        left, _, right = np.linalg.svd(directions @ towards.T)
        found[w, 1:] = (left @ right).T @ directions
    return found
