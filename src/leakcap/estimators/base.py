"""What all private estimators share: `fit` plans, certifies and releases once; the rest is post-processing.

A private estimator holds a plain scikit-learn estimator, `estimator_`, in which only released numbers are set. All
predictions come from there. The plan is kept outside of the estimator: nothing that walks, prints, copies or saves an
estimator can reach what is the custodian's.
"""

from __future__ import annotations

import copy
import functools
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from leakcap.caps import PoolMembership, as_caps
from leakcap.custody.fingerprint import row_prints
from leakcap.errors import InputError, OutputError, SimulationWarning, UselessReleaseWarning
from leakcap.estimators.company import MARK, family_of, join_family, refuse_company
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows, checked_weight, validated, without_column
from leakcap.estimators.elsewhere import meant_by
from leakcap.estimators.settings import refuse_data_in_settings, refuse_no_cap, seed_of, strata_of
from leakcap.kernels.bounded import Declared
from leakcap.kernels.contributions import bounded_contributions, contributions
from leakcap.planning.arguments import names_of, refuse_unknown
from leakcap.planning.entry import plan
from leakcap.planning.offers import Offered, Variant
from leakcap.planning.plans import Plan
from leakcap.planning.rebuilding import attempted
from leakcap.planning.small_groups import warn_of_keys, warn_where_few_carry
from leakcap.sessions.brought import around_pool, within
from leakcap.sessions.fitting import Fitting
from leakcap.simulate import Pool, describe, rebuild
from leakcap.simulate.callers import fitted_by
from leakcap.worlds import Units

__all__ = ["PrivateEstimator", "computed", "planned", "publish", "sums_of_half"]

