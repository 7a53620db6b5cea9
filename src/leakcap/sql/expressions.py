"""What a query computes of a row: expressions of our own, with kind, range, and whether they can be missing.

They are total. Whatever DuckDB would fail on, a division by 0, a number too large, a text that is no date, is NULL: an
error would tell of the row that made it. And it is NULL because a condition keeps it from being computed, or a wider
type has room for it: TRY would do the work for all rows near it again, and how long that takes would tell as well.
`WRITTEN` makes the SQL, letter by letter from allowed words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from leakcap.sql.refusals import refused

__all__ = [
    "FIRST_DAY",
    "FURTHEST",
    "LAST_DAY",
    "Expression",
    "NoisedColumn",
    "Range",
    "column",
    "literal",
    "may_be_least",
    "may_lack_room",
    "quoted_text",
    "short",
    "unknown",
]

Range = tuple[float, float]
MOST = 1e300  # beyond, a number counts as out of range
UNSURE = ("float",)  # kinds that can be infinite or no number
LARGEST = 200_000  # letters of one expression, about
LONGEST_TEXT = 2_000  # letters of texts that are put together
# Dates and times from here to there are never near the end of what the engine can hold, whatever is done with them.
FIRST_DAY, LAST_DAY = "DATE '100000-01-01 (BC)'", "DATE '99999-12-31'"
FURTHEST = 36_500_000  # days that they may be moved by, and where they surely are
MOST_WHOLE = 9.2e18  # below it, 64 bits have room
WIDEST = 38  # digits of a decimal
# What is written more than once, with the condition that it can be computed.
COPIES = {"sqrt": 2, "ln": 2, "log2": 2, "log10": 2, "shift left": 2, "near": 2, "make_date": 4}


@dataclass(frozen=True)
class NoisedColumn:
    """A column of a table of the file whose values are found by a noised count of people."""

    place: str
    column: str
    kind: str
    digits: tuple[int, int] | None
    threshold: float

    @property
    def table(self) -> str:
        """What the released values are called."""
        return f"n{self.place}{self.column}"


@dataclass(frozen=True)
class Expression:
    """A node. `op` says what it is: "column", "literal", or a word of `WRITTEN`."""

    op: str
    kind: str  # bool, int, decimal, float, text, date, timestamp, interval, null
    args: tuple[Expression, ...] = ()
    value: Any = None  # of a literal; a column's name in the SQL; what else an op needs
    digits: tuple[int, int] | None = None
    range: Range | None = None  # of numbers; dates in days
    null: bool = True  # whether it can be missing
    wild: bool = False  # whether it can be infinite, no number or too far a date, and is guarded where it is used
    identity: str | None = None  # the key of people that it is
    levels: tuple[Any, ...] | None = None  # all of its values
    refers: str | None = None
    noised: NoisedColumn | None = None  # where its values are to be found
    private: bool = False
    declared: bool = True  # whether its levels were declared, or follow from what was

    def columns(self) -> Iterator[Expression]:
        """All columns in it."""
        if self.op == "column":
            yield self
        for one in self.args:
            yield from one.columns()

    @cached_property
    def asks(self) -> bool:
        """Whether there is a query in it."""
        return self.op in ("query", "quantified") or any(one.asks for one in self.args)

    @property
    def of_whole(self) -> bool:
        """Whether it is a whole number made of whole numbers."""
        return self.kind == "int" and all(one.kind in ("int", "null") for one in self.args)

    @cached_property
    def size(self) -> int:
        """Letters that it takes, about and at least: what is guarded is written more than once."""
        own = len(self.value[1]) if self.op == "quantified" else len(str(self.value))
        times = [self._copies * (2 if one.wild else 1) for one in self.args]
        if self.op in ("divide", "whole", "mod"):
            times[1] *= 2  # the right side is also compared with 0
        return 20 + own + sum(one.size * count for one, count in zip(self.args, times, strict=True))

    @property
    def _copies(self) -> int:
        return 2 if _needs_a_look(self) else COPIES.get(self.op, 1)

    @property
    def sql(self) -> str:
        """As it is written; guarded nowhere."""
        return WRITTEN[self.op](self)

    @property
    def safe(self) -> str:
        """As it is written where it is used: NULL in place of what is no finite number, or too far a date."""
        if not self.wild:
            return self.sql
        here = f"{self.sql} BETWEEN {FIRST_DAY} AND {LAST_DAY}" if self.of_time else f"isfinite({self.sql})"
        return f"(CASE WHEN {here} THEN {self.sql} END)"

    @property
    def of_time(self) -> bool:
        return self.kind in ("date", "timestamp")


def short(one: Expression) -> Expression:
    """The expression, where it is not too long to be written: what is used twice doubles at every level."""
    if one.size > LARGEST:
        raise refused(
            "an expression is too long once written out: ask for less, or name a part of it in a query in FROM, and go "
            "on there"
        )
    return one


def quoted_text(text: str) -> str:
    """A text as a literal; whatever it holds, it stays one."""
    if "\x00" in text:
        raise ValueError("no text has a zero byte")
    return "'" + text.replace("'", "''") + "'"


def column(name: str, kind: str, **facts: Any) -> Expression:
    return Expression("column", kind, value=name, **facts)


def literal(value: Any, kind: str, digits: tuple[int, int] | None = None) -> Expression:
    span = None
    if value is None:
        pass
    elif kind in ("int", "decimal", "float"):
        span = (float(value), float(value))
    elif kind in ("date", "timestamp"):
        span = (day_of(value), day_of(value))
    return Expression(
        "literal",
        kind,
        value=value,
        digits=digits,
        range=span,
        null=value is None,
        levels=() if value is None else (value,),
    )


def unknown() -> Expression:
    """NULL."""
    return literal(None, "null")


def day_of(moment: date) -> float:
    """A date as a number of days."""
    days = float(moment.toordinal())
    if isinstance(moment, datetime):
        days += (moment - datetime(moment.year, moment.month, moment.day)).total_seconds() / 86400
    return days


def span(values: Iterable[float]) -> Range | None:
    """From the least to the largest, with room for rounding; None where that is too much."""
    found = list(values)
    if not found or any(math.isnan(one) or abs(one) > MOST for one in found):
        return None
    return min(found), max(found)


def _literal(one: Expression) -> str:
    value = one.value
    if value is None:
        return f"NULL::{one.kind.upper()}" if one.of_time else "NULL"  # functions of times must know which they are
    if one.kind == "bool":
        return "TRUE" if value else "FALSE"
    if one.kind == "int":
        return f"({int(value)}::BIGINT)"  # two smaller ones might overflow where 64 bits do not
    if one.kind == "float":
        return f"({float(value)!r}::DOUBLE)"
    if one.kind == "decimal":
        assert one.digits is not None
        return f"({value}::DECIMAL({one.digits[0]},{one.digits[1]}))"
    if one.kind == "text":
        return quoted_text(value)
    if one.kind == "interval":
        return f"to_{value[1]}({int(value[0])})"
    moment = value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    return f"{quoted_text(moment)}::{one.kind.upper()}"


def _with_room(made: str) -> str:
    """NULL in place of what has no room in 64 bits."""
    return f"TRY_CAST({made} AS BIGINT)"


def _infix(sign: str) -> Callable[[Expression], str]:
    def write(one: Expression) -> str:
        left, right = one.args
        if left.of_time or right.of_time:
            return f"({left.safe} {sign} {right.safe})"
        if one.of_whole and may_overflow(one):
            return _with_room(f"({left.sql}::HUGEINT {sign} {right.sql}::HUGEINT)")
        return _wide(one, sign) if one.kind == "decimal" and may_overflow(one) else f"({left.sql} {sign} {right.sql})"

    return write


def may_overflow(one: Expression) -> bool:
    """Whether DuckDB might fail on the sum, difference or product of numbers as they are."""
    if one.kind == "float":
        return False
    # Of two decimals with room in 64 bits DuckDB keeps a result in 64 bits too, and fails where it is larger.
    room = 10.0 ** (17 - one.digits[1]) if one.digits else MOST_WHOLE
    return one.range is None or max(map(abs, one.range)) >= room


def may_lack_room(one: Expression) -> bool:
    """Whether NULL may stand in place of a sum, difference or product that is too large."""
    return may_overflow(one) and (one.kind == "int" or _needs_a_look(one))


def _wide(one: Expression, sign: str) -> str:
    """A sum, difference or product of decimals with all the digits that there are; NULL where they are too few."""
    (left, right), scale = one.args, _scale(one)
    scales = [scale, scale] if one.op != "multiply" else [arg.digits[1] if arg.digits else 0 for arg in one.args]
    made = " ".join(
        (f"({left.sql}::DECIMAL({WIDEST},{scales[0]})", sign, f"{right.sql}::DECIMAL({WIDEST},{scales[1]}))")
    )
    if not _needs_a_look(one):
        return made
    most = 10.0 ** (WIDEST - 1 - scale)
    rough = [f"abs({arg.sql}::DOUBLE)" for arg in one.args]
    small = (
        f"{rough[0]} * {rough[1]} < {most!r}"
        if one.op == "multiply"
        else " AND ".join(f"{each} < {most!r}" for each in rough)
    )
    return f"(CASE WHEN {small} THEN {made} END)"


def _scale(one: Expression) -> int:
    return one.digits[1] if one.digits else 0


def _needs_a_look(one: Expression) -> bool:
    """Whether digits may be too few for decimals, so that their size is looked at first."""
    if one.kind != "decimal" or one.op not in ("add", "subtract", "multiply") or not may_overflow(one):
        return False
    (p, s), (q, t) = (arg.digits or (WIDEST, 0) for arg in one.args)
    scale = _scale(one)
    return (p + q if one.op == "multiply" else max(p - s, q - t) + scale + 1) > WIDEST


def _compared(one: Expression) -> str:
    left, right = one.args
    return f"({left.safe} {one.value} {right.safe})"


def _divided(one: Expression) -> str:
    left, right = one.args
    below, sign = right.safe, {"divide": "/", "whole": "//", "mod": "%"}[one.op]
    if right.range is None or right.range[0] <= 0 <= right.range[1]:
        below = f"(CASE WHEN {below} <> 0 THEN {below} END)"
    if one.op == "divide":
        return f"({left.sql} {sign} {below})"
    # The least of all whole numbers by -1 is one too large.
    if may_be_least(left) and (right.range is None or right.range[0] <= -1 <= right.range[1]):
        return _with_room(f"({left.safe}::HUGEINT {sign} {below}::HUGEINT)")
    return f"({left.safe} {sign} {below})"


def may_be_least(one: Expression) -> bool:
    """Whether it can be the least of all whole numbers, which is one too large without its sign."""
    return one.kind == "int" and (one.range is None or one.range[0] <= -MOST_WHOLE)


def _joined(word: str) -> Callable[[Expression], str]:
    return lambda one: "(" + f" {word} ".join(arg.safe for arg in one.args) + ")"


def _concat(one: Expression) -> str:
    """Texts one after the other, cut off where they get long.

    A text beside itself, and that beside itself, and so on, would fill the memory wherever a row has one: whether the
    question fails would tell of that row.
    """
    parts = [arg.safe for arg in one.args]
    while len(parts) > 1:  # two by two: the engine does not go deep
        pairs = [f"left({a} || {b}, {LONGEST_TEXT})" for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _case(one: Expression) -> str:
    """`args` are condition, result, condition, result, …, and what is left."""
    parts = [f"WHEN {one.args[at].safe} THEN {one.args[at + 1].safe}" for at in range(0, len(one.args) - 1, 2)]
    return f"(CASE {' '.join(parts)} ELSE {one.args[-1].safe} END)"


def _call(name: str) -> Callable[[Expression], str]:
    return lambda one: f"{name}({', '.join(arg.safe for arg in one.args)})"


def _where(name: str, condition: str) -> Callable[[Expression], str]:
    """A function where it has a value, NULL elsewhere."""

    def write(one: Expression) -> str:
        of = one.args[0].safe
        return f"(CASE WHEN {of} {condition} THEN {name}({of}) END)"

    return write


def _abs(one: Expression) -> str:
    of = one.args[0]
    return _with_room(f"abs({of.safe}::HUGEINT)") if may_be_least(of) else f"abs({of.safe})"


def _near(one: Expression) -> str:
    """Days by which a date can be moved."""
    of = one.args[0].safe
    return f"(CASE WHEN {of} BETWEEN -{FURTHEST} AND {FURTHEST} THEN {of} END)"


def _made_date(one: Expression) -> str:
    year, month, day = (arg.safe for arg in one.args)
    known = f"{year} BETWEEN -90000 AND 90000 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
    made = f"make_date({year}, {month}, 1) + ({day} - 1)::INTEGER"  # the 30th of February is in March
    return f"(CASE WHEN {known} THEN CASE WHEN month({made}) = {month} THEN {made} END END)"


def _cast(one: Expression) -> str:
    of = one.args[0]
    # 0 and -0 are equal, so that either may stand for both in a group of them: as text they are one too.
    given = f"({of.safe} + 0.0::DOUBLE)" if of.kind == "float" and one.kind == "text" else of.safe
    return f"TRY_CAST({given} AS {one.value})"


def _among(one: Expression) -> str:
    first, *rest = one.args
    return f"({first.safe} IN ({', '.join(arg.safe for arg in rest)}))"


def _like(one: Expression) -> str:
    left, right = one.args
    return f"({left.safe} {one.value} {right.safe})"


def _part(one: Expression) -> str:
    return f"date_part('{one.value}', {one.args[0].safe})"


def _trunc(one: Expression) -> str:
    return f"date_trunc('{one.value}', {one.args[0].safe})::DATE"


def _inside(one: Expression) -> str:
    """A query inside an expression; its text is ours already."""
    return f"({one.value})"


def _quantified(one: Expression) -> str:
    word, query = one.value
    if word in ("EXISTS", "NOT EXISTS"):
        return f"({word} ({query}))"
    return f"({one.args[0].safe} {word} ({query}))"


def _signed(sign: str) -> Callable[[Expression], str]:
    return lambda one: f"({one.args[0].safe} {sign} {one.args[1].safe})"


def _shifted_left(one: Expression) -> str:
    of, by = (arg.safe for arg in one.args)
    return f"(CASE WHEN {of} >= 0 AND {by} >= 0 THEN {_with_room(f'({of}::HUGEINT << least({by}, 63)::HUGEINT)')} END)"


def _negated(one: Expression) -> str:
    of = one.args[0].sql
    return _with_room(f"-({of}::HUGEINT)") if one.of_whole else f"(-{of})"


WRITTEN: dict[str, Callable[[Expression], str]] = {
    "column": lambda one: str(one.value),
    "literal": _literal,
    "add": _infix("+"),
    "subtract": _infix("-"),
    "multiply": _infix("*"),
    "divide": _divided,
    "whole": _divided,
    "mod": _divided,
    "negate": _negated,
    "compare": _compared,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": lambda one: f"(NOT {one.args[0].safe})",
    "is null": lambda one: f"({one.args[0].safe} IS NULL)",
    "case": _case,
    "coalesce": _call("coalesce"),
    "cast": _cast,
    "in": _among,
    "like": _like,
    "part": _part,
    "trunc": _trunc,
    "query": _inside,
    "quantified": _quantified,
    "concat": _concat,
    "bit and": _signed("&"),
    "bit or": _signed("|"),
    "shift left": _shifted_left,
    "shift right": _signed(">>"),
    "sign": lambda one: f"(sign({one.args[0].safe})::BIGINT)",
    "trunc number": lambda one: f"trunc({one.args[0].safe})",
    "date_diff": lambda one: f"date_diff('{one.value}', {one.args[0].safe}, {one.args[1].safe})",
    "near": _near,
    "make_date": _made_date,
    "abs": _abs,
    "sqrt": _where("sqrt", ">= 0"),
    **{name: _where(name, "> 0") for name in ("ln", "log2", "log10")},
    **{name: _call(name) for name in ("last_day", "strftime", "cbrt", "sin", "cos", "floor", "ceil", "exp", "pow")},
    "round": lambda one: f"round({one.args[0].safe}, {one.args[1].safe}::INTEGER)",
    **{name: _call(name) for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length", "substring")},
    **{name: _call(name) for name in ("greatest", "least", "left", "right")},
    # Longer than the text it is of, and so on if it is done again: cut, before it fills the memory.
    "replace": lambda one: f"left(replace({', '.join(arg.safe for arg in one.args)}), {LONGEST_TEXT})",
    **{name: _call(name) for name in ("contains", "starts_with", "ends_with")},
}


def any_wild(args: Sequence[Expression]) -> bool:
    return any(arg.wild for arg in args)
