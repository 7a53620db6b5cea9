"""Means, covariances, ridge regression and principal components."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from benchmarks.parts import Case, beans
from leakcap import stats
from leakcap.kernels.linear import ridge
from leakcap.kernels.moments import covariances, means, pca
from leakcap.worlds import Worlds, draw_worlds

__all__ = ["cases", "large"]


def cases() -> list[Case]:
    """Dry Bean, 1,024 worlds."""
    table, _ = beans()
    worlds = draw_worlds(len(table), 1024, np.random.default_rng(1))
    target = table[:, 0]
    components = PCA(5).fit(table).components_

    def fit(rows: np.ndarray) -> np.ndarray:
        found = Ridge().fit(table[rows, 1:], target[rows])
        return np.append(found.coef_, found.intercept_)

    def directions(rows: np.ndarray) -> np.ndarray:
        found = PCA(5).fit(table[rows])
        turn, _ = orthogonal_procrustes(found.components_.T, components.T)
        return np.vstack([found.mean_, turn.T @ found.components_])

    return [
        *_moments(table, worlds),
        Case(
            "ridge",
            len(table),
            table.shape[1] - 1,
            worlds.m,
            fit,
            lambda: ridge(table[:, 1:], target, worlds),
            _apart,
            _products(worlds, 16),
        ),
        Case(
            "PCA, 5 components, aligned",
            *table.shape,
            worlds.m,
            directions,
            lambda: pca(table, worlds, components=5, reference=components),
            _apart,
            _products(worlds, 16),
        ),
    ]


def large() -> list[Case]:
    """A million rows."""
    table = np.random.default_rng(0).normal(size=(1_000_000, 32))
    return _moments(table, draw_worlds(len(table), 1024, np.random.default_rng(1)), timed=4)


def _moments(table: np.ndarray, worlds: Worlds, timed: int = 16) -> list[Case]:
    rows, d = table.shape
    return [
        Case(
            "mean",
            rows,
            d,
            worlds.m,
            lambda some: stats.mean(table[some]),
            lambda: means(table, worlds),
            _apart,
            worlds.m * rows * d,  # one product for a world and its complement
            timed,
            passes=lambda: np.ones(rows) @ table,
        ),
        Case(
            "covariance",
            rows,
            d,
            worlds.m,
            lambda some: stats.covariance(table[some]),
            lambda: covariances(table, worlds),
            _apart,
            _products(worlds, d),
            timed,
        ),
    ]


def _products(worlds: Worlds, d: int) -> float:
    return float(worlds.m * worlds.n * d * (d + 1) / 2)


def _apart(found: np.ndarray, chosen: list[int], plain: list[Any]) -> float:
    scale = np.abs(found).max(axis=0)
    return max(float((np.abs(found[w] - one) / scale).max()) for w, one in zip(chosen, plain, strict=True))
