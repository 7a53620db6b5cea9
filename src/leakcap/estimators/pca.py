"""Private principal components.

A world's components span a space near to that of the pool's. What leaves is how far each of the pool's components has
to lean out of the pool's space to span the world's. Turning components among themselves changes nothing that they
restore, so nothing is spent on it. A lean is counted by the variance that it loses.
"""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.component_sums import components_within, fitted, moved_components
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.data import Rows
from leakcap.estimators.sums import ProductSums
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, in_parts
from leakcap.kernels.moments import Moments, aligned, bytes_a_world, from_moments, leading, moments_cost
from leakcap.kernels.moments.components import EIGEN, leading_cost
from leakcap.worlds import Units, Worlds

__all__ = ["PCA"]

WIDE = 256  # columns above which a single world is fitted without its covariance, and leans are given by columns
# Nanoseconds of one core of a single world's fit, for the forecast: for each number, for a product of two, and its own.
SWEEP, PRODUCT, FIT = 80.0, 0.05, 3e5
REFERENCE = "Reference of the components and unit of the noise: mean and components of the whole pool."
TOLD = 0.1  # how much an error of a variance counts beside an equal error in what is restored


@dataclass(eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """scikit-learn's `PCA` with private components, mean and variances.

    Components stand in the order of the pool's and are turned towards them. `explained_variance_` is the variance along
    each of them, so it need not descend strictly.

    Args:
        n_components: number of components; None for as many as there are columns.
        whiten: whether `transform` divides by standard deviations.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        components_: released directions, `(n_components, columns)`, orthonormal.
        mean_: released means, `(columns,)`.
        explained_variance_: released variance along each component.
        explained_variance_ratio_: the same as a share of the released total variance.
        singular_values_: the same as singular values of as many rows as the pool has.
        noise_variance_: released mean variance of the directions left out.
        n_components_: number of components.
        n_samples_: number of rows of the pool; under a pool cap as released.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(200, 3)) * [10, 1, 1]
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> PCA(1, **settings).fit(rows).transform(rows).shape
        (200, 1)
    """

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = False

    def transform(self, X: Any) -> Any:
        """Rows in the released components.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, n_components)`.
        """
        return self._asked("transform", X)

    def inverse_transform(self, X: Any) -> Any:
        """Rows in the columns again, from their places along the components.

        Args:
            X: rows in the released components, as `transform` gives them.

        Returns:
            `(rows, columns)`.
        """
        return self._fitted().inverse_transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows under the released Gaussian.

        Args:
            X: rows and columns, as given to `fit`.
            y: ignored.

        Returns:
            The mean log-likelihood, in nats a row.
        """
        return float(self._asked("score", X))

    def get_covariance(self) -> Any:
        """The covariance matrix of the released model.

        Returns:
            `(columns, columns)`.
        """
        return self._fitted().get_covariance()

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _computation(self, rows: Rows) -> Computation:
        features = rows.features
        n, d = features.shape
        k = self._number(d)
        if k > n // 2 - 1:
            raise InputError(f"n_components={k} must be at most the {d} columns, and less than half of {n} n_samples")
        frame = Frame.of(features, k)
        data: tuple[Any, ...] = (features,) if rows.weight is None else (features, rows.weight)
        served = _described if rows.weight is None else _described_alone
        return Computation(
            answer=functools.partial(served, frame=frame),
            data=data,
            build=functools.partial(_build, frame=frame, rows=n, whiten=self.whiten),
            utility=_worth(rows),
            pool_public=(REFERENCE,),
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        features, k = rows.features, self._number(rows.features.shape[1])
        weight = np.ones(len(features)) if rows.weight is None else rows.weight
        answer, frame = moved_components(features, weight, k)
        return Computation(
            answer=answer,
            data=(features, weight),
            build=lambda value: fitted(*frame.decode(value), rows=len(features), whiten=self.whiten),
            utility=_worth(rows),
            pool_public=(REFERENCE, "What the coins move: mean and covariances of the whole pool."),
        )

    def _sums_of_all(self, rows: Rows) -> Computation:
        k = self._number(rows.features.shape[1])

        def build(value: dict[str, Floats]) -> Any:
            found = value["mean"], value["components"], value["variance"], float(value["total"][0])
            return fitted(*found, rows=max(2, round(float(value["rows"][0]))), whiten=self.whiten)

        answer = ProductSums(functools.partial(components_within, k=k), self._column_names())
        return Computation(answer, (rows.features,), build, utility=_worth(rows), weights=None)

    def _number(self, d: int) -> int:
        k = d if self.n_components is None else checks.count(n_components=self.n_components)
        if k > d:
            raise InputError(f"n_components={k} must be at most the {d} columns")
        return k


def _worth(rows: Rows) -> Utility:
    some = rows.features[rows.some]
    total = max(float(((some - some.mean(axis=0)) ** 2).sum()), np.finfo(float).tiny)

    def restored(made: Any) -> float:
        return 1 - float(((made.inverse_transform(made.transform(some)) - some) ** 2).sum()) / total

    return Utility("share of the variance restored", restored)


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
        return Frame(
            centre=centre,
            inside=inside,
            outside=outside,
            variance=np.maximum(variance, 1e-12 * tiny),
            gap=np.sqrt(lost),
            unit=float(np.sqrt(tiny)),
        )

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
        mean, directions, variance, total = self.exactly(value)
        variance = np.maximum(variance, 1e-9 * self.variance)
        return mean, directions, variance, max(total, float(variance.sum()))

    def exactly(self, value: dict[str, Floats]) -> tuple[Floats, Floats, Floats, float]:
        """The same, with variances and their total as they were told."""
        leans = (value["leans"] * self.unit / self.gap) @ self.outside
        leans -= (leans @ self.inside.T) @ self.inside
        values, turns = np.linalg.eigh(np.eye(len(leans)) - leans @ leans.T)
        upright = turns * np.sqrt(np.maximum(values, 0.0)) @ turns.T  # what is left of the pool's components
        left, _, right = np.linalg.svd(upright @ self.inside + leans, full_matrices=False)
        counted = np.sqrt(self.variance.min() / self.variance)
        told = TOLD * np.sqrt(self.variance.min()) / self.unit
        beyond = value["beyond"] @ self.outside * self.unit
        mean = self.centre + beyond + (value["within"] * self.unit / counted) @ self.inside
        return (
            mean,
            left @ right,
            value["variance"] / told * self.variance,
            float(value["total"][0] / told * self.unit**2),
        )

    def named(self, numbers: Floats) -> dict[str, Floats]:
        """An answer from its numbers in a row."""
        k, r = len(self.inside), len(self.outside)
        parts = np.split(numbers, np.cumsum([k * r, r, k, k]))
        return {name: part.reshape(k, r) if name == "leans" else part for name, part in zip(NAMES, parts, strict=True)}


NAMES = ("leans", "beyond", "within", "variance", "total")


def _all_described(
    data: tuple[Any, ...], units: Units, worlds: Worlds, frame: Frame, memory: int = Machine().memory
) -> Floats:
    def described(found: Moments) -> Floats:
        scatter = found.scatter
        scatter /= np.maximum(found.rows - 1, 1)[:, :, None]
        turned = np.concatenate(in_parts(lambda some: _leading(some, frame), scatter))
        parts = frame.encode(found.mean, turned, *_spread(scatter, turned))
        return np.concatenate([part.reshape(len(turned), -1) for part in parts], axis=1)

    return from_moments(described, data[0], worlds, units, memory=memory)


def _leading(scatter: Floats, frame: Frame) -> Floats:
    """The leading directions of every world, turned towards the pool's."""
    return aligned(leading(scatter, frame.inside), frame.inside)


def _spread(scatter: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Variances along the directions, and the total variance."""
    along = np.einsum("mkd,mkd->mk", directions @ scatter, directions)
    return along, np.trace(scatter, axis1=1, axis2=2)


def _forecast(data: tuple[Any, ...], units: Units, worlds: Worlds, memory: int, *, frame: Frame) -> kernels.Costs:
    """Moments and components of all worlds, against components of each world's own rows."""
    n, d = data[0].shape
    numbers, eigen = n * worlds.rate * d, leading_cost(d)
    alone = numbers * SWEEP if d > WIDE else numbers * d * PRODUCT + EIGEN * d**3
    return kernels.Costs(
        kernel=min(moments_cost(n, d, worlds)) + worlds.m * eigen,
        loop=worlds.m * (alone + FIT),
        bytes=2 * bytes_a_world(d),
    )


def _deviation(found: Floats, expected: Floats, rows: tuple[Any, ...], *, frame: Frame) -> float:
    """How far two answers for the rows of one world are apart, in what the world determines.

    Where the last component has as much variance as the next, either will do, and the two may differ. Their mean and
    total variance may not; nor may the variance that the components hold together, which is the most that so many can
    hold; nor may the variances that an answer gives be others than those of its own components. By Davis and Kahan a
    component that leans by an angle a loses at least its gap to the next times a squared, so equal sums mean equal
    spaces wherever there is a gap.
    """
    apart = np.asarray(rows[0], dtype=np.float64)
    apart = apart - apart.mean(axis=0)
    told = [frame.exactly(frame.named(answer)) for answer in (found, expected)]
    held = [((apart @ directions.T) ** 2).sum(axis=0) / max(len(apart) - 1, 1) for _, directions, _, _ in told]
    total = max(told[1][3], np.finfo(float).tiny)
    (mean, _, variance, whole), (other, _, _, all_of_it) = told
    return float(
        max(
            np.abs(mean - other).max() / max(np.sqrt(total), np.abs(other).max()),
            abs(whole - all_of_it) / total,
            abs(held[0].sum() - held[1].sum()) / total,
            np.abs(variance - held[0]).max() / total,
        )
    )


@kernels.offers(_all_described, forecast=_forecast, deviation=_deviation)
def _described(features: Floats, *, frame: Frame) -> dict[str, Floats]:
    return _described_alone(features, np.ones(len(features)), frame=frame)


def _described_alone(features: Floats, weight: Floats | None = None, *, frame: Frame) -> dict[str, Floats]:
    """The answer of one world. Weights, where there are some, multiply the squares of deviations."""
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
    """Vectors, each with its largest entry positive."""
    largest = np.abs(vectors).argmax(axis=1)
    return np.asarray(vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None])


def _build(value: dict[str, Floats], *, frame: Frame, rows: int, whiten: bool) -> decomposition.PCA:
    return fitted(*frame.decode(value), rows=rows, whiten=whiten)
