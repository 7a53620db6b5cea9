"""Expressions of a query, read into our own: what is not on the list here does not exist."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from leakcap.sql.allowed import ARITHMETIC, CASTS, COMPARISONS, PARTS_OF, only, unknown_word
from leakcap.sql.expressions import Expression, Range, literal, may_be_least, short, span, unknown
from leakcap.sql.functions import ANONYMOUS_FUNCTIONS, FUNCTION_METHODS
from leakcap.sql.kinds import (
    MOMENTS,
    NUMBERS,
    alike,
    chosen,
    combined,
    made,
    moment,
    moved,
    number_of,
    numeric,
    same_kind,
    united,
    wrong_interval,
)
from leakcap.sql.moments import ANONYMOUS_MOMENTS, MOMENT_METHODS
from leakcap.sql.refusals import Node, NotAnswered, placed, refused

__all__ = ["Beside", "Reader", "conjuncts", "only"]

LONGEST = 2000  # nodes of one query's expressions
MOMENT = 1e-6  # days: sums of hours as parts of a day are right to far less


@dataclass(frozen=True)
class Beside:
    """A column that is computed beside the rows: a window."""

    sql: str
    value: Expression
    of: tuple[Expression, ...]  # what it looks at in other rows
    fixed: frozenset[str] | None  # columns that are equal where its order sees none; None where ties do not matter
    node: Node
    numbers_rows: bool = False  # whether it numbers the rows of each person: 1, 2, 3


class Reader:
    """Reads expressions, names being looked up by `find` and what only a whole query knows by `other`."""

    def __init__(self, find: Callable[[exp.Column], Expression], other: Callable[[Node], Expression | None]) -> None:
        self.find, self.other, self.left = find, other, LONGEST
        self.beside: dict[str, Beside] = {}  # by their text

    def read(self, node: Node) -> Expression:
        self.left -= 1
        if self.left < 0:
            raise refused(f"the question has more than {LONGEST:,} parts: ask several")
        known = self.other(node)
        if known is not None:
            return known
        method = METHODS.get(type(node))
        if isinstance(node, exp.Anonymous):
            method = ANONYMOUS.get(node.name.lower())
        if method is None:
            raise refused(unknown_word(node), node)
        only(node, PARTS_OF.get(type(node), {"this", "expression"}))
        try:
            return short(method(self, node))
        except NotAnswered as refusal:
            raise placed(refusal, node) from None

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

    def moment(self, node: Node) -> Expression:
        """A date, also one that is written out."""
        found = self.read(node)
        if found.op == "literal" and found.kind == "text":
            return moment(found, "date", node)
        if found.kind not in (*MOMENTS, "null"):
            raise refused(f"a date is needed here, and this is of kind {found.kind}", node)
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
            gaps = left.null or right.null or found is None
            return made("divide", "float", (left, right), range=found, wild=found is None, null=gaps)
        op = "whole" if isinstance(node, exp.IntDiv) else "mod"
        if {left.kind, right.kind} != {"int"}:
            raise refused("// and % are for whole numbers: use floor(a / b)", node)
        found = None
        if op == "mod" and right.range:
            size = max(map(abs, right.range))
            found = (0.0 if left.range and left.range[0] >= 0 else -size, size)
        elif op == "whole" and left.range and right.op == "literal" and right.range and right.range[0] >= 1:
            by = int(right.range[0])  # towards 0, as DuckDB does
            low, high = (int(math.copysign(abs(int(end)) // by, end)) for end in left.range)
            found = (float(low), float(high))
        elif op == "whole" and left.range:
            size = max(map(abs, left.range))
            found = (-size, size)
        sure = right.range is not None and not right.range[0] <= 0 <= right.range[1] and not may_be_least(left)
        return made(op, "int", (left, right), range=found, null=left.null or right.null or not sure)

    def _negated(self, node: exp.Neg) -> Expression:
        one = self.number(node.this)
        found = None if one.range is None else (-one.range[1], -one.range[0])
        return made("negate", one.kind, (one,), range=found, digits=one.digits, wild=one.wild)

    def _compared(self, node: exp.Binary) -> Expression:
        left, right = alike(self.read(node.this), self.read(node.expression), node)
        known = {"null": False} if type(node) in (exp.NullSafeEQ, exp.NullSafeNEQ) else {}
        return made("compare", "bool", (left, right), value=COMPARISONS[type(node)], **known)

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
        left, right = self.text(node.this), literal(_in_one_go(pattern.value, node), "text")
        if isinstance(node, exp.ILike):
            left, right = (made("lower", "text", (one,)) for one in (left, right))
        found = made("like", "bool", (left, right), value="LIKE")
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
            found = None if one.range is None else _on_grid(one.range, digits[1])
            return made(
                "cast", "decimal", (one,), value=f"DECIMAL({digits[0]},{digits[1]})", digits=digits, range=found
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
        if kept is not None and kind == "date" and one.kind == "timestamp":
            kept = _from_midnight(kept)
        wild = kind in ("float", *MOMENTS) and one.kind == "text"  # 'infinity' is a date too
        sure = kept is not None and kind in NUMBERS and max(map(abs, kept)) < 1e18
        return made("cast", kind, (one,), value=name, range=kept, wild=wild, null=one.null or not sure)


METHODS: dict[Any, Callable[[Reader, Any], Expression]] = {
    exp.Literal: Reader._literal,
    exp.Boolean: Reader._boolean,
    exp.Null: Reader._null,
    exp.Paren: Reader._paren,
    exp.Column: Reader._column,
    **dict.fromkeys(ARITHMETIC, Reader._arithmetic),
    **dict.fromkeys((exp.Div, exp.IntDiv, exp.Mod), Reader._divided),
    exp.Neg: Reader._negated,
    **dict.fromkeys(COMPARISONS, Reader._compared),
    exp.And: Reader._and,
    exp.Or: Reader._or,
    exp.Not: Reader._not,
    exp.Is: Reader._is,
    exp.In: Reader._in,
    exp.Between: Reader._between,
    exp.Like: Reader._like,
    exp.ILike: Reader._like,
    exp.Case: Reader._case,
    exp.If: Reader._if,
    exp.Coalesce: Reader._coalesce,
    exp.Nullif: Reader._nullif,
    exp.Cast: Reader._cast,
    exp.TryCast: Reader._cast,
    **MOMENT_METHODS,
    **FUNCTION_METHODS,
}
ANONYMOUS: dict[str, Callable[[Reader, Any], Expression]] = {**ANONYMOUS_MOMENTS, **ANONYMOUS_FUNCTIONS}


def _in_one_go(pattern: str, node: Node) -> str:
    """A pattern that is found by going through a text once.

    With _ the engine tries every place for each %, within one another: of one text it may never come to an end, and
    that would tell of whoever has it.
    """
    if "_" not in pattern:
        return pattern
    found = re.sub("[%_]+", lambda wild: "_" * wild[0].count("_") + "%" * ("%" in wild[0]), pattern)
    if found[:-1].count("%") > 1:
        raise refused("a pattern with _ has one % before its end: put several patterns together with AND", node)
    return found


def _on_grid(given: Range, places: int) -> Range | None:
    """A range of numbers once they are rounded to so many places; None where none of them has room in a decimal."""
    step = 10.0**places
    if not math.isfinite(max(map(abs, given)) * step):
        return None
    return math.floor(given[0] * step) / step, math.ceil(given[1] * step) / step


def _from_midnight(given: Range) -> Range:
    """A range of times once they are days: each begins before them."""
    return float(math.floor(given[0] - MOMENT)), float(math.floor(given[1] + MOMENT))


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
