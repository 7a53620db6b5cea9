"""Means, covariances and scalers from sums over people: what is added up, and what is made of the released sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.estimators.sums import ByClass, Moved, Products
from leakcap.ground.arrays import Floats
from leakcap.stats.products import upper

__all__ = [
    "covariance_within",
    "floored",
    "mean_within",
    "moved_covariance",
    "moved_mean",
    "moved_scales",
    "scales_within",
]

MIN_SHARE = 1e-12  # share of the largest eigenvalue that all others keep at least: rounding


@dataclass(frozen=True, eq=False)
class _Standardised:
    """Rows in deviations about the pool's mean, each with its share of all weight."""

    mean: Floats
    scale: Floats
    total: float

    @classmethod
    def of(cls, features: Floats, weight: Floats, scale: Floats) -> _Standardised:
        total = float(weight.sum())
        return cls(weight @ features / total, scale, total)

    def __call__(self, features: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return (features - self.mean) / self.scale, (weight / self.total)[:, None]


@dataclass(frozen=True, eq=False)
class _MeanMoves:
    rows: _Standardised

    def __call__(self, features: Floats, weight: Floats) -> Floats:
        apart, share = self.rows(features, weight)
        return apart * share


@dataclass(frozen=True, eq=False)
class _ScaleMoves:
    rows: _Standardised
    variance: Floats

    def __call__(self, features: Floats, weight: Floats) -> Floats:
        apart, share = self.rows(features, weight)
        return np.hstack([apart, apart**2 - self.variance]) * share


@dataclass(frozen=True, eq=False)
class _CovarianceMoves:
    rows: _Standardised
    products: Floats

    def __call__(self, features: Floats, weight: Floats) -> Floats:
        apart, share = self.rows(features, weight)
        return np.hstack([apart, _lengths(apart.shape[1]) * _products(apart) - self.products]) * share


def moved_mean(features: Floats, weight: Floats, scale: Floats) -> Moved:
    """Of the mean, in `scale`."""
    rows = _Standardised.of(features, weight, scale)
    return Moved({"mean": rows.mean / scale}, _MeanMoves(rows))


def moved_scales(features: Floats, weight: Floats, scale: Floats) -> Moved:
    """Of means and variances."""
    rows = _Standardised.of(features, weight, scale)
    apart, share = rows(features, weight)
    variance = share[:, 0] @ apart**2
    return Moved({"mean": rows.mean / scale, "variance": variance}, _ScaleMoves(rows, variance))


def moved_covariance(features: Floats, weight: Floats, scale: Floats) -> Moved:
    """Of means, and of the upper triangle of covariances in units in which it has the length of the whole."""
    rows = _Standardised.of(features, weight, scale)
    apart, share = rows(features, weight)
    products = upper((apart * share).T @ apart) * _lengths(apart.shape[1])
    return Moved({"mean": rows.mean / scale, "products": products}, _CovarianceMoves(rows, products))


def mean_within(released: ByClass) -> dict[str, Floats]:
    """The mean, in the columns' own units."""
    return {"mean": released.middle + released.half * released.mean[0]}


def scales_within(released: ByClass) -> dict[str, Floats]:
    """Means and variances, which are at least what noise hides."""
    variance = np.maximum(released.variance[0], released.noise[0])
    return mean_within(released) | {"variance": variance * released.half**2}


def covariance_within(released: Products) -> dict[str, Floats]:
    """Means, and the covariance without eigenvalues below what noise hides."""
    half = released.half
    matrix = floored(released.covariance, released.deviation) * np.outer(half, half)
    return {"mean": released.middle + half * released.mean, "covariance": (matrix + matrix.T) / 2}


def floored(matrix: Floats, least: float) -> Floats:
    """A symmetric matrix whose eigenvalues are at least `least`, and positive."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(least, MIN_SHARE * float(np.abs(values).max()), np.finfo(float).tiny)
    return np.asarray(vectors * np.maximum(values, least) @ vectors.T)


def _products(apart: Floats) -> Floats:
    i, j = np.triu_indices(apart.shape[1])
    return apart[:, i] * apart[:, j]


def _lengths(d: int) -> Any:
    i, j = np.triu_indices(d)
    return np.where(i == j, 1.0, np.sqrt(2))
