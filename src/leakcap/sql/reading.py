"""Expressions of a query, read into our own: what is not on the list here does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from leakcap.sql.allowed import (
    ARITHMETIC,
    CASTS,
    COMPARISONS,
    CURVED,
    DATE_PARTS,
    PART_RANGES,
    PARTS_OF,
    ROUNDED,
    TEXTS,
    TRUNCATED,
    only,
)
from leakcap.sql.expressions import Expression, Range, literal, short, span, unknown
from leakcap.sql.kinds import (
    MOMENTS,
    NUMBERS,
    alike,
    as_float,
    chosen,
    combined,
    made,
    moment,
    moved,
    number_of,
    numeric,
    range_of_extremes,
    same_kind,
    united,
    wrong_interval,
    years,
)
from leakcap.sql.refusals import Node, refused

__all__ = ["Reader", "conjuncts", "only"]

LONGEST = 2000  # nodes of one query's expressions


class Reader:
    """Reads expressions, names being looked up by `find` and what only a whole query knows by `other`."""

    def __init__(self, find: Callable[[exp.Column], Expression], other: Callable[[Node], Expression | None]) -> None:
        self.find, self.other, self.left = find, other, LONGEST

    def read(self, node: Node) -> Expression:
        self.left -= 1
        if self.left < 0:
            raise refused(f"the question has more than {LONGEST:,} parts: ask several")
        known = self.other(node)
        if known is not None:
            return known
        for kinds, method in METHODS:
            if type(node) in kinds:
                only(node, PARTS_OF.get(type(node), {"this", "expression"}))
                return short(method(self, node))
        raise refused(
            f"{node.key.replace('_', ' ').lower()} is not among what can be asked: use arithmetic, comparisons, CASE, "
            "IN, LIKE, date parts and the functions of the guide",
            node,
        )

    def number(self, node: Node) -> Expression:
        return _counted(self.read(node), node)

    def text(self, node: Node) -> Expression:
        found = self.read(node)
        if found.kind not in ("text", "null"):
            raise refused(f"a text is needed here, and this is of kind {found.kind}", node)
        return found

    def truth(self, node: Node) -> Expression:
        found = self.read(node)
        if found.kind not in ("bool", "null"):
            raise refused("a condition is needed here, such as age > 40", node)
        return found

    def whole_number(self, node: Node | None, most: int) -> int:
        """A literal."""
        found = None if node is None else self.read(node)
        if found is None or found.op not in ("literal", "negate") or found.range is None or found.kind != "int":
            raise refused("a whole number is needed here, as a literal", node)
        value = int(found.range[0])
        if abs(value) > most:
            raise refused(f"a number up to {most} is needed here", node)
        return value

    # What each node becomes

    def _literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            if "\x00" in node.this:
                raise refused("a text cannot hold a zero byte")
            return literal(node.this, "text")
        return number_of(node)

    def _boolean(self, node: exp.Boolean) -> Expression:
        return literal(bool(node.this), "bool")

    def _null(self, node: exp.Null) -> Expression:
        return unknown()

    def _paren(self, node: exp.Paren) -> Expression:
        return self.read(node.this)

    def _column(self, node: exp.Column) -> Expression:
        return self.find(node)

    def _arithmetic(self, node: exp.Binary) -> Expression:
        op = ARITHMETIC[type(node)]
        left, right = self.read(node.this), self.read(node.expression)
        if left.kind in MOMENTS or right.kind in (*MOMENTS, "interval") or left.kind == "interval":
            return moved(op, left, right, node)
        return combined(op, _counted(left, node.this), _counted(right, node.expression))

    def _divided(self, node: exp.Binary) -> Expression:
        left, right = self.number(node.this), self.number(node.expression)
        if isinstance(node, exp.Div):
            found = None
            if left.range and right.range and not right.range[0] <= 0 <= right.range[1]:
                found = span(a / b for a in left.range for b in right.range)
            return made("divide", "float", (left, right), range=found, wild=found is None)
        op = "whole" if isinstance(node, exp.IntDiv) else "mod"
        if {left.kind, right.kind} != {"int"}:
            raise refused("// and % are for whole numbers: use floor(a / b)", node)
        found = None
        if op == "mod" and right.range:
            size = max(map(abs, right.range))
            found = (0.0 if left.range and left.range[0] >= 0 else -size, size)
        elif op == "whole" and left.range:
            size = max(map(abs, left.range))
            found = (-size, size)
        return made(op, "int", (left, right), range=found)

    def _negated(self, node: exp.Neg) -> Expression:
        one = self.number(node.this)
        found = None if one.range is None else (-one.range[1], -one.range[0])
        return made("negate", one.kind, (one,), range=found, digits=one.digits, wild=one.wild)

    def _compared(self, node: exp.Binary) -> Expression:
        left, right = alike(self.read(node.this), self.read(node.expression), node)
        return made("compare", "bool", (left, right), value=COMPARISONS[type(node)])

    def _and(self, node: exp.And) -> Expression:
        return made("and", "bool", tuple(self.truth(one) for one in node.flatten()))

    def _or(self, node: exp.Or) -> Expression:
        return made("or", "bool", tuple(self.truth(one) for one in node.flatten()))

    def _not(self, node: exp.Not) -> Expression:
        return made("not", "bool", (self.truth(node.this),))

    def _is(self, node: exp.Is) -> Expression:
        if not isinstance(node.expression, exp.Null):
            if isinstance(node.expression, exp.Boolean):
                truth = self.truth(node.this)
                found = made("case", "bool", (truth, literal(True, "bool"), literal(False, "bool")), null=False)
                return found if node.expression.this else made("not", "bool", (found,), null=False)
            raise refused("IS goes with NULL, TRUE or FALSE", node)
        return made("is null", "bool", (self.read(node.this),), null=False)

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions or node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise refused("IN takes a list of values here", node)
        first = self.read(node.this)
        rest = []
        for one in node.expressions:
            first, other = alike(first, self.read(one), node)
            rest.append(other)
        return made("in", "bool", (first, *rest))

    def _between(self, node: exp.Between) -> Expression:
        first = self.read(node.this)
        first, low = alike(first, self.read(node.args["low"]), node)
        first, high = alike(first, self.read(node.args["high"]), node)
        parts = (
            made("compare", "bool", (first, low), value=">="),
            made("compare", "bool", (first, high), value="<="),
        )
        return made("and", "bool", parts)

    def _like(self, node: exp.Binary) -> Expression:
        pattern = self.text(node.expression)
        if pattern.op != "literal" or pattern.value is None:
            raise refused("LIKE takes a pattern that is written out, such as '%green%'", node)
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        found = made("like", "bool", (self.text(node.this), pattern), value=word)
        return made("not", "bool", (found,)) if node.args.get("negate") else found

    def _case(self, node: exp.Case) -> Expression:
        subject = node.this
        parts: list[tuple[Expression, Expression]] = []
        for one in node.args["ifs"]:
            if subject is None:
                condition = self.truth(one.this)
            else:
                left, right = alike(self.read(subject), self.read(one.this), node)
                condition = made("compare", "bool", (left, right), value="=")
            parts.append((condition, self.read(one.args["true"])))
        default = node.args.get("default")
        return chosen(parts, unknown() if default is None else self.read(default), node)

    def _if(self, node: exp.If) -> Expression:
        default = node.args.get("false")
        left = unknown() if default is None else self.read(default)
        return chosen([(self.truth(node.this), self.read(node.args["true"]))], left, node)

    def _coalesce(self, node: exp.Coalesce) -> Expression:
        args = same_kind([self.read(one) for one in (node.this, *node.expressions)], node)
        found = united(args)
        return made("coalesce", args[0].kind, tuple(args), null=all(one.null for one in args), **found)

    def _nullif(self, node: exp.Nullif) -> Expression:
        left, right = alike(self.read(node.this), self.read(node.expression), node)
        condition = made("compare", "bool", (left, right), value="=")
        return chosen([(condition, unknown())], left, node)

    def _cast(self, node: exp.Cast) -> Expression:
        to = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
        one = self.read(node.this)
        if to == "DECIMAL":
            sizes = [str(each.this.this) for each in node.to.expressions]
            if not all(re.fullmatch(r"\d{1,2}", size) for size in sizes):
                raise refused("DECIMAL takes two whole numbers, as in DECIMAL(18, 3)", node)
            given = [int(size) for size in sizes] or [18, 3]
            digits = (given[0], given[1] if len(given) > 1 else 0)
            if (
                not 1 <= digits[0] <= 38
                or not 0 <= digits[1] <= digits[0]
                or one.kind not in (*NUMBERS, "text", "null")
            ):
                raise refused("DECIMAL takes numbers of up to 38 digits", node)
            return made(
                "cast", "decimal", (one,), value=f"DECIMAL({digits[0]},{digits[1]})", digits=digits, range=one.range
            )
        if to not in CASTS:
            raise refused("a value can be cast to BIGINT, DOUBLE, DECIMAL, VARCHAR, DATE, TIMESTAMP or BOOLEAN", node)
        kind, name = CASTS[to]
        if one.op == "literal" and one.kind == "text" and kind in MOMENTS:
            return moment(one, kind, node)
        if one.kind in ("interval", "null") and kind != one.kind:
            return unknown() if one.kind == "null" else wrong_interval(node)
        kept = one.range if {kind, one.kind} <= {*NUMBERS} or {kind, one.kind} <= {*MOMENTS} else None
        if kept is not None and kind == "int":
            kept = (kept[0] - 1, kept[1] + 1)
        wild = kind in ("float", *MOMENTS) and one.kind == "text"  # 'infinity' is a date too
        return made("cast", kind, (one,), value=name, range=kept, wild=wild)

    def _interval(self, node: exp.Interval) -> Expression:
        unit = str(node.args["unit"].name if node.args.get("unit") is not None else "").lower().rstrip("s")
        text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
        if unit not in ("day", "week", "month", "year", "hour") or not re.fullmatch(r"-?\d{1,6}", text):
            raise refused("an interval is written as in INTERVAL '90' DAY, with a whole number", node)
        return Expression("literal", "interval", value=(int(text), unit + "s"), null=False)

    def _part(self, node: Node) -> Expression:
        if isinstance(node, exp.Extract):
            name, of = str(node.this.name if hasattr(node.this, "name") else node.this).lower(), node.expression
        else:
            name, of = node.key, node.this
        one = self.read(of)
        if name not in DATE_PARTS or one.kind not in MOMENTS:
            raise refused(f"parts are taken of dates: {', '.join(DATE_PARTS)}", node)
        found: Range | None = PART_RANGES.get(name)
        if name == "year" and one.range is not None:
            found = years(one.range)
        return made("part", "int", (one,), value=name, range=found)

    def _trunc(self, node: Node) -> Expression:
        unit = str(node.args["unit"].name).lower()
        one = self.read(node.this)
        if unit not in TRUNCATED or one.kind not in MOMENTS:
            raise refused(f"dates are cut to {', '.join(TRUNCATED)}", node)
        found = None if one.range is None else (one.range[0] - 366, one.range[1])
        return made("trunc", "date", (one,), value=unit, range=found)

    def _substring(self, node: exp.Substring) -> Expression:
        start = literal(self.whole_number(node.args.get("start"), 100_000), "int")
        length = node.args.get("length")
        more = () if length is None else (literal(self.whole_number(length, 100_000), "int"),)
        return made("substring", "text", (self.text(node.this), start, *more))

    def _side(self, node: Node) -> Expression:
        size = literal(self.whole_number(node.expression, 100_000), "int")
        return made("left" if isinstance(node, exp.Left) else "right", "text", (self.text(node.this), size))

    def _texted(self, node: Node) -> Expression:
        return made(TEXTS[type(node)], "text", (self.text(node.this),))

    def _trim(self, node: exp.Trim) -> Expression:
        if node.expression is not None:
            raise refused("TRIM takes off blanks here", node)
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return made(name, "text", (self.text(node.this),))

    def _length(self, node: exp.Length) -> Expression:
        return made("length", "int", (self.text(node.this),), range=(0.0, 2.0**31))

    def _concat(self, node: Node) -> Expression:
        parts = [self.text(one) for one in (node.flatten() if isinstance(node, exp.DPipe) else node.expressions)]
        if isinstance(node, exp.Concat):
            parts = [made("coalesce", "text", (one, literal("", "text")), null=False) for one in parts]
        return made("concat", "text", tuple(parts))

    def _abs(self, node: exp.Abs) -> Expression:
        one = self.number(node.this)
        found = None
        if one.range is not None:
            low, high = one.range
            found = (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
        return made("abs", one.kind, (one,), range=found, digits=one.digits)

    def _rounded(self, node: Node) -> Expression:
        one = as_float(self.number(node.this))
        found = None if one.range is None else (one.range[0] - 1, one.range[1] + 1)
        if isinstance(node, exp.Round):
            places = 0 if node.args.get("decimals") is None else self.whole_number(node.args["decimals"], 15)
            return made("round", "float", (one, literal(places, "int")), range=found)
        return made(ROUNDED[type(node)], "float", (one,), range=found)

    def _curved(self, node: Node) -> Expression:
        return made(CURVED[type(node)], "float", (as_float(self.number(node.this)),), wild=True)

    def _power(self, node: exp.Pow) -> Expression:
        base, power = as_float(self.number(node.this)), as_float(self.number(node.expression))
        found = None
        if base.range and power.op == "literal" and power.value in (2.0, 3.0, 4.0):
            found = span([*(end**power.value for end in base.range), 0.0])
        return made("pow", "float", (base, power), range=found, wild=found is None)

    def _extreme(self, node: Node) -> Expression:
        args = same_kind([self.read(one) for one in (node.this, *node.expressions)], node)
        name = "greatest" if isinstance(node, exp.Greatest) else "least"
        found = made(name, args[0].kind, tuple(args), **united(args))
        return replace(found, range=range_of_extremes(found))


METHODS: tuple[tuple[tuple[Any, ...], Callable[[Reader, Any], Expression]], ...] = (
    ((exp.Literal,), Reader._literal),
    ((exp.Boolean,), Reader._boolean),
    ((exp.Null,), Reader._null),
    ((exp.Paren,), Reader._paren),
    ((exp.Column,), Reader._column),
    (tuple(ARITHMETIC), Reader._arithmetic),
    ((exp.Div, exp.IntDiv, exp.Mod), Reader._divided),
    ((exp.Neg,), Reader._negated),
    (tuple(COMPARISONS), Reader._compared),
    ((exp.And,), Reader._and),
    ((exp.Or,), Reader._or),
    ((exp.Not,), Reader._not),
    ((exp.Is,), Reader._is),
    ((exp.In,), Reader._in),
    ((exp.Between,), Reader._between),
    ((exp.Like, exp.ILike), Reader._like),
    ((exp.Case,), Reader._case),
    ((exp.If,), Reader._if),
    ((exp.Coalesce,), Reader._coalesce),
    ((exp.Nullif,), Reader._nullif),
    ((exp.Cast, exp.TryCast), Reader._cast),
    ((exp.Interval,), Reader._interval),
    ((exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeek, exp.Week), Reader._part),
    ((exp.DateTrunc, exp.TimestampTrunc), Reader._trunc),
    ((exp.Substring,), Reader._substring),
    ((exp.Left, exp.Right), Reader._side),
    (tuple(TEXTS), Reader._texted),
    ((exp.Trim,), Reader._trim),
    ((exp.Length,), Reader._length),
    ((exp.DPipe, exp.Concat), Reader._concat),
    ((exp.Abs,), Reader._abs),
    ((exp.Floor, exp.Ceil, exp.Round), Reader._rounded),
    (tuple(CURVED), Reader._curved),
    ((exp.Pow,), Reader._power),
    ((exp.Greatest, exp.Least), Reader._extreme),
)


def _counted(found: Expression, node: Node) -> Expression:
    if found.kind not in (*NUMBERS, "null", "bool"):
        raise refused(f"a number is needed here, and this is of kind {found.kind}", node)
    return numeric(found)


def conjuncts(node: Node | None) -> list[Node]:
    """The parts of a condition that must all hold."""
    if node is None:
        return []
    node = node.unnest()
    return [each for one in node.flatten() for each in conjuncts(one)] if isinstance(node, exp.And) else [node]
