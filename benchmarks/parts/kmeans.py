"""K-Means from the same start centres, chosen once from the pool by k-means++."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from benchmarks.parts import Case, beans
from leakcap.datasets import dry_bean
from leakcap.kernels.kmeans import kmeans
from leakcap.worlds import draw_worlds

__all__ = ["cases", "large"]


def cases() -> list[Case]:
    """Dry Bean, 1,024 worlds, columns as they are and standardised."""
    raw = dry_bean().drop(columns="Class").to_numpy(dtype=np.float64)
    return [_case("K-Means, k = 7", raw), _case("K-Means, k = 7, standardised", beans()[0])]


def large() -> list[Case]:
    """A million rows in seven overlapping clusters."""
    draw = np.random.default_rng(0)
    table = draw.normal(size=(1_000_000, 32)) + 0.5 * draw.normal(size=(7, 32))[draw.integers(0, 7, 1_000_000)]
    return [_case("K-Means, k = 7", table, timed=3)]


def _case(work: str, table: np.ndarray, timed: int = 16) -> Case:
    worlds = draw_worlds(len(table), 1024, np.random.default_rng(1))
    start, _ = kmeans_plusplus(table, 7, random_state=0)
    scale = table.std(axis=0)

    def plain(rows: np.ndarray) -> np.ndarray:
        return np.asarray(KMeans(7, init=start, n_init=1, algorithm="lloyd").fit(table[rows]).cluster_centers_)

    def apart(found: np.ndarray, chosen: list[int], expected: list[Any]) -> float:
        """Relative to the spread of the columns."""
        return max(float((np.abs(found[w] - one) / scale).max()) for w, one in zip(chosen, expected, strict=True))

    return Case(work, *table.shape, worlds.m, plain, lambda: kmeans(table, worlds, start), apart, timed=timed)
