"""Functions of dates: parts, names, ends of periods, and how many of them lie between two."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from leakcap.sql.allowed import DATE_PARTS, PART_RANGES, TRUNCATED, Reads
from leakcap.sql.expressions import Expression, Range, literal
from leakcap.sql.kinds import MOMENTS, chosen, made, years
from leakcap.sql.refusals import Node, refused

__all__ = ["ANONYMOUS_MOMENTS", "MOMENT_METHODS"]

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
SAME_PARTS = {  # by other names
    "dayofweekiso": "isodow",
    "dayofweek": "dow",
    "dayofmonth": "day",
    "weekofyear": "week",
    "dayofyear": "doy",
    "weekday": "dow",
}
YEAR = 365.2425  # days, on average
# Periods in days, on average: no period starts further from where it would, were all of them alike, than half of one.
PERIODS = {"day": 1.0, "week": 7.0, "month": YEAR / 12, "quarter": YEAR / 4, "year": YEAR, "hour": 1 / 24}
FORMAT = re.compile(r"(%[YmdHMbBaAjyq%]|[^%]){1,40}")


def _interval(reader: Reads, node: exp.Interval) -> Expression:
    unit = str(node.args["unit"].name if node.args.get("unit") is not None else "").lower().rstrip("s")
    given = None if node.this is None else node.this.unnest()
    text = str(given.this) if isinstance(given, exp.Literal) else ""
    if unit not in ("day", "week", "month", "year", "hour") or not re.fullmatch(r"-?\d{1,6}", text):
        raise refused("an interval is written as in INTERVAL '90' DAY, with a whole number", node)
    return Expression("literal", "interval", value=(int(text), unit + "s"), null=False)


def _part(reader: Reads, node: Node) -> Expression:
    if isinstance(node, exp.Extract):
        return _part_of(reader, str(node.this.name or node.this), node.expression, node)
    return _part_of(reader, node.key, node.this, node)


def _named_part(reader: Reads, node: exp.Anonymous) -> Expression:
    """date_part('year', day)."""
    name, *rest = node.expressions
    if len(rest) != 1 or not isinstance(name, exp.Literal) or not name.is_string:
        raise refused("date_part takes a word and a date, as in date_part('year', day)", node)
    return _part_of(reader, str(name.this), rest[0], node)


def _weekday(reader: Reads, node: exp.Anonymous) -> Expression:
    if len(node.expressions) != 1:
        raise refused("weekday takes a date", node)
    return _part_of(reader, "dow", node.expressions[0], node)


def _part_of(reader: Reads, word: str, of: Node, node: Node) -> Expression:
    name, one = SAME_PARTS.get(word.lower(), word.lower()), reader.read(of)
    if name not in DATE_PARTS or one.kind not in MOMENTS:
        raise refused(f"parts are taken of dates: {', '.join(DATE_PARTS)}", node)
    if one.kind == "date" and name in ("hour", "minute"):
        raise refused("a date has no hours: take them of a timestamp", node)
    found: Range | None = PART_RANGES.get(name)
    if name == "year" and one.range is not None:
        found = years(one.range)
    return made("part", "int", (one,), value=name, range=found)


def _named(reader: Reads, node: Node) -> Expression:
    """The name of a day or month, in English."""
    days = isinstance(node, exp.Dayname)
    number = _part_of(reader, "dow" if days else "month", node.this, node)
    parts = [
        (made("compare", "bool", (number, literal(at + (not days), "int")), value="="), literal(name, "text"))
        for at, name in enumerate(DAYS if days else MONTHS)
    ]
    return chosen(parts, literal(None, "null"), node)


def _trunc(reader: Reads, node: Node) -> Expression:
    unit = str(node.args["unit"].name).lower()
    one = reader.read(node.this)
    if unit not in TRUNCATED or one.kind not in MOMENTS:
        raise refused(f"dates are cut to {', '.join(TRUNCATED)}", node)
    found = None if one.range is None else (one.range[0] - 366, one.range[1])
    return made("trunc", "date", (one,), value=unit, range=found)


def _last_day(reader: Reads, node: exp.LastDay) -> Expression:
    one = _moment(reader, node.this, node)
    found = None if one.range is None else (one.range[0], one.range[1] + 31)
    return made("last_day", "date", (one,), range=found)


def _between(reader: Reads, node: exp.DateDiff) -> Expression:
    """How many ends of such periods lie between two dates."""
    unit = str(node.args["unit"].name).lower() if node.args.get("unit") is not None else ""
    if unit not in PERIODS:
        raise refused(f"periods between dates are of {', '.join(PERIODS)}, as in date_diff('month', first, last)", node)
    end, start = (reader.moment(one) for one in (node.this, node.expression))
    found = None
    if start.range is not None and end.range is not None:
        low, high = ((one - other) / PERIODS[unit] for one, other in zip(end.range, start.range[::-1], strict=True))
        found = (math.floor(low) - 1.0, math.ceil(high) + 1.0)
    return made("date_diff", "int", (start, end), value=unit, range=found, null=True)


def _formatted(reader: Reads, node: exp.TimeToStr) -> Expression:
    one, text = _moment(reader, node.this, node), node.args.get("format")
    form = str(text.this) if isinstance(text, exp.Literal) and text.is_string else ""
    if not FORMAT.fullmatch(form):
        raise refused("strftime takes a format that is written out, of %Y %m %d %H %M %b %B %a %A %j %y", node)
    return made("strftime", "text", (one, literal(form, "text")))


def _made_date(reader: Reads, node: exp.DateFromParts) -> Expression:
    given = [reader.number(node.args[name]) for name in ("year", "month", "day") if node.args.get(name) is not None]
    if len(given) != 3 or any(one.kind not in ("int", "null") for one in given):
        raise refused("make_date takes three whole numbers: year, month, day", node)
    return made("make_date", "date", given, null=True)


def _date(reader: Reads, node: exp.Date) -> Expression:
    return made("cast", "date", (_moment(reader, node.this, node),), value="DATE", null=True)


def _moment(reader: Reads, node: Node, whole: Node) -> Expression:
    found = reader.read(node)
    if found.kind not in MOMENTS:
        raise refused(f"a date is needed here, and this is of kind {found.kind}", whole)
    return found


MOMENT_METHODS: dict[Any, Callable[[Any, Any], Expression]] = {
    exp.Interval: _interval,
    **dict.fromkeys((exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.Hour, exp.Minute), _part),
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfMonth, exp.DayOfYear, exp.WeekOfYear), _part),
    exp.Dayname: _named,
    exp.Monthname: _named,
    exp.DateTrunc: _trunc,
    exp.TimestampTrunc: _trunc,
    exp.LastDay: _last_day,
    exp.DateDiff: _between,
    exp.TimeToStr: _formatted,
    exp.DateFromParts: _made_date,
    exp.Date: _date,
}
ANONYMOUS_MOMENTS = {"date_part": _named_part, "datepart": _named_part, "weekday": _weekday}
