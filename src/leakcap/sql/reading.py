"""Expressions of a query, read into our own: what is not on the list here does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from leakcap.sql.expressions import Expression, Range, literal, short, span, unknown
from leakcap.sql.refusals import refused

__all__ = ["NAMES_PEOPLE", "NUMBERS", "Reader", "alike", "conjuncts", "numeric", "only", "years"]

NUMBERS = ("int", "decimal", "float")
MOMENTS = ("date", "timestamp")
PARTS = ("year", "quarter", "month", "day", "dayofweek", "dow", "isodow", "week", "hour", "minute")
PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "dow": (0, 6),
    "isodow": (1, 7),
    "week": (1, 53),
    "hour": (0, 23),
    "minute": (0, 59),
}
TRUNCATED = ("year", "quarter", "month", "week", "day")
CASTS = {
    "INT": ("int", "BIGINT"),
    "BIGINT": ("int", "BIGINT"),
    "SMALLINT": ("int", "BIGINT"),
    "TINYINT": ("int", "BIGINT"),
    "DOUBLE": ("float", "DOUBLE"),
    "FLOAT": ("float", "DOUBLE"),
    "VARCHAR": ("text", "VARCHAR"),
    "TEXT": ("text", "VARCHAR"),
    "DATE": ("date", "DATE"),
    "TIMESTAMP": ("timestamp", "TIMESTAMP"),
    "TIMESTAMPNTZ": ("timestamp", "TIMESTAMP"),
    "BOOLEAN": ("bool", "BOOLEAN"),
}
COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
ARITHMETIC = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
TEXTS = {exp.Upper: "upper", exp.Lower: "lower"}
ROUNDED = {exp.Floor: "floor", exp.Ceil: "ceil"}
CURVED = {exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp"}
NAMES_PEOPLE = (
    "a key of people is for joins, for IN (select ...), for count(distinct ...) and for GROUP BY in a query inside: whatever "
    "else is said of it is said of one person"
)
LONGEST = 2000  # nodes of one query's expressions


class Reader:
    """Reads expressions, names being looked up by `find` and what only a whole query knows by `other`."""

    def __init__(
        self, find: Callable[[exp.Column], Expression], other: Callable[[exp.Expression], Expression | None]
    ) -> None:
        self.find, self.other, self.left = find, other, LONGEST

    def read(self, node: exp.Expression) -> Expression:
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

    def number(self, node: exp.Expression) -> Expression:
        return _counted(self.read(node), node)

    def text(self, node: exp.Expression) -> Expression:
        found = self.read(node)
        if found.kind not in ("text", "null"):
            raise refused(f"a text is needed here, and this is of kind {found.kind}", node)
        return found

    def truth(self, node: exp.Expression) -> Expression:
        found = self.read(node)
        if found.kind not in ("bool", "null"):
            raise refused("a condition is needed here, such as age > 40", node)
        return found

    def whole_number(self, node: exp.Expression | None, most: int) -> int:
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
        return _number(node)

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
            return _moved(op, left, right, node)
        return _combined(op, _counted(left, node.this), _counted(right, node.expression))

    def _divided(self, node: exp.Binary) -> Expression:
        left, right = self.number(node.this), self.number(node.expression)
        if isinstance(node, exp.Div):
            found = None
            if left.range and right.range and not right.range[0] <= 0 <= right.range[1]:
                found = span(a / b for a in left.range for b in right.range)
            return _made("divide", "float", (left, right), range=found, wild=found is None)
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
        return _made(op, "int", (left, right), range=found)

    def _negated(self, node: exp.Neg) -> Expression:
        one = self.number(node.this)
        found = None if one.range is None else (-one.range[1], -one.range[0])
        return _made("negate", one.kind, (one,), range=found, digits=one.digits, wild=one.wild)

    def _compared(self, node: exp.Binary) -> Expression:
        left, right = alike(self.read(node.this), self.read(node.expression), node)
        return _made("compare", "bool", (left, right), value=COMPARISONS[type(node)])

    def _and(self, node: exp.And) -> Expression:
        return _made("and", "bool", tuple(self.truth(one) for one in node.flatten()))

    def _or(self, node: exp.Or) -> Expression:
        return _made("or", "bool", tuple(self.truth(one) for one in node.flatten()))

    def _not(self, node: exp.Not) -> Expression:
        return _made("not", "bool", (self.truth(node.this),))

    def _is(self, node: exp.Is) -> Expression:
        if not isinstance(node.expression, exp.Null):
            if isinstance(node.expression, exp.Boolean):
                truth = self.truth(node.this)
                found = _made("case", "bool", (truth, literal(True, "bool"), literal(False, "bool")), null=False)
                return found if node.expression.this else _made("not", "bool", (found,), null=False)
            raise refused("IS goes with NULL, TRUE or FALSE", node)
        return _made("is null", "bool", (self.read(node.this),), null=False)

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions or node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise refused("IN takes a list of values here", node)
        first = self.read(node.this)
        rest = []
        for one in node.expressions:
            first, other = alike(first, self.read(one), node)
            rest.append(other)
        return _made("in", "bool", (first, *rest))

    def _between(self, node: exp.Between) -> Expression:
        first = self.read(node.this)
        first, low = alike(first, self.read(node.args["low"]), node)
        first, high = alike(first, self.read(node.args["high"]), node)
        parts = (
            _made("compare", "bool", (first, low), value=">="),
            _made("compare", "bool", (first, high), value="<="),
        )
        return _made("and", "bool", parts)

    def _like(self, node: exp.Binary) -> Expression:
        pattern = self.text(node.expression)
        if pattern.op != "literal" or pattern.value is None:
            raise refused("LIKE takes a pattern that is written out, such as '%green%'", node)
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        found = _made("like", "bool", (self.text(node.this), pattern), value=word)
        return _made("not", "bool", (found,)) if node.args.get("negate") else found

    def _case(self, node: exp.Case) -> Expression:
        subject = node.this
        parts: list[tuple[Expression, Expression]] = []
        for one in node.args["ifs"]:
            if subject is None:
                condition = self.truth(one.this)
            else:
                left, right = alike(self.read(subject), self.read(one.this), node)
                condition = _made("compare", "bool", (left, right), value="=")
            parts.append((condition, self.read(one.args["true"])))
        default = node.args.get("default")
        return _chosen(parts, unknown() if default is None else self.read(default), node)

    def _if(self, node: exp.If) -> Expression:
        default = node.args.get("false")
        left = unknown() if default is None else self.read(default)
        return _chosen([(self.truth(node.this), self.read(node.args["true"]))], left, node)

    def _coalesce(self, node: exp.Coalesce) -> Expression:
        args = _same([self.read(one) for one in (node.this, *node.expressions)], node)
        found = _united(args)
        return _made("coalesce", args[0].kind, tuple(args), null=all(one.null for one in args), **found)

    def _nullif(self, node: exp.Nullif) -> Expression:
        left, right = alike(self.read(node.this), self.read(node.expression), node)
        condition = _made("compare", "bool", (left, right), value="=")
        return _chosen([(condition, unknown())], left, node)

    def _cast(self, node: exp.Cast) -> Expression:
        to = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
        one = self.read(node.this)
        if to == "DECIMAL":
            sizes = [str(each.this.this) for each in node.to.expressions]
            if not all(re.fullmatch(r"\d{1,2}", size) for size in sizes):
                raise refused("DECIMAL takes two whole numbers, as in DECIMAL(18, 3)", node)
            given = [int(size) for size in sizes] or [18, 3]
            digits = (given[0], given[1] if len(given) > 1 else 0)
            if not 1 <= digits[0] <= 38 or not 0 <= digits[1] <= digits[0] or one.kind not in (*NUMBERS, "text", "null"):
                raise refused("DECIMAL takes numbers of up to 38 digits", node)
            return _made("cast", "decimal", (one,), value=f"DECIMAL({digits[0]},{digits[1]})", digits=digits, range=one.range)
        if to not in CASTS:
            raise refused("a value can be cast to BIGINT, DOUBLE, DECIMAL, VARCHAR, DATE, TIMESTAMP or BOOLEAN", node)
        kind, name = CASTS[to]
        if one.op == "literal" and one.kind == "text" and kind in MOMENTS:
            return _moment(one, kind, node)
        if one.kind in ("interval", "null") and kind != one.kind:
            return unknown() if one.kind == "null" else _wrong(node)
        kept = one.range if kind in NUMBERS and one.kind in NUMBERS or {kind, one.kind} <= set(MOMENTS) else None
        if kept is not None and kind == "int":
            kept = (kept[0] - 1, kept[1] + 1)
        wild = kind in ("float", *MOMENTS) and one.kind == "text"  # 'infinity' is a date too
        return _made("cast", kind, (one,), value=name, range=kept, wild=wild)

    def _interval(self, node: exp.Interval) -> Expression:
        unit = str(node.args["unit"].name if node.args.get("unit") is not None else "").lower().rstrip("s")
        text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
        if unit not in ("day", "week", "month", "year", "hour") or not re.fullmatch(r"-?\d{1,6}", text):
            raise refused("an interval is written as in INTERVAL '90' DAY, with a whole number", node)
        return Expression("literal", "interval", value=(int(text), unit + "s"), null=False)

    def _part(self, node: exp.Expression) -> Expression:
        if isinstance(node, exp.Extract):
            name, of = str(node.this.name if hasattr(node.this, "name") else node.this).lower(), node.expression
        else:
            name, of = node.key, node.this
        one = self.read(of)
        if name not in PARTS or one.kind not in MOMENTS:
            raise refused(f"parts are taken of dates: {', '.join(PARTS)}", node)
        found: Range | None = PART_RANGES.get(name)
        if name == "year" and one.range is not None:
            found = years(one.range)
        return _made("part", "int", (one,), value=name, range=found)

    def _trunc(self, node: exp.Expression) -> Expression:
        unit = str(node.args["unit"].name).lower()
        one = self.read(node.this)
        if unit not in TRUNCATED or one.kind not in MOMENTS:
            raise refused(f"dates are cut to {', '.join(TRUNCATED)}", node)
        found = None if one.range is None else (one.range[0] - 366, one.range[1])
        return _made("trunc", "date", (one,), value=unit, range=found)

    def _substring(self, node: exp.Substring) -> Expression:
        start = literal(self.whole_number(node.args.get("start"), 100_000), "int")
        length = node.args.get("length")
        more = () if length is None else (literal(self.whole_number(length, 100_000), "int"),)
        return _made("substring", "text", (self.text(node.this), start, *more))

    def _side(self, node: exp.Expression) -> Expression:
        size = literal(self.whole_number(node.expression, 100_000), "int")
        return _made("left" if isinstance(node, exp.Left) else "right", "text", (self.text(node.this), size))

    def _texted(self, node: exp.Expression) -> Expression:
        return _made(TEXTS[type(node)], "text", (self.text(node.this),))

    def _trim(self, node: exp.Trim) -> Expression:
        if node.expression is not None:
            raise refused("TRIM takes off blanks here", node)
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return _made(name, "text", (self.text(node.this),))

    def _length(self, node: exp.Length) -> Expression:
        return _made("length", "int", (self.text(node.this),), range=(0.0, 2.0**31))

    def _concat(self, node: exp.Expression) -> Expression:
        parts = [self.text(one) for one in (node.flatten() if isinstance(node, exp.DPipe) else node.expressions)]
        if isinstance(node, exp.Concat):
            parts = [_made("coalesce", "text", (one, literal("", "text")), null=False) for one in parts]
        return _made("concat", "text", tuple(parts))

    def _abs(self, node: exp.Abs) -> Expression:
        one = self.number(node.this)
        found = None
        if one.range is not None:
            low, high = one.range
            found = (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
        return _made("abs", one.kind, (one,), range=found, digits=one.digits)

    def _rounded(self, node: exp.Expression) -> Expression:
        one = _as_float(self.number(node.this))
        found = None if one.range is None else (one.range[0] - 1, one.range[1] + 1)
        if isinstance(node, exp.Round):
            places = 0 if node.args.get("decimals") is None else self.whole_number(node.args["decimals"], 15)
            return _made("round", "float", (one, literal(places, "int")), range=found)
        return _made(ROUNDED[type(node)], "float", (one,), range=found)

    def _curved(self, node: exp.Expression) -> Expression:
        return _made(CURVED[type(node)], "float", (_as_float(self.number(node.this)),), wild=True)

    def _power(self, node: exp.Pow) -> Expression:
        base, power = _as_float(self.number(node.this)), _as_float(self.number(node.expression))
        found = None
        if base.range and power.op == "literal" and power.value in (2.0, 3.0, 4.0):
            found = span([*(end**power.value for end in base.range), 0.0])
        return _made("pow", "float", (base, power), range=found, wild=found is None)

    def _extreme(self, node: exp.Expression) -> Expression:
        args = _same([self.read(one) for one in (node.this, *node.expressions)], node)
        name = "greatest" if isinstance(node, exp.Greatest) else "least"
        made = _made(name, args[0].kind, tuple(args), **_united(args))
        ends = _least(made), _most(made)
        return made if None in ends or args[0].kind not in NUMBERS else replace(made, range=ends)


METHODS: tuple[tuple[tuple[type[exp.Expression], ...], Callable[[Reader, Any], Expression]], ...] = (
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


# What a node may hold. A part that nobody looks at could mean anything: with one, a question is refused.
PARTS_OF: dict[type[exp.Expression], set[str]] = {
    exp.Literal: {"this", "is_string"},
    exp.Boolean: {"this"},
    exp.Column: {"this", "table"},
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.Like: {"this", "expression", "negate"},
    exp.ILike: {"this", "expression", "negate"},
    exp.In: {"this", "expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"},
    exp.Coalesce: {"this", "expressions"},
    exp.Cast: {"this", "to"},
    exp.TryCast: {"this", "to", "safe"},
    exp.Interval: {"this", "unit"},
    exp.DateTrunc: {"this", "unit"},
    exp.TimestampTrunc: {"this", "unit"},
    exp.Substring: {"this", "start", "length"},
    exp.Trim: {"this", "expression", "position"},
    exp.DPipe: {"this", "expression", "safe"},
    exp.Concat: {"expressions", "safe", "coalesce"},
    exp.Round: {"this", "decimals"},
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
}


def years(days: Range) -> Range | None:
    """The years of a range of days; None beyond the calendar."""
    if days[0] < 1 or days[1] >= date.max.toordinal() + 1:
        return None
    return float(date.fromordinal(int(days[0])).year), float(date.fromordinal(int(days[1])).year)


def only(node: exp.Expression, allowed: set[str]) -> None:
    """Nothing is in a node but what we know."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], "", ()):
            raise refused(f"{name.strip('_').replace('_', ' ').upper()} is not answered here", node)


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    """The parts of a condition that must all hold."""
    if node is None:
        return []
    node = node.unnest()
    return [each for one in node.flatten() for each in conjuncts(one)] if isinstance(node, exp.And) else [node]


