"""What is asked of a group of rows: aggregates as sums over people, and what noised sums make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from leakcap.ground.arrays import Floats
from leakcap.sql.expressions import Expression, Range
from leakcap.sql.kinds import NAMES_PEOPLE, NUMBERS, numeric
from leakcap.sql.reading import Reader, only
from leakcap.sql.refusals import Node, refused

__all__ = ["AGGREGATES", "Aggregate", "SumOf", "aggregate", "has_room", "sums_of", "value_from"]

AGGREGATES = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.CovarSamp: "covar_samp",
    exp.CovarPop: "covar_pop",
    exp.Corr: "corr",
    exp.Median: "median",
}
PAIRS = ("covar_samp", "covar_pop", "corr")
SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
IN_WORLDS = (
    "needs a session with design='worlds'; as sums over people there are count, sum, avg, var, stddev, covar, corr"
)


def has_room(one: Expression) -> bool:
    """Whether a sum of these is exact and never too large: 64 bits have room in 128, decimals need a range."""
    if one.kind != "decimal":
        return one.kind == "int"
    return one.range is not None and one.digits is not None and max(map(abs, one.range)) * 10.0 ** one.digits[1] < 1e28


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query."""

    name: str
    args: tuple[Expression, ...]  # none for count(*)
    distinct: bool = False
    where: Expression | None = None  # FILTER

    @property
    def sql(self) -> str:
        """As DuckDB is asked, on rows that are public or one person's."""
        given = ", ".join(one.safe for one in self.args) or "*"
        if self.name in ("sum", "avg") and self.args[0].kind == "decimal":
            digits = self.args[0].digits
            given = f"{given}::DECIMAL(38,{digits[1]})" if digits and has_room(self.args[0]) else f"{given}::DOUBLE"
        made = f"{self.name}({'DISTINCT ' if self.distinct else ''}{given})"
        made = f"{made} FILTER (WHERE {self.where.safe})" if self.where is not None else made
        # Whole numbers stay such as a sum of them has room for: so no sum of sums can fail.
        return f"TRY_CAST({made} AS BIGINT)" if self.name == "sum" and self.args[0].kind == "int" else made

    def facts(self, most: float | None) -> Expression:
        """What is known of it where a group has at most so many rows."""
        first = self.args[0] if self.args else None
        private = any(one.private for one in self.args) or bool(self.where and self.where.private)
        if self.name == "count":
            span: Range | None = None if most is None else (0.0, most)
            return Expression("column", "int", range=span, null=False, private=private)
        assert first is not None
        if self.name in ("min", "max"):
            return Expression(
                "column",
                first.kind,
                digits=first.digits,
                range=first.range,
                levels=first.levels,
                private=private,
                declared=first.declared,
            )
        if self.name == "sum":
            span = None
            if most is not None and first.range is not None:
                span = (min(0.0, most * first.range[0]), max(0.0, most * first.range[1]))
            kind = "float" if first.kind == "decimal" and not has_room(first) else first.kind
            digits = (38, first.digits[1]) if kind == "decimal" and first.digits else None
            return Expression(
                "column", kind, digits=digits, range=span, private=private, wild=kind == "float" and span is None
            )
        span = first.range if self.name in ("avg", "median") else None
        return Expression("column", "float", range=span, private=private, wild=span is None)


@dataclass(frozen=True)
class SumOf:
    """A sum over the rows of a group: of an expression less its middle, or of ones."""

    of: tuple[Expression, ...]  # multiplied; none for a count
    middles: tuple[float, ...] = ()
    where: Expression | None = None
    distinct: Expression | None = None  # count different values of this instead

    @property
    def size(self) -> float:
        """The most that one row adds, in absolute value."""
        size = 1.0
        for one, middle in zip(self.of, self.middles, strict=True):
            assert one.range is not None
            size *= max(abs(one.range[0] - middle), abs(one.range[1] - middle))
        return size