Answer = dict[str, Any]
TRIED = 10  # simulated releases from which the expected utility is estimated
MIN_USABLE_SHARE = 0.5  # share of what the plain answer is worth, below which a release is hardly usable
MADE_OF_SUMS = (
    "Mean, Covariance, StandardScaler, PCA, Ridge, LinearRegression, GaussianNB, NearestClassMean, "
    "RandomForestClassifier, DecisionTreeClassifier, HistGradientBoostingClassifier, synthetic.Gaussian and "
    "synthetic.Tables"
)
SIMULATED = (
    "random_state makes this a simulation, not a release: whoever knows it undoes the noise. Leave it out, and publish "
    "what is fitted then"
)
OURS = {"certificate_", "estimator_", "plan_", "release_"}  # a wrapped estimator's own attributes do not take these
_plans: weakref.WeakKeyDictionary[PrivateEstimator, Plan] = weakref.WeakKeyDictionary()


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator):
    """An estimator whose fitted attributes are released with a certificate.

    Args:
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.
    """

    cap: Any = None
    worlds: Any = "auto"
    strata: Any = None
    random_state: Any = None
    pool_public: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    _knobs: ClassVar[tuple[str, ...]] = ("C", "alpha")  # strengths of regularisation: `suggest` tries others

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Settings that there are not are refused with what to write in their place."""
        refuse_unknown(cls.__name__, settings, names_of(cls.__init__), functools.partial(meant_by, cls.__name__))
        return super().__new__(cls)

    def fit(
        self, X: Any, y: Any = None, *, unit: Any = None, strata: Any = None, sample_weight: Any = None
    ) -> PrivateEstimator:
        """Simulate the fit in many worlds, add just enough noise, release once.

        Guarantee: what `certificate_` states. Every call releases again; no certificate covers two releases together.

        Args:
            X: rows and columns, an array or a DataFrame.
            y: the target, where the estimator needs one.
            unit: whose row it is, an array or the name of a column; that column is then not a feature.
            strata: groups that every world holds in proportion, an array with an entry for each row.
            sample_weight: a weight for each row, at least 0.

        Returns:
            The estimator itself, fitted.

        Raises:
            InputError: no cap was given, the settings hold data, a search or meta-estimator calls `fit`, or a clone
                has released these rows.
            OutputError: the fit gives outputs that noise cannot cover; or no estimator can be made of the released
                numbers, which are then kept in `release_`.

        Warns:
            SmallGroupWarning: fewer than five people carry one of the classes.
            UselessReleaseWarning: at this cap the noise takes most of the answer's use.
        """
        remember = self._about_to_release(X)
        made, computation = self._planned(X, y, unit=unit, sample_weight=sample_weight, cap=self.cap, strata=strata)
        self._warn_where_useless(made, computation)
        _plans[self] = made
        self.__dict__.pop("release_", None)
        remember()
        released = made.release()
        self.certificate_ = released.certificate
        estimator, kind = attempted(computation.build, released.value)
        if kind:
            self.release_ = released
            raise OutputError(
                f"no estimator could be made of the released numbers ({kind}): they are kept in `release_`, with their "
                "certificate. They are the release: fitting again would make another"
            )
        self._publish(estimator)
        return self

    def fit_in_session(self, fitting: Fitting) -> PrivateEstimator:
        """A copy that is fitted to answers of a session: `leakcap.Session.fit` calls it.

        With declared bounds sums over people are asked for, and nothing else depends on the data; without, by how much
        each person moves the pool's own fit, to first order.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The fitted copy.

        Raises:
            InputError: a cap was given, or the estimator is not made of sums over people.
        """
        made = self._copy_for_session()
        X, y, declared = fitting.features, fitting.target, fitting.declared
        if declared is None and not fitting.everybody:
            if fitting.declared_only:  # before the data are looked at: what is then refused may depend on them
                raise InputError(f"{type(self).__name__} needs bounds=(low, high) of the columns here, not norm=")
            if type(made)._sums_of_half is PrivateEstimator._sums_of_half:
                raise InputError(f"{type(self).__name__} is not made of sums over people: {MADE_OF_SUMS} are")
            rows = made._rows(X, y, None)
            computation = made._sums_of_half(rows)
            node, _ = describe(computation.answer(*computation.data), len(rows.features))
            brings = contributions(computation.answer, computation.data, fitting.units)
            sums = around_pool(brings, functools.partial(rebuild, node), scale=None)
        else:
            computation = made._sums_of_all(made._rows_of_all(X, y, None))
            bounded = bounded_contributions(computation.answer, computation.data, fitting.units, declared or Declared())
            sums = within(bounded, scale=None)
        made._publish(computation.build(fitting.ask(sums, fitting.share).value))
        return made

    def _about_to_release(self, X: Any) -> Callable[[], None]:
        """Refuse what nobody may release, warn of simulations; gives what to call just before the release."""
        refuse_company(self, PrivateEstimator)
        refuse_no_cap(self)
        if self.random_state is not None:
            warnings.warn(SIMULATED, SimulationWarning, stacklevel=3)
            return lambda: None
        family, known = family_of(self), row_prints(X)
        family.refuse_known_rows(self, known)
        return functools.partial(family.remember, self, known)

    def _copy_for_session(self) -> Any:
        if self.cap is not None:
            raise InputError("in a session the session's own cap holds: leave the estimator's cap out")
        refuse_data_in_settings(self)
        if not isinstance(self.random_state, (int, np.integer, NoneType)):  # what was answered is known by its words
            raise InputError("in a session random_state must be a number or None")
        return type(self)(**self.get_params(deep=False))

    def _planned(
        self, X: Any, y: Any, unit: Any, sample_weight: Any, cap: Any, strata: Any = None
    ) -> tuple[Plan, Computation]:
        """The plan of a fit, before any release, and the recipe that makes an estimator of its release."""
        refuse_data_in_settings(self)
        X, unit = without_column(X, unit)
        groups = strata_of(self.strata, X, y) if strata is None else strata
        design = self._design(cap)
        rows = (self._rows_of_all if design == "pool" else self._rows)(X, y, sample_weight)
        settings = copy.copy(self)  # a plan that held its own estimator would keep both in memory for good
        computation = settings._computed(rows, design)
        made = plan(
            computation.answer,
            *computation.data,
            cap=cap,
            worlds=self.worlds,
            unit=unit,
            strata=groups,
            seed=seed_of(self.random_state),
            weights=computation.weights,
            drop=computation.drop,
            pool_public=(*tuple(self.pool_public), *computation.pool_public),
            **({} if design == "pool" else {"design": design}) | (self.options or {}),
        )
        made.offered = settings._offered(rows, computation, design)
        if rows.classes is not None and rows.target is not None and design != "pool":
            warn_where_few_carry(rows.target, unit)
        if computation.keys:
            warn_of_keys(
                [(None, keys) for keys in computation.keys], Pool((X,)), Units.of(rows.features.shape[0], unit)
            )
        return made, computation

    def _design(self, cap: Any) -> str:
        """Which promise is asked for: "worlds", "bits" or "pool"."""
        if cap is not None and any(isinstance(one, PoolMembership) for one in as_caps(cap)):
            return "pool"
        return "bits" if (self.options or {}).get("design") == "bits" else "worlds"

    def _computed(self, rows: Rows, design: str) -> Computation:
        if design == "worlds":
            return self._computation(rows)
        return self._sums_of_half(rows) if design == "bits" else self._sums_of_all(rows)

    def _sums_of_half(self, rows: Rows) -> Computation:
        """The computation where a coin decides about everybody: by how much each row moves the pool's own fit."""
        return self._computation(rows)

    def _sums_of_all(self, rows: Rows) -> Computation:
        """The computation under a pool cap: sums over everybody, within declared bounds."""
        raise InputError(
            f"a pool cap is for estimators made of sums over people: {MADE_OF_SUMS}. {type(self).__name__} takes caps "
            "on who of the pool was used, such as lc.membership(0.55)"
        )

    def _offered(self, rows: Rows, computation: Computation, design: str = "worlds") -> Offered:
        """What `plan_.suggest()` needs to know: how a release is judged, and other settings that keep the task."""

        def variant(name: str, value: float) -> Variant:
            other = self._with(name, value)._computed(rows, design)
            return Variant(fn=other.answer, data=other.data, build=other.build, weights=other.weights, drop=other.drop)

        settings = [
            (name, value * by)
            for name, value in self._strengths().items()
            if isinstance(value, (int, float)) and value > 0
            for by in (1 / 4, 4)
        ]
        worth, classes = computation.utility, rows.classes
        return Offered(
            build=computation.build,
            score=worth.score if worth else None,
            name=worth.name if worth else "",
            variants={f"{name}={value:g}": functools.partial(variant, name, value) for name, value in settings},
            strata={} if classes is None or self.strata is not None else {"strata='y'": rows.target},
        )

    def _strengths(self) -> dict[str, Any]:
        """Settings that regularise, by name."""
        return {name: getattr(self, name, None) for name in self._knobs}

    def _with(self, name: str, value: float) -> PrivateEstimator:
        """A copy with another strength."""
        return copy.copy(self).set_params(**{name: value})

    @property
    def plan_(self) -> Plan:
        """The plan of the last fit. Custodian side: it is not part of the estimator and is never saved or copied.

        Returns:
            The plan, with outputs, noise, exposure and `suggest`.

        Raises:
            AttributeError: nothing was fitted, or the estimator was copied or loaded from a file.
        """
        if self not in _plans:
            raise AttributeError("there is no plan: it stays with the fitted object, in the process that fitted it")
        return _plans[self]

    def _computation(self, rows: Rows) -> Computation:
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        """The data in the form that `_computation` takes."""
        features = validated(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        return Rows(features, weight=checked_weight(weight, features))

    def _column_names(self) -> tuple[str, ...]:
        """Of the table that was given; none where it has none."""
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    def _rows_of_all(self, X: Any, y: Any, weight: Any) -> Rows:
        """The same under a pool cap, where nothing of their form may come from the data."""
        if weight is not None:
            raise InputError("under a pool cap every row counts alike: leave out sample_weight")
        return self._rows(X, y, None)

    def _publish(self, estimator: Any) -> None:
        """Take over the fitted attributes of a plain estimator; all of them come from the release."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name) and not hasattr(estimator, name):
                setattr(estimator, name, getattr(self, name))
        self.estimator_ = estimator
        for name, value in vars(estimator).items():
            if name.endswith("_") and not name.startswith("_") and name not in OURS:
                setattr(self, name, value)

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _asked(self, method: str, X: Any, **given: Any) -> Any:
        """The plain estimator's answer for rows, after a check of their names, number of columns and finite numbers."""
        plain = copy.copy(self._fitted())
        rows = validated(self, X, reset=False, dtype=np.float64, order="C")
        vars(plain).pop("feature_names_in_", None)
        return getattr(plain, method)(rows, **given)

    def _warn_where_useless(self, made: Plan, computation: Computation) -> None:
        """Before the secret is drawn, warn of a release that would be worth next to nothing."""
        worth = computation.utility
        if worth is None:
            return
        found = made.expected(worth.score, TRIED)
        if found.mean - worth.nothing < MIN_USABLE_SHARE * (found.without_noise - worth.nothing):
            warnings.warn(
                f"at this cap the noise takes most of the answer's use: expected {worth.name} {found.mean:.3g}, "
                f"without noise {found.without_noise:.3g}, of an estimator that knows nothing {worth.nothing:.3g}. "
                f"More worlds, stronger regularisation, fewer outputs or a higher cap help{self._with_coins()}: see "
                "plan_.suggest()",
                UselessReleaseWarning,
                stacklevel=3,
            )

    def _with_coins(self) -> str:
        """Where a coin for everybody is another way: it needs far less noise in what is made of sums."""
        if type(self)._sums_of_half is PrivateEstimator._sums_of_half or self._design(self.cap) != "worlds":
            return ""
        return ", and options={'design': 'bits'} most of all"

    def __sklearn_clone__(self) -> Any:
        refuse_company(self, PrivateEstimator)
        clone = super().__sklearn_clone__()
        join_family(clone, self)
        return clone

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        around = None if self.__sklearn_is_fitted__() else fitted_by(PrivateEstimator)
        return state if around is None else {**state, MARK: around}  # in another process nobody is seen calling

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if self._is_simulation:
            warnings.warn(SIMULATED, SimulationWarning, stacklevel=2)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        found = super().__repr__(N_CHAR_MAX)
        return f"{found}  # simulation, not a release" if self._is_simulation else found

    @property
    def _is_simulation(self) -> bool:
        return getattr(getattr(self, "certificate_", None), "kind", None) == "simulation"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


def planned(
    estimator: PrivateEstimator, X: Any, y: Any, *, unit: Any = None, sample_weight: Any = None, cap: Any = None
) -> tuple[Plan, Computation]:
    """The plan of a fit, of which nothing has been released, and what makes an estimator of its release."""
    return estimator._planned(X, y, unit=unit, sample_weight=sample_weight, cap=cap)


def computed(estimator: PrivateEstimator, rows: Rows, design: str) -> Computation:
    """What an estimator computes under a promise, as a part of another one: "worlds", "bits" or "pool"."""
    return estimator._computed(rows, design)


def sums_of_half(estimator: PrivateEstimator, X: Any, y: Any, weight: Any) -> Computation:
    """What an estimator asks for where a coin decides about everybody."""
    return estimator._sums_of_half(estimator._rows(X, y, weight))


def publish(estimator: PrivateEstimator, released: Any) -> None:
    """Make an estimator of what was released, as a fit does at its end."""
    estimator._publish(released)
