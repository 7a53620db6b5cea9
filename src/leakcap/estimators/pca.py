"""Private principal components.

A world's components span a space near to that of the pool's. What leaves is how far each of the pool's components has
to lean out of the pool's space to span the world's: turning components among themselves changes nothing that they
restore, so nothing is spent on it. A lean is counted by the variance that it loses.
"""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import decomposition
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from leakcap import checks, kernels
from leakcap.cores import in_parts
from leakcap.errors import InputError
from leakcap.estimators.base import COMMON, Mechanism, PrivateEstimator, Rows, Utility
from leakcap.kernels.moments import moments
from leakcap.kernels.pca import aligned
from leakcap.worlds import Units, Worlds

__all__ = ["PCA"]

Floats = npt.NDArray[np.float64]
WIDE = 256  # columns above which worlds are fitted one by one, and leans are told column by column
TOLD = 0.1  # how much an error of a variance counts beside one of the same share in what is restored


@dataclass(eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    __doc__ = f"""scikit-learn's `PCA` with private components, mean and variances.

    Components stand in the order of the pool's and are turned towards them; `explained_variance_` is the variance along
    each, so it need not descend strictly.

    Args:
        n_components: a number; None for all.
        whiten: whether `transform` divides by standard deviations.
    {COMMON}"""

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = False

    def transform(self, X: Any) -> Any:
        """Rows in the released components."""
        return self._asked("transform", X)

    def inverse_transform(self, X: Any) -> Any:
        """Back to the columns."""
        return self._fitted().inverse_transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows under the released Gaussian."""
        return float(self._asked("score", X))

    def get_covariance(self) -> Any:
        """Of the released model."""
        return self._fitted().get_covariance()

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _mechanism(self, rows: Rows) -> Mechanism:
        features = rows.features
        n, d = features.shape
        k = d if self.n_components is None else checks.count(n_components=self.n_components)
        if k > d or k > n // 2 - 1:
            raise InputError(f"n_components={k} must be at most the {d} columns, and less than half of {n} n_samples")
        frame = Frame.of(features, k)
        data: tuple[Any, ...] = (features,) if rows.weight is None else (features, rows.weight)
        served = _described if d <= WIDE and rows.weight is None else _described_alone
        some = features[rows.some]
        total = max(float(((some - some.mean(axis=0)) ** 2).sum()), np.finfo(float).tiny)

        def restored(made: Any) -> float:
            return 1 - float(((made.inverse_transform(made.transform(some)) - some) ** 2).sum()) / total

        return Mechanism(
            functools.partial(served, frame=frame),
            data,
            functools.partial(_build, frame=frame, rows=n, whiten=self.whiten),
            Utility("share of the variance restored", restored),
            ("Reference of the components and unit of the noise: mean and components of the whole pool.",),
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """The pool's components, and directions out of their space."""

    centre: Floats
    inside: Floats  # (k, d)
    outside: Floats  # (r, d)
    variance: Floats  # (k,): along the components
    gap: Floats  # (k, r): root of the variance that is lost where a component leans towards a direction outside
    unit: float  # root of the total variance

    @staticmethod
    def of(features: Floats, k: int) -> Frame:
        centre = features.mean(axis=0)
        apart = features - centre
        d = features.shape[1]
        if d <= WIDE:
            values, vectors = np.linalg.eigh(apart.T @ apart / max(len(apart) - 1, 1))
            values, vectors = np.maximum(values[::-1], 0.0), _signed(vectors[:, ::-1].T)
            inside, outside, beyond = vectors[:k], vectors[k:], values[k:]
            variance = values[:k]
            total = values.sum()
        else:
            fit = decomposition.PCA(k, svd_solver="covariance_eigh" if d < len(features) else "full").fit(features)
            inside, variance, outside = fit.components_, fit.explained_variance_, np.eye(d)
            total = float(apart.var(axis=0, ddof=1).sum())
            beyond = np.full(d, max(total - variance.sum(), 0.0) / (d - k)) if d > k else np.zeros(d)
        tiny = max(total, np.finfo(float).tiny)
        lost = np.maximum(variance[:, None] - beyond, 1e-6 * tiny / d)
        return Frame(centre, inside, outside, np.maximum(variance, 1e-12 * tiny), np.sqrt(lost), float(np.sqrt(tiny)))

    def encode(self, mean: Floats, turned: Floats, variance: Floats, total: Floats) -> list[Floats]:
        """For `m` worlds: leans, the mean outside and inside of the pool's space, variances and their total."""
        leans = turned @ self.outside.T
        off = mean - self.centre
        within = off @ self.inside.T
        beyond = off @ self.outside.T
        if len(self.outside) == len(self.centre):  # column by column: without what lies inside
            leans = leans - (turned @ self.inside.T) @ self.inside
            beyond = off - within @ self.inside
        counted = np.sqrt(self.variance.min() / self.variance)  # an offset counts by its share of a spread
        told = TOLD * np.sqrt(self.variance.min()) / self.unit
        return [
            leans * self.gap / self.unit,
            beyond / self.unit,
            within * counted / self.unit,
            variance / self.variance * told,
            total[:, None] / self.unit**2 * told,
        ]

    def decode(self, value: dict[str, Floats]) -> tuple[Floats, Floats, Floats, float]:
        """Mean, orthonormal directions, variances and their total, whatever the noise did."""
        leans = (value["leans"] * self.unit / self.gap) @ self.outside
        leans -= (leans @ self.inside.T) @ self.inside
        values, turns = np.linalg.eigh(np.eye(len(leans)) - leans @ leans.T)
        upright = turns * np.sqrt(np.maximum(values, 0.0)) @ turns.T  # what is left of the pool's components
        left, _, right = np.linalg.svd(upright @ self.inside + leans, full_matrices=False)
        counted = np.sqrt(self.variance.min() / self.variance)
        told = TOLD * np.sqrt(self.variance.min()) / self.unit
        beyond = value["beyond"] @ self.outside * self.unit
        mean = self.centre + beyond + (value["within"] * self.unit / counted) @ self.inside
        variance = np.maximum(value["variance"] / told, 1e-9) * self.variance
        total = max(float(value["total"][0]) / told * self.unit**2, float(variance.sum()))
        return mean, left @ right, variance, total


NAMES = ("leans", "beyond", "within", "variance", "total")


def _all_described(data: tuple[Any, ...], units: Units, worlds: Worlds, frame: Frame) -> Floats:
    found = moments(data[0], worlds, units)
    scatter = found.scatter / np.maximum(found.rows - 1, 1)[:, :, None]
    turned = np.concatenate(in_parts(lambda some: _leading(some, frame), scatter))
    parts = frame.encode(found.mean, turned, *_spread(scatter, turned))
    return np.concatenate([part.reshape(worlds.m, -1) for part in parts], axis=1)


def _leading(scatter: Floats, frame: Frame) -> Floats:
    """The leading directions of every world, turned towards the pool's."""
    return aligned(np.linalg.eigh(scatter)[1][:, :, : -len(frame.inside) - 1 : -1].transpose(0, 2, 1), frame.inside)


def _spread(scatter: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Variances along directions, and in all."""
    along = np.einsum("mkd,mde,mke->mk", directions, scatter, directions, optimize=True)
    return along, np.trace(scatter, axis1=1, axis2=2)


# Where the last component has as much variance as the next, directions are anybody's choice: the two may differ.
@kernels.offers(_all_described, tolerance=np.inf)
def _described(features: Floats, *, frame: Frame) -> dict[str, Floats]:
    return _described_alone(features, np.ones(len(features)), frame=frame)


def _described_alone(features: Floats, weight: Floats | None = None, *, frame: Frame) -> dict[str, Floats]:
    """One world; weights, where there are some, multiply the squares of deviations."""
    share = np.full(len(features), 1.0) if weight is None else weight
    rows = max(share.sum(), np.finfo(float).tiny)
    mean = share @ features / rows
    apart = (features - mean) * np.sqrt(share / max(rows - 1, np.finfo(float).tiny))[:, None]
    wide = features.shape[1] > WIDE
    turned = aligned(_top(apart, frame)[None], frame.inside) if wide else _leading((apart.T @ apart)[None], frame)
    along = ((apart @ turned[0].T) ** 2).sum(axis=0)
    parts = frame.encode(mean[None], turned, along[None], np.array([(apart**2).sum()]))
    return {name: part[0] for name, part in zip(NAMES, parts, strict=True)}


def _top(apart: Floats, frame: Frame) -> Floats:
    """The leading directions of a wide table."""
    made = decomposition.PCA(len(frame.inside), svd_solver="arpack", random_state=0).fit(apart)
    return np.asarray(made.components_)


def _signed(vectors: Floats) -> Floats:
    """Each with its largest entry positive."""
    largest = np.abs(vectors).argmax(axis=1)
    return np.asarray(vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None])


def _build(value: dict[str, Floats], *, frame: Frame, rows: int, whiten: bool) -> decomposition.PCA:
    k, d = frame.inside.shape
    made = decomposition.PCA(k, whiten=whiten)
    made.mean_, made.components_, made.explained_variance_, total = frame.decode(value)
    made.n_components_, made.n_samples_, made.n_features_in_ = k, rows, d
    made.explained_variance_ratio_ = made.explained_variance_ / max(total, np.finfo(float).tiny)
    made.singular_values_ = np.sqrt(made.explained_variance_ * (rows - 1))
    made.noise_variance_ = (total - made.explained_variance_.sum()) / (d - k) if d > k else 0.0
    return made