def aggregate(node: Node, reader: Reader) -> Aggregate:
    """An aggregate as it is written in a query."""
    where = None
    if isinstance(node, exp.Filter):
        only(node, {"this", "expression"})
        where = reader.truth(node.expression.this)
        node = node.this
    name = AGGREGATES.get(type(node))
    if name is None:
        raise refused("aggregates are " + ", ".join(sorted({*AGGREGATES.values()})), node)
    only(node, {"this", "expression", "expressions", "big_int"})
    first, distinct = node.this, False
    if isinstance(first, exp.Distinct):
        if len(first.expressions) != 1 or name not in ("count", "sum", "avg", "min", "max"):
            raise refused("DISTINCT takes one column here", node)
        first, distinct = first.expressions[0], True
    if name == "count" and (first is None or isinstance(first, exp.Star)):
        return Aggregate("count", (), where=where)
    given = [first, node.expression] if name in PAIRS else [first]
    if node.args.get("expressions"):
        raise refused(f"{name} takes {len(given)} argument{'s' if len(given) > 1 else ''} here", node)
    args = tuple(reader.read(one) for one in given)
    if name != "count" and any(one.identity is not None for one in args):
        raise refused(NAMES_PEOPLE, node)
    if name not in ("count", "min", "max"):
        for one in args:
            if one.kind not in (*NUMBERS, "bool"):
                raise refused(f"{name} is of numbers, and this is of kind {one.kind}", node)
        args = tuple(numeric(one) for one in args)
    return Aggregate(name, args, distinct, where)


def sums_of(one: Aggregate, node: Node) -> list[SumOf]:
    """The sums over people that an aggregate is made of."""
    if one.name in ("min", "max", "median"):
        raise refused(f"{one.name} {IN_WORLDS}", node)
    if one.distinct:
        if one.name != "count" or one.args[0].identity is None:
            counted = f"DISTINCT values of a column {IN_WORLDS}; people and their keys can be counted"
            other = f"{one.name} of DISTINCT values is not answered: count them, or leave DISTINCT out"
            raise refused(counted if one.name == "count" else other, node)
        return [SumOf((), where=one.where, distinct=one.args[0])]
    for arg in one.args:
        if arg.range is None and one.name != "count":
            raise refused(
                "what is added up needs a range: give bounds={'column': (low, high)} when registering, or cut it with "
                "least(greatest(value, low), high)",
                node,
            )
    known = one.where
    for arg in one.args:
        if arg.null:
            there = Expression("not", "bool", (Expression("is null", "bool", (arg,)),), private=arg.private)
            known = there if known is None else Expression("and", "bool", (known, there), private=True)
    if one.name == "count":
        return [SumOf((), where=known)]
    if one.name == "sum":
        return [SumOf(one.args, (0.0,), known)]
    middles = tuple(float(arg.range[0] + arg.range[1]) / 2 for arg in one.args if arg.range is not None)
    ones, first = SumOf((), where=known), SumOf(one.args[:1], middles[:1], known)
    if one.name == "avg":
        return [ones, first]
    if one.name in SPREADS:
        return [ones, first, SumOf(one.args * 2, middles * 2, known)]
    second = SumOf(one.args[1:], middles[1:], known)
    found = [ones, first, second, SumOf(one.args, middles, known)]
    if one.name == "corr":
        found += [SumOf(one.args[:1] * 2, middles[:1] * 2, known), SumOf(one.args[1:] * 2, middles[1:] * 2, known)]
    return found


def value_from(one: Aggregate) -> Callable[[Floats], Floats]:
    """The aggregate from its sums, `(groups, sums)`; NaN where there is none."""

    def middle(at: int) -> float:
        low, high = one.args[at].range or (0.0, 0.0)
        return (low + high) / 2

    def made(sums: Floats) -> Floats:
        with np.errstate(all="ignore"):
            if one.name in ("count", "sum", "min", "max"):
                return sums[:, 0]
            n = np.where(sums[:, 0] > 0, sums[:, 0], np.nan)
            if one.name == "avg":
                return middle(0) + np.where(sums[:, 0] > 0, sums[:, 1] / n, 0)  # of nobody: the declared centre
            less = np.where(n > 1, n - 1, np.nan) if one.name.endswith("_samp") else n
            if one.name in SPREADS:
                spread = np.maximum(sums[:, 2] - sums[:, 1] ** 2 / n, 0) / less
                return spread if one.name.startswith("var") else np.sqrt(spread)
            both = sums[:, 3] - sums[:, 1] * sums[:, 2] / n
            if one.name != "corr":
                return both / less
            first, second = sums[:, 4] - sums[:, 1] ** 2 / n, sums[:, 5] - sums[:, 2] ** 2 / n
            return np.where((first > 0) & (second > 0), np.clip(both / np.sqrt(first * second), -1, 1), np.nan)

    return made
