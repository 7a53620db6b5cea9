"""What all private estimators share: `fit` plans, certifies and releases once; the rest is post-processing.

A private estimator holds a plain scikit-learn estimator, `estimator_`, in which only released numbers are set. All
that it predicts comes from there. The plan stays outside of it: nothing that walks, prints, copies or saves an
estimator can meet what is the custodian's.
"""

from __future__ import annotations

import copy
import functools
import sys
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leakcap.advice import Offered, Variant
from leakcap.caps import Task, as_caps
from leakcap.errors import InputError, UselessReleaseWarning
from leakcap.planning import plan
from leakcap.releases import Plan

__all__ = ["COMMON", "Mechanism", "PrivateEstimator", "Rows", "Utility", "validated"]

Floats = npt.NDArray[np.float64]
Answer = dict[str, Any]
TRIED = 10  # simulated releases from which the expected utility is told
WORTH = 0.5  # share of what the plain answer is worth, below which a release is hardly usable
SCORED = 2000  # rows of the pool on which it is judged
OPTIONS = {"backend", "checkpoint", "clip", "confidence", "draws", "floor", "memory", "mode", "progress", "public"} | {
    "rate",
    "shape",
    "workers",
}
_plans: weakref.WeakKeyDictionary[PrivateEstimator, Plan] = weakref.WeakKeyDictionary()

