"""Arithmetic on released numbers of which an interval is known: a number times a factor, and a ratio of two sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.sql.expressions import Expression
from leakcap.sql.intervals import LEVEL, ratio_ends

__all__ = ["Ratio", "ratio_of"]

SUMS = ("count", "sum")


@dataclass(frozen=True)
class Ratio:
    """`factor * top / bottom`, of columns of one released table; without a bottom, `factor * top`."""

    table: str
    factor: float
    top: str
    bottom: str | None = None

    def with_ends(
        self, values: Mapping[str, Floats], ends: Mapping[str, tuple[Floats, Floats]]
    ) -> tuple[Floats, Floats, Floats]:
        """The ratio of every group with the ends of its interval; NaN where the bottom is below its own noise."""
        value = values[self.top]
        low, high = ends[self.top]
        if self.bottom is not None:
            below = values[self.bottom]
            deviations = [(ends[name][1] - ends[name][0]) / (2 * LEVEL) for name in (self.bottom, self.top)]
            low, high = ratio_ends(below, value, *deviations)
            few = np.abs(below) <= deviations[0]
            with np.errstate(all="ignore"):
                value, low, high = (np.where(few, np.nan, one) for one in (value / below, low, high))
        found = value * self.factor, low * self.factor, high * self.factor
        return found if self.factor >= 0 else (found[0], found[2], found[1])


def ratio_of(
    one: Expression, released: Mapping[str, tuple[str, str]], origins: Mapping[str, Expression]
) -> Ratio | None:
    """What an expression is of released columns, each with its table and aggregate; None where it is something else."""
    while one.op == "column" and one.value not in released and one.value in origins and origins[one.value] != one:
        one = origins[one.value]
    if one.op == "column" and one.value in released:
        return Ratio(released[one.value][0], 1.0, one.value)
    if one.op == "cast" and one.kind == "float":
        return ratio_of(one.args[0], released, origins)
    if one.op not in ("multiply", "divide"):
        return None
    left, right = one.args
    if one.op == "multiply" and left.op == "literal":
        left, right = right, left
    first = ratio_of(left, released, origins)
    if first is None:
        return None
    if right.op == "literal":
        return _times(first, right, up=one.op == "multiply")
    second = ratio_of(_not_zero(right), released, origins) if one.op == "divide" else None
    if second is None or first.bottom or second.bottom or first.table != second.table or not second.factor:
        return None
    if any(released[name][1] not in SUMS for name in (first.top, second.top)):
        return None
    return Ratio(first.table, first.factor / second.factor, first.top, second.top)


def _times(one: Ratio, by: Expression, up: bool) -> Ratio | None:
    number = 0.0 if by.range is None else by.range[0]
    if not number:
        return None
    return Ratio(one.table, one.factor * number if up else one.factor / number, one.top, one.bottom)


def _not_zero(one: Expression) -> Expression:
    """What stands in nullif(..., 0): of too few there is no ratio anyway."""
    if one.op != "case" or len(one.args) != 3 or one.args[1].op != "literal" or one.args[1].value is not None:
        return one
    return one.args[2] if one.args[0].op == "compare" and one.args[0].value == "=" else one
