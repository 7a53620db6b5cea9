"""What is asked of a group of rows: aggregates as sums over people, and what noised sums make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from leakcap.ground.arrays import Floats
from leakcap.sql.expressions import Expression, Range
from leakcap.sql.kinds import NAMES_PEOPLE, NUMBERS, in_grains, numeric
from leakcap.sql.reading import Reader, only
from leakcap.sql.refusals import Node, refused

__all__ = ["QUANTILES", "Aggregate", "SumOf", "aggregate", "has_room", "is_aggregate", "sums_of", "value_from"]

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
    exp.CountIf: "count_if",
    exp.ApproxDistinct: "count",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_cont",
}
ANONYMOUS = {"mean": "avg", "favg": "avg", "fsum": "sum", "kahan_sum": "sum", "sumkahan": "sum"}
QUANTILES = ("median", "quantile_cont", "quantile_disc")
TRUTHS = ("bool_and", "bool_or")
PAIRS = ("covar_samp", "covar_pop", "corr")
SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
IN_WORLDS = (
    "needs a session with design='worlds'; as sums over people there are count, sum, avg, var, stddev, covar, corr, "
    "median and quantile_cont"
)
NEEDS_RANGE = (
    "what is added up needs a range: give bounds={'column': (low, high)} when registering, or cut it with "
    "least(greatest(value, low), high)"
)
INSTEAD = {
    "bool_and": "whether all are would tell of the one who is not: ask for avg of the condition, the share of rows",
    "bool_or": "whether anybody is would tell of whoever is alone: ask for count_if of the condition",
}


VALUE = "one row's value would leave: ask for counts, sums or quantiles, or count(*) by the values of a public list"
ELSEWHERE = {
    "mode": "ask for count(*) by its values, and ORDER BY it: the first is the most frequent",
    **dict.fromkeys(("first", "last", "anyvalue", "argmax", "argmin", "groupconcat", "arrayagg", "list"), VALUE),
}


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
    level: float | None = None  # of a quantile

    @property
    def sql(self) -> str:
        """As DuckDB is asked, on rows that are public or one person's; the order in which it meets them is nothing.

        Sums of fractions round at every step, and other people's rows move where the engine cuts a person's in two.
        """
        args = [one.safe for one in self.args]
        rows = f" FILTER (WHERE {self.where.safe})" if self.where is not None else ""
        whole = self.name in ("sum", "avg") and self.args[0].kind in ("int", "decimal")
        if whole and self.args[0].kind == "decimal":
            digits = self.args[0].digits
            whole = digits is not None and has_room(self.args[0])
            args = [f"{args[0]}::DECIMAL(38,{digits[1]})" if whole and digits else f"{args[0]}::DOUBLE"]
        rounds = not whole and self.name in ("sum", "avg", *SPREADS, *PAIRS)
        if rounds and self.name in ("sum", "avg") and self.args[0].range is not None and not self.distinct:
            grains, grain = in_grains(self.args[0])
            total = f"(sum({grains}){rows})::DOUBLE * {grain!r}"
            return f"({total})" if self.name == "sum" else f"({total} / nullif(count({args[0]}){rows}, 0))"
        given = ", ".join(args) or "*"
        order = f" ORDER BY {given}" if rounds else ""
        given = given if self.level is None else f"{given}, {self.level!r}"
        made = f"{self.name}({'DISTINCT ' if self.distinct else ''}{given}{order}){rows}"
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
        if self.name in (*TRUTHS, "quantile_disc"):
            return Expression("column", first.kind, digits=first.digits, range=first.range, private=private)
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
        span = first.range if self.name in ("avg", "median", "quantile_cont") else None
        return Expression("column", "float", range=span, private=private, wild=span is None)


@dataclass(frozen=True)
class SumOf:
    """A sum over the rows of a group: of an expression less its middle, or of ones."""

    of: tuple[Expression, ...]  # multiplied; none for a count
    middles: tuple[float, ...] = ()
    where: Expression | None = None
    distinct: Expression | None = None  # count different values of this instead
    people: bool = False  # whether these are the people themselves

    @property
    def size(self) -> float:
        """The most that one row adds, in absolute value."""
        size = 1.0
        for one, middle in zip(self.of, self.middles, strict=True):
            assert one.range is not None
            size *= max(abs(one.range[0] - middle), abs(one.range[1] - middle))
        return size

    def in_group(self, rows: float) -> float:
        """The most that one person with so many rows brings to the sum of a group."""
        return 1.0 if self.people else rows * self.size

    def in_all(self, rows: float) -> float:
        """The same for all groups together: a limit of one sum, as if all of it were in one group.

        People are counted once in every group, and each of their rows is in one: so the limit is a root.
        """
        return float(np.sqrt(rows)) if self.people else rows * self.size


def is_aggregate(node: Node) -> bool:
    """Whether a node is the call of an aggregate, known here or not."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in ANONYMOUS
    return isinstance(node, (exp.Filter, exp.WithinGroup, exp.AggFunc, *AGGREGATES)) and not isinstance(
        node, exp.Window
    )