def numeric(one: Expression) -> Expression:
    """A truth as 1 or 0; numbers as they are."""
    if one.kind != "bool":
        return one
    return _made("cast", "int", (one,), value="BIGINT", range=(0.0, 1.0), null=one.null)


def _made(op: str, kind: str, args: Sequence[Expression], **facts: Any) -> Expression:
    keys = {arg.identity for arg in args}
    if keys != {None} and args and op != "is null" and not (op == "compare" and len(keys) == 1):
        raise refused(NAMES_PEOPLE)
    null = facts.pop("null", None)
    return Expression(
        op,
        kind,
        tuple(args),
        null=any(arg.null for arg in args) or op in ("divide", "whole", "mod", "cast", "case") if null is None else null,
        private=any(arg.private for arg in args),
        **facts,
    )


def _counted(found: Expression, node: exp.Expression) -> Expression:
    if found.kind not in (*NUMBERS, "null", "bool"):
        raise refused(f"a number is needed here, and this is of kind {found.kind}", node)
    return numeric(found)


def _number(node: exp.Literal) -> Expression:
    text = node.this
    if re.fullmatch(r"\d{1,18}", text):
        return literal(int(text), "int")
    if re.fullmatch(r"\d{0,20}\.\d{1,16}|\d{1,20}\.", text):
        value = Decimal(text)
        after = max(0, -int(value.as_tuple().exponent))
        before = max(1, len(text.split(".")[0].lstrip("0")) or 1)
        return literal(value, "decimal", (before + after, after))
    try:
        value = float(text)
    except ValueError:
        raise refused("this is no number", node) from None
    if not abs(value) <= 1e300:
        raise refused("this number is too large", node)
    return literal(value, "float")


