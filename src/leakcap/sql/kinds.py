"""Kinds of values: which go together, what they become, and the range of what is made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from leakcap.sql.expressions import FURTHEST, Expression, Range, literal, may_lack_room, span, unknown
from leakcap.sql.refusals import Node, refused

__all__ = [
    "MOMENTS",
    "NAMES_PEOPLE",
    "NUMBERS",
    "alike",
    "as_float",
    "chosen",
    "combined",
    "in_grains",
    "made",
    "moment",
    "moved",
    "number_of",
    "numeric",
    "range_of_extremes",
    "same_kind",
    "united",
    "wrong_interval",
    "years",
]

NUMBERS = ("int", "decimal", "float")
MOMENTS = ("date", "timestamp")
# NULL where there is no value: always perhaps, and sums and products where it is not known how large they are.
MAY_FAIL = frozenset(
    ("divide", "whole", "mod", "cast", "case", "sqrt", "ln", "log2", "log10", "shift left", "make_date", "near")
)
SUMS = ("add", "subtract", "multiply", "negate", "abs")
DAYS_OF = {"hours": (1 / 24, 1 / 24), "days": (1, 1), "weeks": (7, 7), "months": (28, 31), "years": (365, 366)}
NAMES_PEOPLE = (
    "a key of people is for joins, for IN (select ...), for count(distinct ...) and for GROUP BY in a query inside: "
    "whatever else is said of it is said of one person"
)


def numeric(one: Expression) -> Expression:
    """A truth as 1 or 0; numbers as they are."""
    if one.kind != "bool":
        return one
    return made("cast", "int", (one,), value="BIGINT", range=(0.0, 1.0), null=one.null)


def made(op: str, kind: str, args: Sequence[Expression], **facts: Any) -> Expression:
    keys = {arg.identity for arg in args}
    if keys != {None} and args and op != "is null" and not (op == "compare" and len(keys) == 1):
        raise refused(NAMES_PEOPLE)
    null = facts.pop("null", None)
    found = Expression(op, kind, tuple(args), private=any(arg.private for arg in args), **facts)
    if null is None:
        without = op in MAY_FAIL or found.wild or (op in SUMS and (found.range is None or may_lack_room(found)))
        null = without or any(arg.null for arg in args)
    return replace(found, null=null)


def number_of(node: exp.Literal) -> Expression:
    text = node.this
    if re.fullmatch(r"\d{1,18}", text):
        return literal(int(text), "int")
    if re.fullmatch(r"\d{0,20}\.\d{1,16}|\d{1,20}\.", text):
        value = Decimal(text)
        after = max(0, -int(value.as_tuple().exponent))
        before = max(1, len(text.split(".")[0].lstrip("0")) or 1)
        return literal(value, "decimal", (before + after, after))
    try:
        number = float(text)
    except ValueError:
        raise refused("this is no number", node) from None
    if not abs(number) <= 1e300:
        raise refused("this number is too large", node)
    return literal(number, "float")


def as_float(one: Expression) -> Expression:
    if one.kind == "float":
        return one
    if one.op == "literal" and one.value is not None:
        return literal(float(one.value), "float")
    return made("cast", "float", (one,), value="DOUBLE", range=one.range, null=one.null)


def in_grains(one: Expression) -> tuple[str, float]:
    """A number of a known range as a whole number of grains, in SQL, and the grain: sums of them have no order."""
    assert one.range is not None
    grain = max(map(abs, one.range)) / 2.0**52 or 1.0
    return f"TRY_CAST(round({as_float(one).safe} / {grain!r}) AS BIGINT)", grain


def as_decimal(one: Expression) -> Expression:
    if one.kind == "decimal":
        return one
    if one.op == "literal" and one.value is not None:
        return literal(Decimal(one.value), "decimal", (max(1, len(str(abs(one.value)))), 0))
    return made("cast", "decimal", (one,), value="DECIMAL(19,0)", digits=(19, 0), range=one.range, null=one.null)


def combined(op: str, left: Expression, right: Expression) -> Expression:
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
        left, right = as_decimal(left), as_decimal(right)
        assert left.digits is not None and right.digits is not None
        (p, s), (q, t) = left.digits, right.digits
        scale = s + t if op == "multiply" else max(s, t)
        width = p + q if op == "multiply" else max(p - s, q - t) + scale + 1
        if scale <= 20:
            return made(op, "decimal", (left, right), digits=(min(38, width), scale), range=found)
        left, right = as_float(left), as_float(right)
    if "float" in (left.kind, right.kind):
        left, right = as_float(left), as_float(right)
        return made(op, "float", (left, right), range=found, wild=found is None)
    return made(op, "int", (left, right), range=found)


def moved(op: str, left: Expression, right: Expression, node: Node) -> Expression:
    """Dates and intervals."""
    if op == "multiply":
        raise refused("dates are not multiplied", node)
    if left.kind in MOMENTS and right.kind == "text":
        right = moment(right, left.kind, node)
    if left.kind == "interval" and right.kind in MOMENTS and op == "add":
        left, right = right, left
    if left.kind in MOMENTS and right.kind == "interval":
        count, unit = right.value
        days = sorted(count * one for one in DAYS_OF[unit])
        if max(map(abs, days)) > FURTHEST:
            return literal(None, "timestamp")  # too far, from wherever
        return _moved(op, "timestamp", (left, right), days=tuple(days))
    if left.kind == "date" and right.kind == "int":
        number = made("cast", "int", (right,), value="INTEGER", range=right.range)
        near = right.range is not None and max(map(abs, right.range)) <= FURTHEST
        return _moved(op, "date", (left, number if near else made("near", "int", (number,))), days=right.range)
    if left.kind == right.kind == "date" and op == "subtract":
        found = None
        if left.range and right.range:
            found = (left.range[0] - right.range[1], left.range[1] - right.range[0])
        return made(op, "int", (left, right), range=found)
    raise refused("dates go with intervals, days or dates", node)


def _moved(op: str, kind: str, args: tuple[Expression, Expression], *, days: Any) -> Expression:
    """A date that is moved by so many days at least and at most, where that is known."""
    found = None
    if args[0].range is not None and days is not None:
        (a, b), (c, d) = args[0].range, days
        found = (a + c, b + d) if op == "add" else (a - d, b - c)
    return made(op, kind, args, range=found, wild=found is None or max(map(abs, found)) > FURTHEST)


def moment(one: Expression, kind: str, node: Node) -> Expression:
    if one.op != "literal" or one.kind != "text":
        raise refused("a date is written out here, as in DATE '2026-01-31'", node)
    try:
        value: date = date.fromisoformat(one.value) if kind == "date" else datetime.fromisoformat(one.value)
    except ValueError:
        raise refused("a date is written as in DATE '2026-01-31'", node) from None
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise refused("times have no zone here: write it in the zone of the column, and without one", node)
    return literal(value, kind)


def _too_wide(args: Sequence[Expression]) -> bool:
    """Whether no decimal has room for all of these: DuckDB would fail on a row for which it is too small."""
    digits = [(19, 0) if one.digits is None else one.digits for one in args]
    return max(p - s for p, s in digits) + max(s for _, s in digits) > 38


def alike(left: Expression, right: Expression, node: Node) -> tuple[Expression, Expression]:
    """Two sides that can be compared."""
    if "null" in (left.kind, right.kind):
        return left, right
    for one, other, turned in ((left, right, False), (right, left, True)):
        if one.kind in MOMENTS and other.kind == "text":
            made = moment(other, one.kind, node)
            return (made, one) if turned else (one, made)
    kinds = {left.kind, right.kind}
    if len(kinds) == 1 or kinds <= set(NUMBERS) or kinds <= set(MOMENTS):
        if "interval" in kinds:
            wrong_interval(node)
        if "float" in kinds or ("decimal" in kinds and _too_wide((left, right))):
            return as_float(left), as_float(right)
        return left, right
    if kinds <= {"bool", *NUMBERS}:
        return numeric(left), numeric(right)
    raise refused(f"{left.kind} and {right.kind} cannot be compared: cast one of them", node)


def same_kind(args: list[Expression], node: Node) -> list[Expression]:
    """Values of one kind, for what takes one of them."""
    kinds = {one.kind for one in args} - {"null"}
    if not kinds:
        return args
    if kinds in ({"date", "text"}, {"timestamp", "text"}):
        kind = (kinds - {"text"}).pop()
        return [moment(one, kind, node) if one.kind == "text" else one for one in args]
    if len(kinds) == 1 and kinds != {"decimal"}:
        return sorted_nulls(args, kinds.pop())
    if kinds <= {*NUMBERS, "bool"}:
        args = [numeric(one) for one in args]
        if "float" in kinds or _too_wide([one for one in args if one.kind != "null"]):
            return sorted_nulls([one if one.kind == "null" else as_float(one) for one in args], "float")
        decimals = [one if one.kind == "null" else as_decimal(one) for one in args]
        return sorted_nulls(decimals, "decimal")
    if kinds == {"date", "timestamp"}:
        return sorted_nulls([_with_time(one) if one.kind == "date" else one for one in args], "timestamp")
    raise refused(f"values of kinds {', '.join(sorted(kinds))} cannot stand in one place: cast them", node)


def _with_time(one: Expression) -> Expression:
    """A date as the time at which it begins."""
    gaps = one.null or one.range is None
    return made("cast", "timestamp", (one,), value="TIMESTAMP", range=one.range, wild=one.wild, null=gaps)


def sorted_nulls(args: list[Expression], kind: str) -> list[Expression]:
    """NULL takes the kind of the others."""
    return [replace(one, kind=kind) if one.kind == "null" else one for one in args]


def united(args: Sequence[Expression]) -> dict[str, Any]:
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


def years(days: Range) -> Range | None:
    """The years of a range of days; None beyond the calendar."""
    if days[0] < 1 or days[1] >= date.max.toordinal() + 1:
        return None
    return float(date.fromordinal(int(days[0])).year), float(date.fromordinal(int(days[1])).year)


def chosen(parts: list[tuple[Expression, Expression]], default: Expression, node: Node) -> Expression:
    results = same_kind([*(one for _, one in parts), default], node)
    flat = [each for (condition, _), result in zip(parts, results[:-1], strict=True) for each in (condition, result)]
    kind = results[0].kind
    return made("case", kind, (*flat, results[-1]), null=any(one.null for one in results), **united(results))


def wrong_interval(node: Node) -> Any:
    raise refused("an interval is added to a date, and nothing else", node)


def range_of_extremes(one: Expression) -> Range | None:
    """Of greatest and least: also where one end alone is known of what they are taken of."""
    low, high = _least(one), _most(one)
    return (low, high) if low is not None and high is not None and low <= high and one.kind in NUMBERS else None


def _least(one: Expression) -> float | None:
    """No value is below this, where that is known. GREATEST and LEAST leave out what is missing: it sets no end."""
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