def aggregate(node: Node, reader: Reader) -> Aggregate:
    """An aggregate as it is written in a query."""
    where = None
    if isinstance(node, exp.Filter):
        only(node, {"this", "expression"})
        where = reader.truth(node.expression.this)
        node = node.this
    node, level = _quantile(node)
    name = ANONYMOUS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else AGGREGATES.get(type(node))
    if name is None:
        raise refused(
            ELSEWHERE.get(node.key, "aggregates are " + ", ".join(sorted({"mean", *AGGREGATES.values()}))), node
        )
    only(node, {"this", "expression", "expressions", "big_int"})
    given, distinct = _arguments(node, name)
    first = given[0]
    if isinstance(node, exp.ApproxDistinct):
        distinct = True
    if isinstance(first, exp.Distinct):
        if len(first.expressions) != 1 or name not in ("count", "sum", "avg", "min", "max"):
            raise refused("DISTINCT takes one column here", node)
        given, distinct = [first.expressions[0]], True
    elif name == "count" and (first is None or isinstance(first, exp.Star)):
        return Aggregate("count", (), where=where)
    if name == "count_if":
        condition = reader.truth(first)
        return Aggregate("count", (), where=condition if where is None else _both(where, condition))
    args = tuple(reader.read(one) for one in given)
    if name != "count" and any(one.identity is not None for one in args):
        raise refused(NAMES_PEOPLE, node)
    if name in TRUTHS:
        return Aggregate(name, (reader.truth(first),), where=where)
    if name not in ("count", "min", "max"):
        for one in args:
            if one.kind not in (*NUMBERS, "bool"):
                raise refused(f"{name} is of numbers, and this is of kind {one.kind}", node)
        args = tuple(numeric(one) for one in args)
    return Aggregate(name, args, distinct=distinct, where=where, level=level)


def _arguments(node: Node, name: str) -> tuple[list[Node], bool]:
    """What an aggregate is of."""
    if isinstance(node, exp.Anonymous):
        if len(node.expressions) != 1:
            raise refused(f"{name} takes 1 argument here", node)
        return list(node.expressions), False
    if node.args.get("expressions"):
        raise refused(f"{name} takes {2 if name in PAIRS else 1} argument{'s' * (name in PAIRS)} here", node)
    this = node.this
    if isinstance(this, exp.Cast) and name in TRUTHS:
        this = this.this  # written by the parser
    return ([this, node.expression] if name in PAIRS else [this]), False


def _quantile(node: Node) -> tuple[Node, float | None]:
    """A quantile without its level, and the level."""
    turned = False
    if isinstance(node, exp.WithinGroup):
        order = node.expression.expressions
        if not isinstance(node.this, (exp.PercentileCont, exp.PercentileDisc)) or len(order) != 1:
            raise refused("WITHIN GROUP goes with percentile_cont(0.5), ordered by one column", node)
        given, turned = node.this.this, bool(order[0].args.get("desc"))
        node = type(node.this)(this=order[0].this, expression=given)
    if not isinstance(node, (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)):
        return node, None
    written = node.args.get("quantile") or node.expression
    try:
        level = float(written.this) if isinstance(written, exp.Literal) and not written.is_string else -1.0
    except ValueError:
        level = -1.0
    if not 0 <= level <= 1:
        raise refused("a quantile has one level from 0 to 1, as in quantile_cont(age, 0.9): ask for each", node)
    return type(node)(this=node.this), 1 - level if turned else level


def _both(one: Expression, other: Expression) -> Expression:
    return Expression("and", "bool", (one, other), private=one.private or other.private)


def sums_of(one: Aggregate, node: Node) -> list[SumOf]:
    """The sums over people that an aggregate is made of."""
    _refuse_no_sum(one, node)
    if one.distinct:
        return [SumOf((), where=one.where, distinct=one.args[0])]
    known = one.where
    for arg in one.args:
        if arg.null:
            there = Expression("not", "bool", (Expression("is null", "bool", (arg,)),), private=arg.private)
            known = there if known is None else _both(known, there)
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


def _refuse_no_sum(one: Aggregate, node: Node) -> None:
    if one.name in INSTEAD:
        raise refused(INSTEAD[one.name], node)
    if one.name in ("min", "max"):
        raise refused(f"{one.name} {IN_WORLDS}", node)
    if one.distinct and (one.name != "count" or one.args[0].identity is None):
        counted = f"DISTINCT values of a column {IN_WORLDS}; people and their keys can be counted"
        other = f"{one.name} of DISTINCT values is not answered: count them, or leave DISTINCT out"
        raise refused(counted if one.name == "count" else other, node)
    if one.name != "count" and any(arg.range is None for arg in one.args):
        raise refused(NEEDS_RANGE, node)


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
