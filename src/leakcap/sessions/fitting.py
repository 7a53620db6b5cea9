"""What an estimator is given when it is fitted in a session: its rows, and a way to ask for sums over people.

`Session.fit(estimator)` calls the estimator's own `fit_in_session(fitting)`, which asks once, or again and again in the
light of the answers, and returns a fitted estimator made of answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, is_regressor

from leakcap.errors import InputError
from leakcap.ground.arrays import Ints
from leakcap.kernels.bounded import Declared
from leakcap.sessions.answers import Noised
from leakcap.sessions.brought import NOBODY, BesidesNobody, Sums
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import checked_norm, off_by
from leakcap.sessions.questions import SessionQuestion
from leakcap.sessions.table import SessionTable
from leakcap.sessions.where import missing_among
from leakcap.simulate.silence import kept_quiet
from leakcap.worlds import Units
from leakcap.worlds.keyed import keyed_blocks

__all__ = ["FittedInSession", "Fitting", "fitting"]


class FittedInSession(Protocol):
    """An estimator that can be fitted in a session."""

    def fit_in_session(self, fitting: Fitting) -> Any:
        """A fitted estimator, made of what `fitting.ask` answers and of nothing else that depends on the data."""
        ...


@dataclass(frozen=True, eq=False)
class Fitting:
    """Rows for an estimator, and a way to ask; custodian side.

    Attributes:
        features: a table of numbers with the names of its columns; an array where the data are arrays.
        names: of the columns of features.
        target: one entry for each row; None where no target was named.
        units: whose rows they are.
        most_rows: of one person, at most.
        declared: bounds of the features and the most rows of a person; None where none were declared.
        norm: the most length of a row, where that was declared.
        everybody: whether everybody takes part, under a pool cap.
        declared_only: whether nothing but sums may depend on the data; then the last two people of `units` are made up,
            so that there are rows whoever else is there, and never take part.
        share: of the clock, that the whole fit may take.
        square: the whole clock, as a squared distance in deviations of noise.
        numbers: how many numbers all answers of a session may have.
    """

    features: Any
    names: tuple[str, ...]
    target: npt.NDArray[Any] | None
    units: Units
    most_rows: int
    declared: Declared | None
    norm: float | None
    everybody: bool
    declared_only: bool
    share: float
    square: float
    numbers: int
    _words: Mapping[str, Any]
    _pool_made: bool  # whether which columns there are was read off the data
    _answer: Callable[[SessionQuestion, float], Noised]
    _blocks: Callable[[int], Ints]

    def blocks(self, count: int) -> Ints:
        """The block of everybody in `units`, of so many: their own name and the session's key decide, and nothing else.

        Args:
            count: how many blocks; it must follow from declarations and answers.

        Returns:
            `(units,)` numbers of blocks.
        """
        found = self._blocks(count)
        return np.append(found, np.zeros(self.units.count - len(found), dtype=found.dtype))

    def ask(self, sums: Sums, share: float, **step: Any) -> Noised:
        """The answer to sums over people.

        Args:
            sums: what everybody brings.
            share: of the clock.
            **step: what tells this question of the fit from its others.

        Returns:
            What the noised sums make, and how large the noise is. Asked again, the same for nothing.
        """
        asked = BesidesNobody(sums) if self.declared_only else sums
        question = SessionQuestion(
            {**self._words, **step}, lambda _: asked, lambda _: asked.public, pool_made=self._pool_made
        )
        return self._answer(question, share)

    def heard_by(self, listener: Callable[[SessionQuestion, Noised], None]) -> Fitting:
        """The same, where a listener hears every question and its answer.

        Args:
            listener: is called after each.
        """

        def answer(question: SessionQuestion, share: float) -> Noised:
            noised = self._answer(question, share)
            listener(question, noised)
            return noised

        return self.answered_by(answer)

    def answered_by(self, answer: Callable[[SessionQuestion, float], Noised]) -> Fitting:
        """The same, where another desk answers.

        Args:
            answer: to a question, for a share of the clock.
        """
        return replace(self, _answer=answer)


def fitting(
    table: SessionTable,
    estimator: Any,
    answer: Callable[[SessionQuestion, float], Noised],
    *,
    columns: Any,
    target: Any,
    bounds: Any,
    norm: float | None,
    share: float,
    clock: Clock,
    everybody: bool,
    quiet: bool,
    block_key: bytes | None,
) -> Fitting:
    """The rows that an estimator asks for; those with anything missing are left out."""
    import pandas

    if not hasattr(estimator, "fit_in_session"):
        raise InputError(
            f"{type(estimator).__name__} is not made of sums over people: leakcap.estimators has Mean, Covariance, "
            "StandardScaler, Ridge, LinearRegression, PCA, KMeans, GaussianNB, NearestClassMean, LogisticRegression, "
            "DecisionTreeClassifier, RandomForestClassifier, HistGradientBoostingClassifier and, for any torch module, "
            "NeuralNetwork for sessions; Distilled makes a classifier of any model. Any other function can be asked in "
            "blocks"
        )
    unbounded = bounds is None and norm is None and not getattr(estimator, "takes_any_features", False)
    if quiet and (columns is None or unbounded):
        raise InputError(
            "for analysts, under a pool cap and over partitions everything but the sums is declared: name the columns, "
            "and give bounds=(low, high) of them that do not come from the data, or norm= for models that step along "
            "gradients"
        )
    goal = None if target is None else table.names(target)[0][0]
    names = [name for name, cells in table.columns.items() if name != goal and cells.dtype.kind in "biuf"]
    if columns is not None:
        names = table.names(columns)[0]
    mask, numbers = None, names
    if goal is not None and isinstance(estimator, BaseEstimator) and is_regressor(estimator):
        numbers = [*names, goal]
    elif goal is not None:
        mask = ~missing_among(table.columns[goal])
    with kept_quiet(quiet):
        rows = table.rows(mask, numbers)
    cells, units = rows.cells[:, : len(names)], rows.units
    aim = None if goal is None else table.columns[goal][rows.places] if mask is not None else rows.cells[:, -1]
    if quiet:  # that there are no rows, or too few of them for scikit-learn, is not for everybody to hear
        owner = np.arange(units.count) if units.of_row is None else units.of_row
        last = units.count + np.arange(NOBODY)
        units = Units(len(cells) + NOBODY, units.count + NOBODY, np.append(owner, last))
        cells = np.vstack([cells, np.zeros((NOBODY, len(names)))])
        if aim is not None:
            aim = np.append(aim, np.zeros(NOBODY)) if mask is None else np.append(aim.astype(object), [None] * NOBODY)
    told = estimator.told_in_session if hasattr(estimator, "told_in_session") else partial(estimator.get_params, False)
    settings = {name: str(value) for name, value in told().items() if value is not None}
    return Fitting(
        features=pandas.DataFrame(cells, columns=names) if table.has_names else cells,
        names=tuple(names),
        target=aim,
        units=units,
        most_rows=table.most_rows,
        declared=None if bounds is None else Declared(bounds, table.most_rows, quiet=quiet),
        norm=None if norm is None else checked_norm(norm),
        everybody=everybody,
        declared_only=quiet,
        share=share,
        square=clock.square,
        numbers=int(clock.distance / off_by(1)),
        _words={
            "kind": "fit",
            "estimator": type(estimator).__name__,
            "settings": settings,
            "columns": names,
            "target": goal,
            "bounds": bounds,
            "norm": norm,
        },
        _pool_made=columns is None,
        _answer=answer,
        _blocks=_no_blocks if block_key is None else partial(keyed_blocks, table.units.names, block_key),
    )


def _no_blocks(_: int) -> Ints:
    raise InputError("this estimator works in blocks of people, which need one table: over partitions fit another")
