"""Private means, covariances and scalers: all come from sums over the rows of each world."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn import covariance, preprocessing
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from leakcap import kernels
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.data import Rows
from leakcap.estimators.moment_sums import (
    covariance_within,
    mean_within,
    moved_covariance,
    moved_mean,
    moved_scales,
    scales_within,
)
from leakcap.estimators.sums import ClassSums, Moved, ProductSums
from leakcap.ground.arrays import Floats
from leakcap.kernels.contributions import adds_up, averages
from leakcap.kernels.moments import masked_sums, means, moments, variances
from leakcap.worlds import Units, Worlds

__all__ = ["Covariance", "Mean", "StandardScaler", "psd", "spreads"]

UNITS = "The unit of the noise in each column: its standard deviation in the whole pool."
MOVED = "What the coins move: means, variances and covariances of the whole pool."
MIN_VARIANCE_SHARE = 1e-6  # share of the pool's variance, or of the largest, that a noised variance keeps at least


class _MeanOf(BaseEstimator):
    """Holds a released mean."""

    mean_: Floats


@dataclass(eq=False, repr=False)
class Mean(PrivateEstimator):
    """Private column means.

    With `options={"mode": "individual"}` a formula keeps the cap for every person, and all halves are possible worlds.
    With `options={"design": "bits"}` it does so whoever else is known: a coin decides about everybody.

    Args:
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        mean_: released means, `(columns,)`.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> found = Mean(cap=lc.membership(0.9), worlds=32, random_state=0, options={"draws": 512}).fit(rows)
        >>> found.mean_.shape, found.certificate_.kind
        ((2,), 'simulation')
    """

    def _computation(self, rows: Rows) -> Computation:
        scale = spreads(rows.features)
        answer, data = _answer(_mean, _weighted_mean, rows, scale)

        def build(value: dict[str, Floats]) -> Any:
            made = _MeanOf()
            made.mean_ = value["mean"] * scale
            return made

        wanted = rows.features.mean(axis=0)
        return Computation(
            answer=answer, data=data, build=build, utility=_nearness("mean_", wanted, scale), pool_public=(UNITS,)
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        made = self._computation(rows)
        return made if rows.weight is None else _moved(moved_mean, made, rows)

    def _sums_of_all(self, rows: Rows) -> Computation:
        answer = ClassSums(mean_within, self._column_names(), squares=False)

        def build(value: dict[str, Floats]) -> Any:
            made = _MeanOf()
            made.mean_ = value["mean"]
            return made

        wanted, scale = rows.features.mean(axis=0), spreads(rows.features)
        return Computation(answer, _one_class(rows), build, utility=_nearness("mean_", wanted, scale), weights=None)


@dataclass(eq=False, repr=False)
class Covariance(PrivateEstimator):
    """Private means and covariances, with the attributes of scikit-learn's `EmpiricalCovariance`.

    The matrix is the nearest one without negative variances.

    Args:
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        location_: released means, `(columns,)`.
        covariance_: released matrix, `(columns, columns)`.
        precision_: its inverse.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> Covariance(**settings).fit(rows).covariance_.shape
        (2, 2)
    """

    def mahalanobis(self, X: Any) -> Any:
        """Squared Mahalanobis distances of rows from the released mean.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            A distance for each row.
        """
        return self._asked("mahalanobis", X)

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood of rows under the released Gaussian.

        Args:
            X: rows and columns, as given to `fit`.
            y: ignored.

        Returns:
            The mean log-likelihood, in nats a row.
        """
        return float(self._asked("score", X))

    def get_precision(self) -> Any:
        """The inverse of the released matrix.

        Returns:
            `(columns, columns)`.
        """
        return self._fitted().get_precision()

    def _computation(self, rows: Rows) -> Computation:
        scale = spreads(rows.features)
        answer, data = _answer(_covariance, _weighted_covariance, rows, scale)

        def build(value: dict[str, Floats]) -> Any:
            made = covariance.EmpiricalCovariance()
            made.location_ = value["mean"] * scale
            made._set_covariance(psd(_full(value["products"])) * np.outer(scale, scale))
            return made

        return Computation(answer=answer, data=data, build=build, utility=self._worth(rows), pool_public=(UNITS,))

    def _sums_of_half(self, rows: Rows) -> Computation:
        return _moved(moved_covariance, self._computation(rows), rows)

    def _sums_of_all(self, rows: Rows) -> Computation:
        answer = ProductSums(covariance_within, self._column_names())

        def build(value: dict[str, Floats]) -> Any:
            made = covariance.EmpiricalCovariance()
            made.location_ = value["mean"]
            made._set_covariance(value["covariance"])
            return made

        return Computation(answer, (rows.features,), build, utility=self._worth(rows), weights=None)

    def _worth(self, rows: Rows) -> Utility:
        return _nearness("location_", rows.features.mean(axis=0), spreads(rows.features))