def _as_float(one: Expression) -> Expression:
    if one.kind == "float":
        return one
    if one.op == "literal" and one.value is not None:
        return literal(float(one.value), "float")
    return _made("cast", "float", (one,), value="DOUBLE", range=one.range, null=one.null)


def _as_decimal(one: Expression) -> Expression:
    if one.kind == "decimal":
        return one
    if one.op == "literal" and one.value is not None:
        return literal(Decimal(one.value), "decimal", (max(1, len(str(abs(one.value)))), 0))
    return _made("cast", "decimal", (one,), value="DECIMAL(19,0)", digits=(19, 0), range=one.range, null=one.null)


def _combined(op: str, left: Expression, right: Expression) -> Expression:
    found = None
    if left.range is not None and right.range is not None:
        (a, b), (c, d) = left.range, right.range
        found = {
            "add": span((a + c, b + d)),
            "subtract": span((a - d, b - c)),
            "multiply": span((a * c, a * d, b * c, b * d)),
        }[op]
    if "null" in (left.kind, right.kind):
        return unknown()
    if "float" not in (left.kind, right.kind) and "decimal" in (left.kind, right.kind):
        left, right = _as_decimal(left), _as_decimal(right)
        assert left.digits is not None and right.digits is not None
        (p, s), (q, t) = left.digits, right.digits
        scale = s + t if op == "multiply" else max(s, t)
        width = p + q if op == "multiply" else max(p - s, q - t) + scale + 1
        if scale <= 20:
            return _made(op, "decimal", (left, right), digits=(min(38, width), scale), range=found)
        left, right = _as_float(left), _as_float(right)
    if "float" in (left.kind, right.kind):
        left, right = _as_float(left), _as_float(right)
        return _made(op, "float", (left, right), range=found, wild=found is None)
    return _made(op, "int", (left, right), range=found)


