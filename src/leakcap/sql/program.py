"""What a question becomes: sums over people that are released one after the other, and a public query over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Bools, Floats
from leakcap.sql.aggregates import Aggregate, SumOf
from leakcap.sql.by_value import ByValue
from leakcap.sql.expressions import Expression
from leakcap.sql.quantiles import QuantileTree
from leakcap.sql.ratios import Ratio
from leakcap.sql.relations import Relation

__all__ = ["Output", "Program", "SqlRelease"]

CLEAR = 3.0  # deviations of its noise by which a count is clear of 0


@dataclass(frozen=True)
class SqlRelease:
    """Sums by group over a unit-local relation, which become a public table."""

    table: str
    base: Relation
    keys: tuple[Expression, ...]
    key_names: tuple[str, ...]  # columns of the public table
    aggregates: tuple[Aggregate, ...]
    value_names: tuple[str, ...]
    sums: tuple[SumOf, ...]
    places: tuple[tuple[int, ...], ...]  # of each aggregate's numbers: among the sums, and then what is held
    key_texts: tuple[str, ...] = ()  # as they were asked
    tree: QuantileTree | None = None  # whose nodes are the last key: its quantiles are the values
    candidates: str | None = None  # SQL of keys that are read off the pool
    threshold: float | None = None  # of the first value, from which a group is shown
    asked_for: tuple[Relation, tuple[Expression, ...]] | None = None  # the rows and keys outside that ask for groups
    held: tuple[ByValue, ...] = ()  # numbers of a group that are no sums

    @property
    def numbers(self) -> int:
        """Of each group."""
        return len(self.sums) + len(self.held)

    def shows(self, counts: Floats, deviations: Floats | float = 0.0) -> Bools:
        """Which groups are shown: with a threshold, those that reach it and are clear of their own noise."""
        if self.threshold is None:
            return np.ones(len(counts), dtype=np.bool_)
        return np.asarray(counts >= np.maximum(self.threshold, CLEAR * np.asarray(deviations)))


@dataclass(frozen=True)
class Output:
    """A column of the answer."""

    name: str
    column: str  # in the last query
    kind: str
    released: tuple[str, str] | None = None  # the released table and column that it is, where it is one as it stands
    ratio: Ratio | None = None  # of released columns, where its interval is known


@dataclass(frozen=True)
class Program:
    """A question that can be answered."""

    text: str  # as it was asked
    releases: tuple[SqlRelease, ...]
    last: str  # public SQL
    outputs: tuple[Output, ...]
