"""Principal components from sums over people: of products along the pool's own, and of all products within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn import decomposition

from leakcap.estimators.sums import Moved, Products
from leakcap.ground.arrays import Floats
from leakcap.kernels.moments import aligned

__all__ = ["Axes", "components_within", "fitted", "moved_components"]

TOLD = 0.1  # how much an error of a variance counts beside an equal error in what is restored
MIN_GAP_SHARE = 0.05  # of a component's variance: gaps to other directions count for this much at least
Fit = tuple[Floats, Floats, Floats, float]  # mean, directions, variance along each, total variance


@dataclass(frozen=True, eq=False)
class Axes:
    """The pool's mean and the directions of its variance, largest first; units in which errors count alike."""

    centre: Floats
    directions: Floats  # (d, d), by rows
    variance: Floats  # (d,)
    k: int
    total: float  # weight

    @property
    def unit(self) -> float:
        """Root of the total variance."""
        return float(np.sqrt(max(float(self.variance.sum()), np.finfo(float).tiny)))

    @property
    def kept(self) -> Floats:
        """Variances along the components, above rounding."""
        return np.maximum(self.variance[: self.k], 1e-12 * self.unit**2)

    @property
    def offset(self) -> Floats:
        """How much an offset of the mean along each direction counts: along a component, by its share of a spread."""
        counted = np.sqrt(self.kept.min() / self.kept)
        return np.append(counted, np.ones(len(self.variance) - self.k)) / self.unit

    @property
    def lean(self) -> Floats:
        """The same for products of a component with a direction outside: a lean loses product squared over gap."""
        gap = self.kept[:, None] - self.variance[self.k :]
        return 1 / np.sqrt(np.maximum(gap, MIN_GAP_SHARE * self.kept[:, None])) / self.unit

    @property
    def told(self) -> Floats:
        """The same for variances."""
        return TOLD * np.sqrt(self.kept.min()) / self.unit / self.kept

    def __call__(self, features: Floats, weight: Floats) -> Floats:
        """By how much rows move mean, products, variances and the total variance."""
        along = (features - self.centre) @ self.directions.T
        inside, outside = along[:, : self.k], along[:, self.k :]
        products = (inside[:, :, None] * outside[:, None] * self.lean).reshape(len(along), -1)
        mean = self.variance * (1 - 1 / self.total)  # of squares: variances are sums over one less
        variance = (inside**2 - mean[: self.k]) * self.told
        whole = (along**2).sum(axis=1, keepdims=True) - mean.sum()
        second = np.hstack([products, variance, whole * self._whole()]) / (self.total - 1)
        return np.asarray(np.hstack([along * self.offset / self.total, second]) * weight[:, None])

    def answer(self) -> dict[str, Floats]:
        """Of the whole pool: nothing moved."""
        d, k = len(self.variance), self.k
        return {"mean": np.zeros(d), "products": np.zeros((k, d - k)), "variance": np.zeros(k), "total": np.zeros(1)}

    def decode(self, value: dict[str, Floats]) -> Fit:
        """The fit from what was released: leading directions of the pool's covariance with products put in."""
        d, k = len(self.variance), self.k
        matrix = np.diag(self.variance)
        matrix[np.arange(k), np.arange(k)] += value["variance"] / self.told
        matrix[:k, k:] = value["products"] / self.lean
        matrix[k:, :k] = matrix[:k, k:].T
        leading = np.linalg.eigh(matrix)[1][:, ::-1][:, :k].T
        turned = aligned(leading[None], np.eye(k, d))[0]
        variance = np.maximum(np.einsum("kd,kd->k", turned @ matrix, turned), 1e-9 * self.kept)
        total = float(self.variance.sum() + value["total"][0] / self._whole())
        mean = self.centre + (value["mean"] / self.offset) @ self.directions
        return mean, turned @ self.directions, variance, max(total, float(variance.sum()))

    def _whole(self) -> float:
        return TOLD * float(np.sqrt(self.kept.min())) / self.unit**3


def moved_components(features: Floats, weight: Floats, k: int) -> tuple[Moved, Axes]:
    """The pool's axes, and by how much every row moves what is known along them."""
    total = float(weight.sum())
    centre = weight @ features / total
    apart = (features - centre) * np.sqrt(weight / max(total - 1, np.finfo(float).tiny))[:, None]
    values, vectors = np.linalg.eigh(apart.T @ apart)
    axes = Axes(
        centre=centre,
        directions=_signed(vectors[:, ::-1].T),
        variance=np.maximum(values[::-1], 0.0),
        k=k,
        total=max(total, 2.0),
    )
    return Moved(axes.answer(), axes), axes


def components_within(released: Products, *, k: int) -> dict[str, Floats]:
    """Mean, components and variances from released products; variances are not negative."""
    half, count = released.half, released.count
    covariance = released.covariance * np.outer(half, half) * (count / (count - 1))
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    values = np.maximum(values[::-1], 1e-12 * max(float(values[-1]), np.finfo(float).tiny))
    return {
        "mean": released.middle + half * released.mean,
        "components": _signed(vectors[:, ::-1].T)[:k],
        "variance": values[:k],
        "total": np.array([values.sum()]),
        "rows": np.array([count]),
    }


def fitted(
    mean: Floats, directions: Floats, variance: Floats, total: float, *, rows: int, whiten: bool
) -> decomposition.PCA:
    """A plain estimator with these components."""
    k, d = directions.shape
    made = decomposition.PCA(k, whiten=whiten)
    made.mean_, made.components_, made.explained_variance_ = mean, directions, variance
    made.n_components_, made.n_samples_, made.n_features_in_ = k, rows, d
    made.explained_variance_ratio_ = made.explained_variance_ / max(total, np.finfo(float).tiny)
    made.singular_values_ = np.sqrt(made.explained_variance_ * (rows - 1))
    made.noise_variance_ = (total - made.explained_variance_.sum()) / (d - k) if d > k else 0.0
    return made


def _signed(vectors: Floats) -> Floats:
    """Vectors, each with its largest entry positive."""
    largest = np.abs(vectors).argmax(axis=1)
    return np.asarray(vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None])