def _moved(op: str, left: Expression, right: Expression, node: exp.Expression) -> Expression:
    """Dates and intervals."""
    if op == "multiply":
        raise refused("dates are not multiplied", node)
    if left.kind in MOMENTS and right.kind == "text":
        right = _moment(right, left.kind, node)
    if left.kind in MOMENTS and right.kind == "interval":
        return _made(op, "timestamp", (left, right))
    if left.kind == "interval" and right.kind in MOMENTS and op == "add":
        return _made(op, "timestamp", (right, left))
    if left.kind == "date" and right.kind == "int":
        return _made(op, "date", (left, _made("cast", "int", (right,), value="INTEGER", range=right.range)))
    if left.kind == right.kind == "date" and op == "subtract":
        found = None
        if left.range and right.range:
            found = (left.range[0] - right.range[1], left.range[1] - right.range[0])
        return _made(op, "int", (left, right), range=found)
    raise refused("dates go with intervals, days or dates", node)


def _moment(one: Expression, kind: str, node: exp.Expression) -> Expression:
    if one.op != "literal" or one.kind != "text":
        raise refused("a date is written out here, as in DATE '2026-01-31'", node)
    try:
        value: date = date.fromisoformat(one.value) if kind == "date" else datetime.fromisoformat(one.value)
    except ValueError:
        raise refused("a date is written as in DATE '2026-01-31'", node) from None
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    return literal(value, kind)


