"""Private least squares, with and without a penalty."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import linear_model
from sklearn.base import MultiOutputMixin, RegressorMixin

from leakcap import checks, kernels
from leakcap.estimators.base import COMMON, Mechanism, PrivateEstimator, Rows, Utility, checked_weight, validated
from leakcap.estimators.coordinates import Coordinates
from leakcap.kernels.ridge import ridge
from leakcap.worlds import Units, Worlds

__all__ = ["LinearRegression", "Ridge"]

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class _LeastSquares(MultiOutputMixin, RegressorMixin, PrivateEstimator):
    """A linear function of the columns for each target."""

    _: KW_ONLY
    fit_intercept: bool = True

    def predict(self, X: Any) -> Any:
        """What the released model says of each row."""
        return self._asked("predict", X)

    def _plain(self) -> Any:
        raise NotImplementedError

    def _alpha(self) -> float:
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        features, target = validated(
            self, X, y, dtype=np.float64, order="C", multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        return Rows(features, np.asarray(target, dtype=np.float64), weight=checked_weight(weight, features))

    def _mechanism(self, rows: Rows) -> Mechanism:
        features, target = rows.features, rows.target
        assert target is not None
        checks.nonnegative(alpha=self._alpha())
        spread = np.atleast_1d(target.std(axis=0))
        settings: dict[str, Any] = {
            "coordinates": Coordinates.of(features),
            "scale": np.where(spread > 0, spread, 1.0)[:, None],
        }
        data: tuple[Any, ...] = (features, target)
        answer: Callable[..., Any]
        if rows.weight is None and self.fit_intercept:
            answer = functools.partial(_ridge, alpha=self._alpha(), **settings)
        else:
            ones = np.ones(len(features)) if rows.weight is None else rows.weight
            answer, data = functools.partial(_plain_fit, plain=self._plain(), **settings), (*data, ones)
        build = functools.partial(_build, plain=self._plain(), flat=target.ndim == 1, **settings)
        some = rows.some
        return Mechanism(
            answer,
            data,
            build,
            Utility("R2", lambda made: made.score(features[some], target[some])) if len(features) > 1 else None,
            ("The coordinates of the noise: means and covariances of the columns, and the spread of the target.",),
        )


@dataclass(eq=False, repr=False)
class Ridge(_LeastSquares):
    __doc__ = f"""scikit-learn's `Ridge` with private coefficients.

    Args:
        alpha: penalty. A larger one needs less noise.
    {COMMON}"""

    alpha: float = 1.0

    def _alpha(self) -> float:
        return self.alpha

    def _plain(self) -> Any:
        return linear_model.Ridge(self.alpha, fit_intercept=self.fit_intercept)


@dataclass(eq=False, repr=False)
class LinearRegression(_LeastSquares):
    __doc__ = f"""scikit-learn's `LinearRegression` with private coefficients.
    {COMMON}"""

    def _alpha(self) -> float:
        return 0.0

    def _plain(self) -> Any:
        return linear_model.LinearRegression(fit_intercept=self.fit_intercept)


def _all_ridge(
    data: tuple[Any, ...], units: Units, worlds: Worlds, alpha: float, coordinates: Coordinates, scale: Floats
) -> Floats:
    features, target = data
    found = ridge(features, target.reshape(len(target), -1), worlds, units, alpha=alpha)
    return (coordinates.encode(found[:, :, :-1], found[:, :, -1]) / scale).reshape(worlds.m, -1)


@kernels.offers(_all_ridge)
def _ridge(
    features: Floats, target: Floats, *, alpha: float, coordinates: Coordinates, scale: Floats
) -> dict[str, Floats]:
    n = len(features)
    found = _all_ridge((features, target), Units.of(n, None), Worlds.everybody(n), alpha, coordinates, scale)
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