@dataclass(eq=False, repr=False)
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """scikit-learn's `StandardScaler` with private means and variances.

    Args:
        with_mean: whether `transform` takes off the means.
        with_std: whether `transform` divides by the standard deviations.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        mean_: released means, `(columns,)`.
        var_: released variances; 0 for columns that are constant in the whole pool.
        scale_: their roots, 1 for constant columns; None without `with_std`.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> StandardScaler(**settings).fit(rows).transform(rows).shape
        (200, 2)
    """

    _: KW_ONLY
    with_mean: bool = True
    with_std: bool = True

    def transform(self, X: Any) -> Any:
        """Rows in released units: less the released mean, divided by the released standard deviation.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, columns)`.
        """
        return self._asked("transform", X)

    def inverse_transform(self, X: Any) -> Any:
        """Rows in their own units again.

        Args:
            X: rows in released units.

        Returns:
            `(rows, columns)`.
        """
        return self._fitted().inverse_transform(X)

    def _computation(self, rows: Rows) -> Computation:
        scale = spreads(rows.features)
        answer, data = _answer(_scales, _weighted_scales, rows, scale)
        varies = np.ptp(rows.features, axis=0) > 0

        def build(value: dict[str, Floats]) -> Any:
            made = preprocessing.StandardScaler(with_mean=self.with_mean, with_std=self.with_std)
            made.mean_ = value["mean"] * scale
            made.var_ = np.where(varies, np.maximum(value["variance"], MIN_VARIANCE_SHARE), 0.0) * scale**2
            made.scale_ = np.where(varies, np.sqrt(made.var_), 1.0) if self.with_std else None
            return made

        wanted = rows.features.mean(axis=0)
        known = (UNITS, "Which columns are constant in the whole pool.")
        return Computation(
            answer=answer, data=data, build=build, utility=_nearness("mean_", wanted, scale), pool_public=known
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        return _moved(moved_scales, self._computation(rows), rows)

    def _sums_of_all(self, rows: Rows) -> Computation:
        answer = ClassSums(scales_within, self._column_names())

        def build(value: dict[str, Floats]) -> Any:
            made = preprocessing.StandardScaler(with_mean=self.with_mean, with_std=self.with_std)
            made.mean_, made.var_ = value["mean"], np.maximum(value["variance"], 0.0)
            made.scale_ = np.where(made.var_ > 0, np.sqrt(made.var_), 1.0) if self.with_std else None
            return made

        wanted, scale = rows.features.mean(axis=0), spreads(rows.features)
        return Computation(answer, _one_class(rows), build, utility=_nearness("mean_", wanted, scale), weights=None)


def spreads(table: Floats) -> Floats:
    """Standard deviations of the columns; 1 for constant ones."""
    found = table.std(axis=0)
    return np.where(found > 0, found, 1.0)


def psd(matrix: Floats) -> Floats:
    """The nearest symmetric matrix whose eigenvalues are positive: at least a small share of the largest."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray(
        vectors * np.maximum(values, MIN_VARIANCE_SHARE * max(values[-1], MIN_VARIANCE_SHARE)) @ vectors.T
    )


def _nearness(name: str, wanted: Floats, scale: Floats) -> Utility:
    """1 for the pool's own mean, 0 for one that is off by a standard deviation in every column."""

    def score(made: Any) -> float:
        return float(1 - np.mean(((getattr(made, name) - wanted) / scale) ** 2))

    return Utility("closeness of the mean (1 less the squared error in standard deviations)", score)


def _moved(moved: Callable[[Floats, Floats, Floats], Moved], made: Computation, rows: Rows) -> Computation:
    """The same computation, by how much every row moves the pool's own answer."""
    weight = np.ones(len(rows.features)) if rows.weight is None else rows.weight
    answer = moved(rows.features, weight, spreads(rows.features))
    known = (*made.pool_public, MOVED)
    return replace(made, answer=answer, data=(rows.features, weight), pool_public=known)


def _one_class(rows: Rows) -> tuple[Any, ...]:
    return rows.features, np.zeros(len(rows.features), dtype=np.intp)


def _answer(plain: Any, weighted: Any, rows: Rows, scale: Floats) -> tuple[Any, tuple[Any, ...]]:
    if rows.weight is None:
        return functools.partial(plain, scale=scale), (rows.features,)
    return functools.partial(weighted, scale=scale), (rows.features, rows.weight)


def _half(products: Floats) -> Floats:
    """The upper triangle of symmetric matrices, in units in which it has the length of the whole."""
    above = np.triu_indices(products.shape[-1])
    return products[..., above[0], above[1]] * np.where(above[0] == above[1], 1.0, np.sqrt(2))


def _full(half: Floats) -> Floats:
    d = int((np.sqrt(8 * len(half) + 1) - 1) / 2)
    above = np.triu_indices(d)
    matrix = np.zeros((d, d))
    matrix[above] = half / np.where(above[0] == above[1], 1.0, np.sqrt(2))
    return matrix + np.triu(matrix, 1).T


def _all_means(data: tuple[Any, ...], units: Units, worlds: Worlds, scale: Floats) -> Floats:
    return means(data[0] / scale, worlds, units)


def _brings(data: tuple[Any, ...], units: Units, scale: Floats) -> Any:
    return averages(data[0] / scale, units)


@adds_up(_brings)
@kernels.offers(_all_means)
def _mean(table: Floats, *, scale: Floats) -> dict[str, Floats]:
    return {"mean": table.mean(axis=0) / scale if len(table) else np.zeros(len(scale))}


def _all_covariances(data: tuple[Any, ...], units: Units, worlds: Worlds, scale: Floats) -> Floats:
    found = moments(data[0] / scale, worlds, units)
    return np.hstack([found.mean, _half(found.scatter / np.maximum(found.rows, 1)[:, :, None])])


@kernels.offers(_all_covariances)
def _covariance(table: Floats, *, scale: Floats) -> dict[str, Floats]:
    return _weighted_covariance(table, np.ones(len(table)), scale=scale)


def _all_scales(data: tuple[Any, ...], units: Units, worlds: Worlds, scale: Floats) -> Floats:
    table = data[0] / scale
    rows = masked_sums(np.ones((len(table), 1)), worlds, units)
    return np.hstack([means(table, worlds, units), variances(table, worlds, units) * (1 - 1 / np.maximum(rows, 1))])


@kernels.offers(_all_scales)
def _scales(table: Floats, *, scale: Floats) -> dict[str, Floats]:
    return _weighted_scales(table, np.ones(len(table)), scale=scale)


def _weighted_mean(table: Floats, weight: Floats, *, scale: Floats) -> dict[str, Floats]:
    total = weight.sum()
    return {"mean": weight @ (table / scale) / total if total > 0 else np.zeros(len(scale))}


def _weighted_covariance(table: Floats, weight: Floats, *, scale: Floats) -> dict[str, Floats]:
    mean = _weighted_mean(table, weight, scale=scale)["mean"]
    apart = table / scale - mean
    return {"mean": mean, "products": _half((apart.T * weight) @ apart / max(weight.sum(), np.finfo(float).tiny))}


def _weighted_scales(table: Floats, weight: Floats, *, scale: Floats) -> dict[str, Floats]:
    mean = _weighted_mean(table, weight, scale=scale)["mean"]
    spread = weight @ (table / scale - mean) ** 2 / max(weight.sum(), np.finfo(float).tiny)
    return {"mean": mean, "variance": spread}
