"""What a query computes of a row: expressions of our own, with kind, range, and whether they can be missing.

They are total. Whatever DuckDB would fail on, a division by 0, a number too large, a text that is no date, is NULL: an
error would tell of the row that made it. `written` makes the SQL, letter by letter from allowed words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from leakcap.sql.refusals import refused

__all__ = ["Expression", "NoisedColumn", "Range", "column", "literal", "quoted_text", "short", "unknown"]

Range = tuple[float, float]
MOST = 1e300  # beyond, a number counts as out of range
UNSURE = ("float",)  # kinds that can be infinite or no number
LARGEST = 200_000  # letters of one expression, about
LONGEST_TEXT = 2_000  # letters of texts that are put together
TRIED_SIGNS = ("whole", "mod", "bit and", "bit or", "shift left", "shift right", "part", "trunc", "date_diff")
TRIED_CALLS = ("abs", "floor", "ceil", "sqrt", "cbrt", "ln", "log2", "log10", "exp", "pow", "sin", "cos", "round")
TRIED = frozenset((*TRIED_SIGNS, *TRIED_CALLS, "last_day", "strftime", "make_date"))  # written with TRY
DEEPEST_TRIES = 6  # one in the other


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
    wild: bool = False  # whether it can be infinite or no number, and is guarded where it is used
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
    def tries(self) -> int:
        """How deep what may fail stands in what may fail: at most, and not through queries inside."""
        counted = self.op in ("add", "subtract", "multiply", "negate") and self.kind != "float" and not self.of_whole
        may_fail = counted or self.op in TRIED
        return max((one.tries for one in self.args), default=0) + may_fail

    @cached_property
    def size(self) -> int:
        """Letters that it takes, about and at least: what is guarded is written more than once."""
        own = len(self.value[1]) if self.op == "quantified" else len(str(self.value))
        twice = self.op in ("divide", "whole", "mod")  # the right side is also compared with 0
        return (
            20
            + own
            + sum(one.size * (2 if one.wild else 1) * (2 if twice and at else 1) for at, one in enumerate(self.args))
        )

    @property
    def sql(self) -> str:
        """As it is written; guarded nowhere."""
        return WRITTEN[self.op](self)

    @property
    def safe(self) -> str:
        """As it is written where it is used: NULL in place of what is no finite number."""
        return f"(CASE WHEN isfinite({self.sql}) THEN {self.sql} END)" if self.wild else self.sql


def short(one: Expression) -> Expression:
    """The expression, where it is not too long to be written: what is used twice doubles at every level.

    Nor too deep in what may fail: where it fails, the engine tries a row again, and again at every level. Work would
    double by a level for somebody's row alone.
    """
    if one.size > LARGEST:
        raise refused("an expression is too long once written out: ask for less, or in several steps")
    if one.tries > DEEPEST_TRIES:
        raise refused(
            f"more than {DEEPEST_TRIES} functions that may fail stand one in the other: name a result in a query in "
            "FROM, and go on there"
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
        return "NULL"
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


def _tried(one: Expression, made: str) -> str:
    """NULL in place of an error. DuckDB cannot do this around a query."""
    if one.asks:
        raise refused(
            "this function cannot be applied to a query in brackets, EXISTS or IN (select ...): name its result in a "
            "query in FROM, and apply it there"
        )
    return f"TRY({made})"


def _with_room(made: str) -> str:
    """NULL in place of what has no room in 64 bits. TRY would do its work again for whoever's row fails."""
    return f"TRY_CAST({made} AS BIGINT)"


def _infix(sign: str) -> Callable[[Expression], str]:
    def write(one: Expression) -> str:
        left, right = (arg.sql for arg in one.args)
        if one.of_whole and may_overflow(one):
            return _with_room(f"({left}::HUGEINT {sign} {right}::HUGEINT)")
        made = f"({left} {sign} {right})"
        return _tried(one, made) if may_overflow(one) else made

    return write


