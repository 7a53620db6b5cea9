"""K-Means: centres in the order of the pool's own; a cluster stands for the class that the pool's cluster fits best."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from leakcap import kernels
from leakcap.estimators.kmeans import balanced, in_order
from leakcap.kernels.kmeans import kmeans
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import SCALED, Split
from reproductions.pac_private_algorithms.series import Study

__all__ = ["clusters"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]


def clusters(split: Split, balance: bool = False) -> Study:
    """With `balance`, every class of a world counts alike, by weights. The paper makes up rows (SMOTE) instead."""
    weight = balanced(split.y) if balance else None
    pool = KMeans(split.classes, n_init=10, random_state=0).fit(split.x, sample_weight=weight)
    reference = pool.cluster_centers_
    together = np.zeros((split.classes, split.classes))
    np.add.at(together, (pool.labels_, split.y), 1)
    stands_for = linear_sum_assignment(-together)[1]
    shares = np.bincount(pool.labels_, weights=weight, minlength=split.classes)
    # The error of a centre counts for the rows that are near to it.
    scale = np.repeat(np.sqrt(np.maximum(shares, 1) / shares.sum()), split.x.shape[1])

    def score(centres: Floats) -> float:
        apart = ((split.test_x[:, None] - centres.reshape(reference.shape)) ** 2).sum(axis=2)
        return float((stands_for[apart.argmin(axis=1)] == split.test_y).mean())

    answer = functools.partial(_balanced if balance else _centres, reference=reference, scale=scale)
    return Study(
        split.name,
        answer,
        (split.x, split.y),
        reference.ravel(),
        lambda planned: planned / scale,
        score,
        (SCALED, "Start, order and class of the centres, and the size of clusters: K-Means on the whole pool."),
    )


def _all_centres(data: tuple[Any, ...], units: Units, worlds: Worlds, *, reference: Floats, scale: Floats) -> Floats:
    found = kmeans(data[0], worlds.over_rows(units), reference)
    return in_order(found, reference).reshape(worlds.m, -1) * scale


@kernels.offers(_all_centres)
def _centres(x: Floats, y: Labels, *, reference: Floats, scale: Floats, weight: Floats | None = None) -> Floats:
    found = KMeans(len(reference), init=reference, n_init=1, algorithm="lloyd").fit(x, sample_weight=weight)
    return in_order(found.cluster_centers_[None], reference).ravel() * scale


def _balanced(x: Floats, y: Labels, *, reference: Floats, scale: Floats) -> Floats:
    return _centres(x, y, reference=reference, scale=scale, weight=balanced(y))