COMMON = """
    Common parameters:
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. Needed.
        worlds: in how many possible worlds the fit is simulated.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as "columns standardised".
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.
"""


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a fit, checked; a class is its place among `classes`."""

    features: Any
    target: npt.NDArray[Any] | None = None
    classes: npt.NDArray[Any] | None = None
    weight: Floats | None = None

    @property
    def some(self) -> slice:
        """Rows to judge by: not more than it takes."""
        return slice(None, None, max(1, self.features.shape[0] // SCORED))


@dataclass(frozen=True, eq=False)
class Utility:
    """What a fitted estimator is worth on the pool, and what one that knows nothing would be worth."""

    name: str
    score: Callable[[Any], float]
    nothing: float = 0.0


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What is computed in every world, and how an estimator is made of the released numbers.

    `answer` is a function of the rows of one world, sliced alike from all of `data`, and may offer a kernel. All that
    leaves is in its answer. `build` makes a fresh, fitted, plain estimator of a released answer and of nothing else
    that depends on who took part.
    """

    answer: Callable[..., Any]
    data: tuple[Any, ...]
    build: Callable[[Any], Any]
    utility: Utility | None = None
    pool_public: tuple[str, ...] = ()
    weights: Any = "equal"  # answers come in units in which errors count alike
    drop: tuple[str, ...] = ()


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator):
    """An estimator whose fitted attributes are released with a certificate."""

    cap: Any = None
    worlds: Any = 1024
    strata: Any = None
    random_state: Any = None
    pool_public: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    _knobs: ClassVar[tuple[str, ...]] = ("C", "alpha")  # strengths of regularisation: `suggest` tries others

    def fit(
        self, X: Any, y: Any = None, *, unit: Any = None, strata: Any = None, sample_weight: Any = None
    ) -> PrivateEstimator:
        """Simulate the fit in many worlds, add just enough noise, release once.

        Args:
            X: rows and columns, an array or a DataFrame.
            y: the target, where there is one.
            unit: whose row it is, an array or the name of a column (which is then no feature).
            strata: groups that every world holds in proportion, an array.
            sample_weight: a weight for each row.
        """
        _refuse_searches()
        if self.cap is None:
            raise InputError(f"say what may leak: {type(self).__name__}(..., cap=lc.membership(0.55)), for example")
        made, mechanism = self._planned(X, y, unit, sample_weight, self.cap, strata)
        self._warn_where_useless(made, mechanism)
        _plans[self] = made
        released = made.release()
        self._publish(mechanism.build(released.value))
        self.certificate_ = released.certificate
        return self

    def _planned(
        self, X: Any, y: Any, unit: Any, sample_weight: Any, cap: Any, strata: Any = None
    ) -> tuple[Plan, Mechanism]:
        """The plan of a fit, of which nothing has been released, and what makes an estimator of its release."""
        self._refuse_data_in_settings()
        X, unit = _without_column(X, unit)
        groups = self._strata(X, y) if strata is None else strata
        rows = self._rows(X, y, sample_weight)
        settings = copy.copy(self)  # the plan must not hold the estimator that it belongs to: both would stay for good
        mechanism = settings._mechanism(rows)
        made = plan(
            mechanism.answer,
            *mechanism.data,
            cap=cap,
            worlds=self.worlds,
            unit=unit,
            strata=groups,
            seed=self._seed(),
            weights=mechanism.weights,
            drop=mechanism.drop,
            pool_public=(*tuple(self.pool_public), *mechanism.pool_public),
            **(self.options or {}),
        )
        made.offered = settings._offered(rows, mechanism)
        return made, mechanism

    def _offered(self, rows: Rows, mechanism: Mechanism) -> Offered:
        """What `plan_.suggest()` needs to know: how a release is judged, and other settings that keep the task."""

        def variant(name: str, value: float) -> Variant:
            other = self._with(name, value)._mechanism(rows)
            return Variant(other.answer, other.data, other.build, other.weights, other.drop)

        settings = [
            (name, value * by)
            for name, value in self._strengths().items()
            if isinstance(value, (int, float)) and value > 0
            for by in (1 / 4, 4)
        ]
        worth, classes = mechanism.utility, rows.classes
        return Offered(
            mechanism.build,
            worth.score if worth else None,
            worth.name if worth else "",
            {f"{name}={value:g}": functools.partial(variant, name, value) for name, value in settings},
            {} if classes is None or self.strata is not None else {"strata='y'": rows.target},
        )

    def _strengths(self) -> dict[str, Any]:
        """Settings that regularise, by name."""
        return {name: getattr(self, name, None) for name in self._knobs}

    def _with(self, name: str, value: float) -> PrivateEstimator:
        """Another one with another strength."""
        return copy.copy(self).set_params(**{name: value})

    @property
    def plan_(self) -> Plan:
        """The plan of the last fit; custodian side. It is not part of the estimator: it is never saved or copied."""
        if self not in _plans:
            raise AttributeError("there is no plan: it stays in the process, and with the object, that was fitted")
        return _plans[self]

    def _mechanism(self, rows: Rows) -> Mechanism:
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        """The data as the mechanism takes them."""
        features = validated(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        return Rows(features, weight=checked_weight(weight, features))

    def _publish(self, estimator: Any) -> None:
        """Take over the fitted attributes of a plain estimator, all of which come from the release."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name) and not hasattr(estimator, name):
                setattr(estimator, name, getattr(self, name))
        self.estimator_ = estimator
        for name, value in vars(estimator).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _asked(self, method: str, X: Any, **given: Any) -> Any:
        """What the plain estimator says of rows, which are checked here: names, number of columns, finite numbers."""
        plain = copy.copy(self._fitted())
        rows = validated(self, X, reset=False, dtype=np.float64, order="C")
        vars(plain).pop("feature_names_in_", None)
        return getattr(plain, method)(rows, **given)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _refuse_data_in_settings(self) -> None:
        """Settings are saved with an estimator: nothing that tells about people or worlds may be among them."""
        if not isinstance(self.worlds, (int, np.integer, str)):
            raise InputError("worlds must be a number or 'auto': for worlds of your own use leakcap.plan")
        if not isinstance(self.strata, (str, NoneType)):
            raise InputError("strata must be 'y' or the name of a column: give an array to fit(X, y, strata=...)")
        if self.cap is not None and any(isinstance(cap, Task) and not callable(cap.wins) for cap in as_caps(self.cap)):
            raise InputError("the wins of a task must be a function of the worlds here: they are drawn by fit")
        unknown = set(self.options or {}) - OPTIONS
        if unknown:
            raise InputError(f"options may hold {', '.join(sorted(OPTIONS))}, not {', '.join(sorted(unknown))}")

    def _strata(self, X: Any, y: Any) -> Any:
        if self.strata is None:
            return None
        if self.strata == "y":
            if y is None:
                raise InputError("strata='y' requires y to be passed, but the target y is None")
            groups = np.asarray(y)
            return groups.ravel() if groups.shape[1:] == (1,) else groups
        return np.asarray(_column(X, self.strata))

    def _warn_where_useless(self, made: Plan, mechanism: Mechanism) -> None:
        """Before the secret is drawn: a release that is worth nothing should not be made unawares."""
        worth = mechanism.utility
        if worth is None:
            return
        build, score = mechanism.build, worth.score
        found = made.expected(lambda value: score(build(value)), TRIED)
        if found.mean - worth.nothing < WORTH * (found.without_noise - worth.nothing):
            warnings.warn(
                f"at this cap the noise takes most of the answer's use: expected {worth.name} {found.mean:.3g}, "
                f"without noise {found.without_noise:.3g}, of an estimator that knows nothing {worth.nothing:.3g}. "
                "More worlds, stronger regularisation, fewer outputs or a higher cap help: see plan_.suggest()",
                UselessReleaseWarning,
                stacklevel=3,
            )

    def __sklearn_clone__(self) -> Any:
        _refuse_searches()
        return super().__sklearn_clone__()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """scikit-learn's own checks of data, under the name that they have in this version of it."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before 1.6
        if checks.pop("skip_check_array", False):
            checks["cast_to_ndarray"] = False
        return estimator._validate_data(X, y, **checks)
    return validate_data(estimator, X, y, **checks)


def checked_weight(weight: Any, features: Any) -> Floats | None:
    """Weights of the rows, or None where all are alike."""
    if weight is None:
        return None
    from sklearn.utils.validation import _check_sample_weight

    found = np.asarray(_check_sample_weight(weight, features, dtype=np.float64))
    if (found < 0).any() or not found.any():
        raise InputError("sample_weight must be positive or zero, and not all zero")
    return None if (found == found[0]).all() and found[0] == 1 else found


def _column(X: Any, name: str) -> Any:
    if not hasattr(X, "columns") or name not in list(X.columns):
        raise InputError(f"there is no column {name!r}: give an array, or X as a table with that column")
    return X[name]


def _without_column(X: Any, unit: Any) -> tuple[Any, Any]:
    """A unit that is named by a column is no feature."""
    if not isinstance(unit, str):
        return X, unit
    whose = np.asarray(_column(X, unit))
    return X[[name for name in X.columns if name != unit]], whose


def _refuse_searches() -> None:
    """A search or cross-validation around a private estimator would release once for every fit."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("sklearn.model_selection"):
            raise InputError(
                "a search or cross-validation around a private estimator would release at every fit, and nothing "
                "bounds them together. Put the search inside, Private(GridSearchCV(...), cap=...), or compare "
                "settings with privacy_utility_curve and plan_.suggest(), which release nothing"
            )
        frame = frame.f_back  # type: ignore[assignment]