def may_overflow(one: Expression) -> bool:
    """Whether DuckDB might fail on the sum, difference or product."""
    if one.kind == "float":
        return False
    # Of two decimals with room in 64 bits DuckDB keeps a result in 64 bits too, and fails where it is larger.
    room = 10.0 ** (17 - one.digits[1]) if one.digits else 9e18
    return one.range is None or one.kind in ("date", "timestamp") or max(map(abs, one.range)) >= room


def _compared(one: Expression) -> str:
    left, right = one.args
    return f"({left.safe} {one.value} {right.safe})"


def _divided(one: Expression) -> str:
    left, right = one.args
    below = right.safe
    if right.range is None or right.range[0] <= 0 <= right.range[1]:
        below = f"(CASE WHEN {below} <> 0 THEN {below} END)"
    sign = {"divide": "/", "whole": "//", "mod": "%"}[one.op]
    made = f"({left.sql} {sign} {below})" if one.op == "divide" else f"({left.safe} {sign} {below})"
    return made if one.op == "divide" else _tried(one, made)


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


def _call(name: str, guard: bool = True) -> Callable[[Expression], str]:
    def write(one: Expression) -> str:
        made = f"{name}({', '.join(arg.safe for arg in one.args)})"
        return _tried(one, made) if guard else made

    return write


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
    return _tried(one, f"date_part('{one.value}', {one.args[0].safe})")


def _trunc(one: Expression) -> str:
    return _tried(one, f"date_trunc('{one.value}', {one.args[0].safe})::DATE")


def _inside(one: Expression) -> str:
    """A query inside an expression; its text is ours already."""
    return f"({one.value})"


def _quantified(one: Expression) -> str:
    word, query = one.value
    if word in ("EXISTS", "NOT EXISTS"):
        return f"({word} ({query}))"
    return f"({one.args[0].safe} {word} ({query}))"


def _shifted(sign: str) -> Callable[[Expression], str]:
    return lambda one: _tried(one, f"({one.args[0].safe} {sign} {one.args[1].safe})")


def _negated(one: Expression) -> str:
    of = one.args[0].sql
    if one.of_whole:
        return _with_room(f"-({of}::HUGEINT)")
    return f"(-{of})" if one.kind == "float" else _tried(one, f"-{of}")


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
    "coalesce": _call("coalesce", guard=False),
    "cast": _cast,
    "in": _among,
    "like": _like,
    "part": _part,
    "trunc": _trunc,
    "query": _inside,
    "quantified": _quantified,
    "concat": _concat,
    "bit and": _shifted("&"),
    "bit or": _shifted("|"),
    "shift left": _shifted("<<"),
    "shift right": _shifted(">>"),
    "sign": lambda one: f"(sign({one.args[0].safe})::BIGINT)",
    "trunc number": lambda one: f"trunc({one.args[0].safe})",
    "date_diff": lambda one: _tried(one, f"date_diff('{one.value}', {one.args[0].safe}, {one.args[1].safe})"),
    **{name: _call(name) for name in ("last_day", "strftime", "make_date", "cbrt", "sin", "cos", "log2")},
    "round": lambda one: _tried(one, f"round({one.args[0].safe}, {one.args[1].safe}::INTEGER)"),
    **{name: _call(name) for name in ("abs", "floor", "ceil", "sqrt", "ln", "log10", "exp", "pow")},
    **{name: _call(name, guard=False) for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length", "substring")},
    **{name: _call(name, guard=False) for name in ("greatest", "least", "left", "right")},
    # Longer than the text it is of, and so on if it is done again: cut, before it fills the memory.
    "replace": lambda one: f"left(replace({', '.join(arg.safe for arg in one.args)}), {LONGEST_TEXT})",
    **{name: _call(name, guard=False) for name in ("contains", "starts_with", "ends_with")},
}


def any_wild(args: Sequence[Expression]) -> bool:
    return any(arg.wild for arg in args)