def _too_wide(args: Sequence[Expression]) -> bool:
    """Whether there is no decimal that has room for all of these: DuckDB would fail on a row that it is too small for."""
    digits = [(19, 0) if one.digits is None else one.digits for one in args]
    return max(p - s for p, s in digits) + max(s for _, s in digits) > 38


def alike(left: Expression, right: Expression, node: exp.Expression) -> tuple[Expression, Expression]:
    """Two sides that can be compared."""
    if "null" in (left.kind, right.kind):
        return left, right
    for one, other, turned in ((left, right, False), (right, left, True)):
        if one.kind in MOMENTS and other.kind == "text":
            made = _moment(other, one.kind, node)
            return (made, one) if turned else (one, made)
    kinds = {left.kind, right.kind}
    if len(kinds) == 1 or kinds <= set(NUMBERS) or kinds <= set(MOMENTS):
        if "interval" in kinds:
            _wrong(node)
        if "float" in kinds or ("decimal" in kinds and _too_wide((left, right))):
            return _as_float(left), _as_float(right)
        return left, right
    if kinds <= {"bool", *NUMBERS}:
        return numeric(left), numeric(right)
    raise refused(f"{left.kind} and {right.kind} cannot be compared: cast one of them", node)


def _same(args: list[Expression], node: exp.Expression) -> list[Expression]:
    """Values of one kind, for what takes one of them."""
    kinds = {one.kind for one in args} - {"null"}
    if not kinds:
        return args
    if kinds == {"date", "text"} or kinds == {"timestamp", "text"}:
        kind = (kinds - {"text"}).pop()
        return [_moment(one, kind, node) if one.kind == "text" else one for one in args]
    if len(kinds) == 1 and kinds != {"decimal"}:
        return sorted_nulls(args, kinds.pop())
    if kinds <= {*NUMBERS, "bool"}:
        args = [numeric(one) for one in args]
        if "float" in kinds or _too_wide([one for one in args if one.kind != "null"]):
            return sorted_nulls([one if one.kind == "null" else _as_float(one) for one in args], "float")
        decimals = [one if one.kind == "null" else _as_decimal(one) for one in args]
        return sorted_nulls(decimals, "decimal")
    if kinds == {"date", "timestamp"}:
        return sorted_nulls(args, "timestamp")
    raise refused(f"values of kinds {', '.join(sorted(kinds))} cannot stand in one place: cast them", node)


