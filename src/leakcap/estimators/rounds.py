"""Classifiers that learn in rounds: `fit` opens a session of its own, and every round asks for one more sum of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.estimators.base import publish
from leakcap.estimators.class_sums import OfDeclaredClasses
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows, without_column
from leakcap.estimators.public_trees import even_ladder, quantile_ladder
from leakcap.estimators.settings import refuse_data_in_settings, seed_of
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import ColumnNames
from leakcap.planning.small_groups import warn_where_few_carry
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.products import Factor, OuterProducts
from leakcap.sessions.session import Session

__all__ = ["ClassifierInRounds", "RoundRows"]

ALL = 1 - 2.0**-20  # of the clock: charges are rounded up
COUNT_SHARE = 0.02
SURE = 4.0  # deviations of its own noise, that a number of rows is taken for at least
TAKEN = {"bounds", "design", "ledger", "name", "rows_per_unit"}
GOAL = "target"


@dataclass(frozen=True, eq=False)
class RoundRows:
    """The rows of a fit in rounds, and where thresholds may lie; custodian side."""

    fitting: Fitting
    features: Floats
    codes: Ints  # -1 for rows of no class that was declared
    classes: int
    ladder: Floats  # (columns, rungs)
    public: bool  # whether nothing but sums depends on the data

    @property
    def kinds(self) -> Floats:
        """`(rows, classes)`: 1 for the class of each row; nothing for rows of none."""
        return np.eye(self.classes)[self.codes] * (self.codes >= 0)[:, None]

    def asked(self, inside: Floats, values: Floats, *, most: float, share: float, step: Any) -> tuple[Floats, float]:
        """Noised sums over people of values, `(k, v)`, by what rows are inside of, and the deviation of the noise.

        Rows of `inside` have a length of 1 at most; values are cut to `most`.
        """
        asked = OuterProducts(
            Factor.of(inside),
            Factor.of(values, most),
            self.fitting.units,
            most=most * self.fitting.most_rows,
            finish=np.asarray,
            public=self.public,
        )
        noised = self.fitting.ask(asked, share, step=step)
        return noised.value.reshape(inside.shape[1], -1), float(noised.deviations[0])

    def count(self) -> float:
        """How many rows there are, about; never less than what noise hides."""
        ones = np.ones((len(self.features), 1))
        found, deviation = self.asked(ones, ones, most=1.0, share=self.fitting.share * COUNT_SHARE, step="count")
        return max(float(found[0, 0]), SURE * deviation)

    @property
    def left(self) -> float:
        """The share that is left after `count`."""
        return self.fitting.share * (1 - COUNT_SHARE)


@dataclass(eq=False, repr=False)
class ClassifierInRounds(OfDeclaredClasses):
    """What they share: a coin for everybody, or a pool cap; and one session for all that a fit asks."""

    _: KW_ONLY
    n_thresholds: int = 16
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
        remember()
        made = session.fit(self._without_cap(), list(names), goal, bounds=(self.options or {}).get("bounds"), share=ALL)
        for name in ("feature_names_in_", "n_features_in_"):  # as the session calls columns
            vars(made.estimator_).pop(name, None)
        self._publish(made.estimator_)
        self.certificate_ = made.certificate_
        return self

    def fit_in_session(self, fitting: Fitting) -> Any:
        """A copy that is fitted to answers of a session: `leakcap.Session.fit` calls it.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The fitted copy.

        Raises:
            InputError: a cap or no target was given, or classes are missing.
        """
        made = self._copy_for_session()
        if fitting.target is None:
            raise InputError(f"say what is to be predicted: session.fit({type(self).__name__}(), target='income')")
        rows = made._session_rows(fitting)
        publish(made, made._learnt(made._in_rounds(rows, fitting), rows.classes))
        return made

    def _computed(self, rows: Rows, design: str) -> Computation:
        raise InputError(
            f"{type(self).__name__} learns in rounds, each asked in the light of those before: what other caps and "
            "settings would give is tried with random_state=0, on data that are not private or by the custodian alone"
        )

    def _session_rows(self, fitting: Fitting) -> Rows:
        declared = fitting.declared_only or self.classes is not None
        return (self._rows_of_all if declared else self._rows)(fitting.features, fitting.target, None)

    def _learnt(self, rows: RoundRows, classes: Any) -> Any:
        """A plain estimator, made of what `rows.asked` answers and of nothing else that depends on the data."""
        raise NotImplementedError

    def _in_rounds(self, rows: Rows, fitting: Fitting) -> RoundRows:
        assert rows.classes is not None and rows.target is not None
        features, bounds = rows.features, fitting.declared
        if bounds is not None:
            low, high = bounds.of_columns(ColumnNames(fitting.names), features.shape[1])
            ladder = even_ladder(low, high, checks.count(n_thresholds=self.n_thresholds))
        elif fitting.declared_only:
            raise InputError("trees need bounds of the columns that do not come from the data: give bounds=(low, high)")
        else:
            ladder = quantile_ladder(features, checks.count(n_thresholds=self.n_thresholds))
        public = bounds is not None and self.classes is not None
        return RoundRows(fitting, features, rows.target, classes=len(rows.classes), ladder=ladder, public=public)

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


def _named(features: Floats, names: tuple[str, ...]) -> Any:
    import pandas

    return pandas.DataFrame(features, columns=list(names))


def _goal(y: Any, name: str, *, cell_by_cell: bool) -> Any:
    """Labels as a column. Where classes are declared, cell by cell: in an array one text would make all of them text,
    of no class that was declared, and so show that somebody is there."""
    import pandas

    cells = np.fromiter(y, dtype=object) if cell_by_cell and not hasattr(y, "__array__") else np.asarray(y)
    return pandas.Series(cells.ravel(), name=name)
