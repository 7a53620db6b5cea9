"""What an attacker asks who may choose the question: means, counts and group-bys over a few people, or with an outlier.

Also what a careful custodian answers instead: every entry of the whole table is cut to public limits before anything is
selected (`limits`), and a mean over few people is drawn to the middle of the limits (`least`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["KINDS", "Query", "Where", "narrow", "outlier"]

KINDS = ("mean", "sum", "count")


@dataclass(frozen=True)
class Where:
    """A filter: rows whose entries in all these columns lie in their ranges, both ends included."""

    ranges: tuple[tuple[int, float, float], ...]  # column, low, high

    def __call__(self, rows: Floats) -> npt.NDArray[np.bool_]:
        kept = np.ones(len(rows), dtype=np.bool_)
        for column, low, high in self.ranges:
            kept &= (rows[:, column] >= low) & (rows[:, column] <= high)
        return kept


@dataclass(frozen=True)
class Query:
    """A query over a table of numbers, in the words of a database: `what(columns) where ... group by ...`.

    Always of the same form: groups are given beforehand, and what has no rows is answered with the middle of the
    limits (0 without limits).

    Args:
        columns: that are averaged or summed; a count takes them as they are and counts rows.
        where: which rows.
        by: a column and the levels that its groups have.
        limits: `(low, high)`, numbers known beforehand or one for each column: the contribution of a person is bounded
            by cutting the whole table, before filter and grouping look at it.
        least: a mean is divided by no fewer rows than this, so that one of few moves it no more than one of many.
    """

    what: str
    columns: tuple[int, ...] = (0,)
    where: Where | None = None
    by: tuple[int, tuple[float, ...]] | None = None
    limits: tuple[Any, Any] | None = None
    least: int = 0

    def __post_init__(self) -> None:
        checks.choice(KINDS, what=self.what)
        checks.count(at_least=0, least=self.least)

    def __call__(self, rows: npt.ArrayLike) -> Floats:
        table = np.asarray(rows, dtype=np.float64)
        keys = None if self.by is None else table[:, self.by[0]]  # a label, not a quantity: it is not cut
        table = table if self.limits is None else np.clip(table, *self.limits)
        kept = np.ones(len(table), dtype=np.bool_) if self.where is None else self.where(table)
        if self.by is None or keys is None:
            return self._answer(table[kept])
        return np.stack([self._answer(table[kept & (keys == level)]) for level in self.by[1]])

    def _answer(self, rows: Floats) -> Floats:
        if self.what == "count":
            return np.array([float(len(rows))])
        values, middle = rows[:, self.columns], self._middle(rows.shape[1])
        if self.what == "sum":
            return np.asarray(values.sum(axis=0))
        if len(values) == 0:
            return middle
        return np.asarray(middle + (values - middle).sum(axis=0) / max(len(values), self.least))

    def _middle(self, columns: int) -> Floats:
        if self.limits is None:
            return np.zeros(len(self.columns))
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), columns) for end in self.limits)
        return np.asarray((low + high) / 2)[list(self.columns)]


def outlier(table: npt.ArrayLike) -> tuple[int, int]:
    """The person who lies farthest out, and in which column: most quartile distances from the median."""
    given = np.asarray(table, dtype=np.float64)
    low, middle, high = np.quantile(given, [0.25, 0.5, 0.75], axis=0)
    spread = np.where(high > low, high - low, np.maximum(given.std(axis=0), 1e-300))
    person, column = np.unravel_index(int((np.abs(given - middle) / spread).argmax()), given.shape)
    return int(person), int(column)


def narrow(table: npt.ArrayLike, person: int, few: int, columns: tuple[int, ...]) -> Where:
    """A filter that selects a person and `few - 1` others: those nearest by rank in all these columns.

    Ties may add some more. Anybody can write it who knows the person's entries roughly.
    """
    given = np.asarray(table, dtype=np.float64)
    checks.count(few=few)
    if few > len(given):
        raise InputError("few must be no more than the number of rows")
    some = given[:, list(columns)]
    ranks = some.argsort(axis=0).argsort(axis=0)
    apart = np.abs(ranks - ranks[person]).max(axis=1)
    for reach in np.unique(apart):  # boxes around the person, from the smallest on, until there are enough people
        inside = some[apart <= reach]
        where = Where(
            tuple((c, float(a), float(b)) for c, a, b in zip(columns, inside.min(0), inside.max(0), strict=True))
        )
        if where(given).sum() >= few:
            return where
    raise AssertionError("the largest box holds everybody")
