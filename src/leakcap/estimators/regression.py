"""Private least squares, with and without a penalty."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.base import MultiOutputMixin, RegressorMixin

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.coordinates import Coordinates
from leakcap.estimators.data import Rows, checked_weight, validated
from leakcap.estimators.regression_sums import moved_coefficients, solved
from leakcap.estimators.sums import ProductSums
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.cores import Machine
from leakcap.kernels.linear import ridge
from leakcap.kernels.linear.swapped import SwappedRidge
from leakcap.kernels.swapping import Swapper, answers_swaps
from leakcap.worlds import Units, Worlds

__all__ = ["LinearRegression", "Ridge"]


@dataclass(eq=False, repr=False)
class _LeastSquares(MultiOutputMixin, RegressorMixin, PrivateEstimator):
    """A linear function of the columns for each target."""

    _: KW_ONLY
    fit_intercept: bool = True
    target_bounds: Any = None

    def predict(self, X: Any) -> Any:
        """What the released model predicts for each row.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows,)`, or `(rows, targets)` for several targets.
        """
        return self._asked("predict", X)

    def _plain(self) -> Any:
        raise NotImplementedError

    def _alpha(self) -> float:
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        features, target = validated(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        return Rows(features, np.asarray(target, dtype=np.float64), weight=checked_weight(weight, features))

    def _rows_of_all(self, X: Any, y: Any, weight: Any) -> Rows:
        if self.target_bounds is None:
            raise InputError(
                f"a pool cap, or a session within bounds, needs bounds of y that do not come from the data: "
                f"{type(self).__name__}(..., target_bounds=(0, 100)), for example"
            )
        return super()._rows_of_all(X, y, weight)

    def _sums_of_half(self, rows: Rows) -> Computation:
        made, plain = self._computation(rows), self._plain()
        assert rows.target is not None
        coordinates = Coordinates.of(rows.features)
        target = rows.target.reshape(len(rows.target), -1)
        weight = np.ones(len(target)) if rows.weight is None else rows.weight
        plain.fit(rows.features, target, sample_weight=weight)
        answer = moved_coefficients(
            plain, (rows.features, target, weight), alpha=self._alpha(), coordinates=coordinates, scale=_spread(target)
        )
        known = (
            *made.pool_public,
            "What the coins move: the fit to the whole pool, by first order effects.",
        )
        return replace(made, answer=answer, data=(rows.features, target, weight), pool_public=known)

    def _sums_of_all(self, rows: Rows) -> Computation:
        target, plain = rows.target, self._plain()
        assert target is not None
        make = functools.partial(solved, alpha=checks.nonnegative(alpha=self._alpha()), intercept=self.fit_intercept)
        answer = ProductSums(make, self._column_names(), self.target_bounds)
        flat = target.ndim == 1

        def build(value: dict[str, Floats]) -> Any:
            made = type(plain)(**plain.get_params())
            found = value["coefficients"], value["intercept"]
            made.coef_, made.intercept_ = (found[0][0], float(found[1][0])) if flat else found
            return made

        data = rows.features, target.reshape(len(target), -1)
        return Computation(answer, data, build, utility=self._worth(rows), weights=None)

    def _worth(self, rows: Rows) -> Utility | None:
        features, target, some = rows.features, rows.target, rows.some
        assert target is not None
        return Utility("R2", lambda made: made.score(features[some], target[some])) if len(features) > 1 else None

    def _computation(self, rows: Rows) -> Computation:
        features, target = rows.features, rows.target
        assert target is not None
        checks.nonnegative(alpha=self._alpha())
        settings: dict[str, Any] = {"coordinates": Coordinates.of(features), "scale": _spread(target)}
        data: tuple[Any, ...] = (features, target)
        answer: Callable[..., Any]
        if rows.weight is None and self.fit_intercept:
            answer = functools.partial(_ridge, alpha=self._alpha(), **settings)
        else:
            ones = np.ones(len(features)) if rows.weight is None else rows.weight
            answer, data = functools.partial(_plain_fit, plain=self._plain(), **settings), (*data, ones)
        build = functools.partial(_build, plain=self._plain(), flat=target.ndim == 1, **settings)
        return Computation(
            answer=answer,
            data=data,
            build=build,
            utility=self._worth(rows),
            pool_public=(
                "The coordinates of the noise: means and covariances of the columns, and the spread of the target.",
            ),
        )


@dataclass(eq=False, repr=False)
class Ridge(_LeastSquares):
    """scikit-learn's `Ridge` with private coefficients.

    Args:
        alpha: strength of the penalty, at least 0. A larger one needs less noise.
        fit_intercept: whether the model has an intercept.
        target_bounds: under a pool cap, `(low, high)` of y, numbers or one for each target, known without the data.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        coef_: released coefficients, `(columns,)`, or `(targets, columns)` for several targets.
        intercept_: released intercept, or one for each target.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = Ridge(10.0, cap=lc.membership(0.9), worlds=32, random_state=0, options={"draws": 512})
        >>> model.fit(X, X @ [1.0, 2.0]).coef_.shape
        (2,)
    """

    alpha: float = 1.0

    def _alpha(self) -> float:
        return self.alpha

    def _plain(self) -> Any:
        return linear_model.Ridge(self.alpha, fit_intercept=self.fit_intercept)


@dataclass(eq=False, repr=False)
class LinearRegression(_LeastSquares):
    """scikit-learn's `LinearRegression` with private coefficients.

    Args:
        fit_intercept: whether the model has an intercept.
        target_bounds: under a pool cap, `(low, high)` of y, numbers or one for each target, known without the data.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        coef_: released coefficients, `(columns,)`, or `(targets, columns)` for several targets.
        intercept_: released intercept, or one for each target.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = LinearRegression(cap=lc.membership(0.9), worlds=32, random_state=0, options={"draws": 512})
        >>> model.fit(X, X @ [1.0, 2.0]).predict(X).shape
        (200,)
    """

    def _alpha(self) -> float:
        return 0.0

    def _plain(self) -> Any:
        return linear_model.LinearRegression(fit_intercept=self.fit_intercept)


def _spread(target: Floats) -> Floats:
    """The unit of each target, `(targets, 1)`."""
    found = np.atleast_1d(target.std(axis=0))
    return np.where(found > 0, found, 1.0)[:, None]


def _all_ridge(
    data: tuple[Any, ...],
    units: Units,
    worlds: Worlds,
    alpha: float,
    coordinates: Coordinates,
    scale: Floats,
    memory: int = Machine().memory,
) -> Floats:
    features, target = data
    found = ridge(features, target.reshape(len(target), -1), worlds, units, alpha=alpha, memory=memory)
    return (coordinates.encode(found[:, :, :-1], found[:, :, -1]) / scale).reshape(worlds.m, -1)


@dataclass(frozen=True, eq=False)
class _Encoded:
    """Answers after swaps in the coordinates of the noise."""

    solved: SwappedRidge
    coordinates: Coordinates
    scale: Floats

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        found = self.solved.answers(mask, out, into)
        found = found.reshape(len(found), len(self.scale), -1)
        encoded = self.coordinates.encode(found[:, :, :-1], found[:, :, -1]) / self.scale
        return np.asarray(encoded.reshape(len(found), -1))


def _swapped_ridge(
    data: tuple[Any, ...], units: Units, alpha: float, coordinates: Coordinates, scale: Floats
) -> Swapper | None:
    if units.of_row is not None:
        return None
    features, target = data
    return _Encoded(SwappedRidge.of(features, target.reshape(len(target), -1), alpha), coordinates, scale)


@answers_swaps(_swapped_ridge)
@kernels.offers(_all_ridge)
def _ridge(
    features: Floats, target: Floats, *, alpha: float, coordinates: Coordinates, scale: Floats
) -> dict[str, Floats]:
    n = len(features)
    found = _all_ridge(
        (features, target),
        Units.of(n, None),
        worlds=Worlds.everybody(n),
        alpha=alpha,
        coordinates=coordinates,
        scale=scale,
    )
    return {"scores": found.reshape(len(scale), -1)}


def _plain_fit(
    features: Floats, target: Floats, weight: Floats, *, plain: Any, coordinates: Coordinates, scale: Floats
) -> dict[str, Floats]:
    made = type(plain)(**plain.get_params()).fit(features, target, sample_weight=weight)
    found = coordinates.encode(np.atleast_2d(made.coef_), np.broadcast_to(made.intercept_, len(scale)))
    return {"scores": found / scale}


def _build(value: dict[str, Floats], *, plain: Any, flat: bool, coordinates: Coordinates, scale: Floats) -> Any:
    made = type(plain)(**plain.get_params())
    coefficients, intercept = coordinates.decode(value["scores"] * scale)
    if not plain.fit_intercept:
        intercept = np.zeros(len(intercept))
    made.coef_, made.intercept_ = (coefficients[0], float(intercept[0])) if flat else (coefficients, intercept)
    return made
