"""Classifiers that learn in rounds: `fit` opens a session of its own, and every round asks for one more sum of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.estimators.base import publish
from leakcap.estimators.data import Rows
from leakcap.estimators.own_session import ClassifierOfSession, session_rows, sums_by
from leakcap.estimators.public_trees import even_ladder, quantile_ladder
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import ColumnNames
from leakcap.sessions.fitting import Fitting

__all__ = ["ClassifierInRounds", "RoundRows"]

COUNT_SHARE = 0.02
SURE = 4.0  # deviations of its own noise, that a number of rows is taken for at least


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
        return sums_by(self.fitting, inside, values, most=most, share=share, step=step, public=self.public)

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
class ClassifierInRounds(ClassifierOfSession):
    """What they share: rounds, each of which asks for one more sum over people."""

    _: KW_ONLY
    n_thresholds: int = 16

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
        rows = session_rows(made, fitting)
        publish(made, made._learnt(made._in_rounds(rows, fitting), rows.classes))
        return made

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