def sorted_nulls(args: list[Expression], kind: str) -> list[Expression]:
    """NULL takes the kind of the others."""
    return [replace(one, kind=kind) if one.kind == "null" else one for one in args]


def _united(args: Sequence[Expression]) -> dict[str, Any]:
    """Facts of a value that is one of these."""
    known = [one for one in args if not (one.op == "literal" and one.value is None)]
    spans = [one.range for one in known]
    found = None
    if spans and all(one is not None for one in spans):
        found = (min(one[0] for one in spans if one), max(one[1] for one in spans if one))
    digits = None
    if known and known[0].kind == "decimal":
        scale = max(one.digits[1] for one in known if one.digits)
        digits = (min(38, max(one.digits[0] - one.digits[1] for one in known if one.digits) + scale), scale)
    return {"range": found, "digits": digits}


def _least(one: Expression) -> float | None:
    """What a number is never below, by what it was cut to. GREATEST and LEAST leave out what is missing."""
    if one.op not in ("greatest", "least"):
        return None if one.range is None else one.range[0]
    lows = [(_least(arg), arg.null) for arg in one.args]
    if one.op == "least":
        return None if any(low is None for low, _ in lows) else min(low for low, _ in lows if low is not None)
    return max((low for low, null in lows if low is not None and not null), default=None)


def _most(one: Expression) -> float | None:
    """What a number is never above."""
    if one.op not in ("greatest", "least"):
        return None if one.range is None else one.range[1]
    highs = [(_most(arg), arg.null) for arg in one.args]
    if one.op == "greatest":
        return None if any(high is None for high, _ in highs) else max(high for high, _ in highs if high is not None)
    return min((high for high, null in highs if high is not None and not null), default=None)


def _chosen(parts: list[tuple[Expression, Expression]], default: Expression, node: exp.Expression) -> Expression:
    results = _same([*(one for _, one in parts), default], node)
    flat = [each for (condition, _), result in zip(parts, results[:-1], strict=True) for each in (condition, result)]
    kind = results[0].kind
    return _made("case", kind, (*flat, results[-1]), null=any(one.null for one in results), **_united(results))


def _wrong(node: exp.Expression) -> Any:
    raise refused("an interval is added to a date, and nothing else", node)
