"""Classifiers whose `fit` opens a session of its own: all that it asks is asked under one cap."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.estimators.class_sums import OfDeclaredClasses
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows, without_column
from leakcap.estimators.settings import refuse_data_in_settings, seed_of
from leakcap.ground.arrays import Floats
from leakcap.planning.small_groups import warn_where_few_carry
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.products import Factor, OuterProducts
from leakcap.sessions.session import Session

__all__ = ["ClassifierOfSession", "session_rows", "sums_by"]

ALL = 1 - 2.0**-20  # of the clock: charges are rounded up
TAKEN = {"bounds", "design", "ledger", "name", "rows_per_unit"}
GOAL = "target"


@dataclass(eq=False, repr=False)
class ClassifierOfSession(OfDeclaredClasses):
    """What they share: a coin for everybody, or a pool cap; and one session for all that a fit asks."""

    _: KW_ONLY
    classes: Any = None

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, strata: Any = None, sample_weight: Any = None) -> Any:
        """Open a session under the cap, ask for sums round by round, release what they make.

        Guarantee: what `certificate_` states, for all rounds together: with a coin for everybody, or under a pool cap.

        Args:
            X: rows and columns, an array or a DataFrame.
            y: the class of each row.
            unit: whose row it is, an array or the name of a column; that column is then not a feature.
            strata: not taken: everybody has a coin of their own.
            sample_weight: not taken: every row counts alike.

        Returns:
            The estimator itself, fitted.

        Raises:
            InputError: no cap was given, or settings that rounds do not take.
        """
        remember = self._about_to_release(X)
        refuse_data_in_settings(self)
        self._refuse_what_rounds_lack(strata, sample_weight)
        session, names, goal = self._opened(X, y, unit)
        remember()
        made = session.fit(self._without_cap(), names, goal, bounds=(self.options or {}).get("bounds"), share=ALL)
        for name in ("feature_names_in_", "n_features_in_"):  # as the session calls columns
            vars(made.estimator_).pop(name, None)
        self._publish(made.estimator_)
        self.certificate_ = made.certificate_
        return self

    def _computed(self, rows: Rows, design: str) -> Computation:
        raise InputError(
            f"{type(self).__name__} learns in rounds, each asked in the light of those before: what other caps and "
            "settings would give is tried with random_state=0, on data that are not private or by the custodian alone"
        )

    def _opened(self, X: Any, y: Any, unit: Any = None) -> tuple[Session, list[str], str]:
        X, whose = without_column(X, unit)
        declared = self._design(self.cap) == "pool" or self.classes is not None
        rows = self._rows_of_all(X, y, None) if declared else self._rows(X, y, None)
        names = self._column_names() or tuple(map(str, range(rows.features.shape[1])))
        options = {name: value for name, value in (self.options or {}).items() if name not in ("bounds", "design")}
        goal = GOAL + "_" * max([0, *(1 + name.count("_") for name in names if name.startswith(GOAL))])  # none of them
        table = _named(rows.features, names), _goal(y, goal, cell_by_cell=declared)
        session = Session(table, cap=self.cap, unit=whose, seed=seed_of(self.random_state), **options)
        if not declared and rows.target is not None:
            warn_where_few_carry(rows.target, whose)
        return session, list(names), goal

    def _session_rows(self, fitting: Fitting) -> Rows:
        declared = fitting.declared_only or self.classes is not None
        return (self._rows_of_all if declared else self._rows)(fitting.features, fitting.target, None)

    def _without_cap(self) -> Any:
        settings = self.get_params(deep=False) | {"cap": None, "options": None, "pool_public": ()}
        settings["random_state"] = seed_of(self.random_state)
        return type(self)(**settings)

    def _refuse_what_rounds_lack(self, strata: Any, sample_weight: Any) -> None:
        if strata is not None or self.strata is not None or self.worlds != "auto" or sample_weight is not None:
            raise InputError(
                "rounds are sums over people, each with a coin: leave out worlds, strata and sample_weight"
            )
        if self.pool_public:
            raise InputError(
                "the certificate of a session says itself what the pool was looked at for: leave out pool_public"
            )
        unknown = set(self.options or {}) - TAKEN
        if unknown or (self.options or {}).get("design", "bits") != "bits":
            raise InputError(
                f"{type(self).__name__} is fitted with design='bits' or under a pool cap; of options it takes "
                f"{', '.join(sorted(TAKEN))}"
            )


def opened(estimator: ClassifierOfSession, X: Any, y: Any, unit: Any = None) -> tuple[Session, list[str], str]:
    """A session over these rows under the estimator's cap, and what it calls features and target."""
    return estimator._opened(X, y, unit)


def session_rows(estimator: ClassifierOfSession, fitting: Fitting) -> Rows:
    """The rows that a session hands to an estimator, with classes that were declared or that the pool has."""
    return estimator._session_rows(fitting)


def sums_by(
    fitting: Fitting, inside: Floats, values: Floats, *, most: float, share: float, step: Any, public: bool
) -> tuple[Floats, float]:
    """Noised sums over people of values, `(k, v)`, by what rows are inside of, and the deviation of the noise.

    Rows of `inside` have a length of 1 at most; values are cut to `most`.
    """
    asked = OuterProducts(
        Factor.of(inside),
        Factor.of(values, most),
        fitting.units,
        most=most * fitting.most_rows,
        finish=np.asarray,
        public=public,
    )
    noised = fitting.ask(asked, share, step=step)
    return noised.value.reshape(inside.shape[1], -1), float(noised.deviations[0])


def _named(features: Floats, names: tuple[str, ...]) -> Any:
    import pandas

    return pandas.DataFrame(features, columns=list(names))


def _goal(y: Any, name: str, *, cell_by_cell: bool) -> Any:
    """Labels as a column. Where classes are declared, cell by cell: in an array one text would make all of them text,
    of no class that was declared, and so show that somebody is there."""
    import pandas

    cells = np.fromiter(y, dtype=object) if cell_by_cell and not hasattr(y, "__array__") else np.asarray(y)
    return pandas.Series(cells.ravel(), name=name)
