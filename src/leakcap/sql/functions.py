"""Functions of numbers and texts, each with the range of what it makes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from leakcap.sql.allowed import CURVED, ROUNDED, TEXTS, Reads
from leakcap.sql.expressions import Expression, literal, span
from leakcap.sql.kinds import as_float, made, range_of_extremes, same_kind, united
from leakcap.sql.refusals import Node, refused

__all__ = ["ANONYMOUS_FUNCTIONS", "FUNCTION_METHODS"]

SHIFTS = {exp.BitwiseLeftShift: "shift left", exp.BitwiseRightShift: "shift right"}
BITS = {exp.BitwiseAnd: "bit and", exp.BitwiseOr: "bit or", **SHIFTS}
WITHIN = {exp.StartsWith: "starts_with", exp.EndsWith: "ends_with", exp.Contains: "contains"}
LONGEST_NEW = 40  # letters that take the place of others


def _substring(reader: Reads, node: exp.Substring) -> Expression:
    start = literal(reader.whole_number(node.args.get("start"), 100_000), "int")
    length = node.args.get("length")
    more = () if length is None else (literal(reader.whole_number(length, 100_000), "int"),)
    return made("substring", "text", (reader.text(node.this), start, *more))


def _side(reader: Reads, node: Node) -> Expression:
    size = literal(reader.whole_number(node.expression, 100_000), "int")
    return made("left" if isinstance(node, exp.Left) else "right", "text", (reader.text(node.this), size))


def _texted(reader: Reads, node: Node) -> Expression:
    return made(TEXTS[type(node)], "text", (reader.text(node.this),))


def _trim(reader: Reads, node: exp.Trim) -> Expression:
    if node.expression is not None:
        raise refused("TRIM takes off blanks here", node)
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return made(name, "text", (reader.text(node.this),))


def _length(reader: Reads, node: exp.Length) -> Expression:
    return made("length", "int", (reader.text(node.this),), range=(0.0, 2.0**31))


def _concat(reader: Reads, node: Node) -> Expression:
    parts = [_as_text(reader, one) for one in (node.flatten() if isinstance(node, exp.DPipe) else node.expressions)]
    if isinstance(node, exp.Concat):
        parts = [made("coalesce", "text", (one, literal("", "text")), null=False) for one in parts]
    return made("concat", "text", tuple(parts))


def _as_text(reader: Reads, node: Node) -> Expression:
    found = reader.read(node)
    if found.kind in ("int", "decimal", "date", "bool"):
        return made("cast", "text", (found,), value="VARCHAR")
    if found.kind not in ("text", "null"):
        raise refused(f"a text is needed here, and this is of kind {found.kind}", node)
    return found


def _within(reader: Reads, node: Node) -> Expression:
    return _found_in(reader, WITHIN[type(node)], [node.this, node.expression], node)


def _affix(reader: Reads, node: exp.Anonymous) -> Expression:
    name = {"prefix": "starts_with", "suffix": "ends_with"}[node.name.lower()]
    return _found_in(reader, name, node.expressions, node)


def _found_in(reader: Reads, name: str, given: list[Node], node: Node) -> Expression:
    if len(given) != 2:
        raise refused(f"{name} takes two texts", node)
    part = reader.text(given[1])
    if part.op != "literal" or part.value is None:
        raise refused(f"{name} takes a text that is written out, such as 'green'", node)
    return made(name, "bool", (reader.text(given[0]), part))


def _replaced(reader: Reads, node: exp.Replace) -> Expression:
    old, new = (reader.text(node.args[name]) for name in ("expression", "replacement") if node.args.get(name))
    if any(one.op != "literal" or not isinstance(one.value, str) for one in (old, new)) or len(new.value) > LONGEST_NEW:
        raise refused(f"replace takes two texts that are written out, of up to {LONGEST_NEW} letters", node)
    return made("replace", "text", (reader.text(node.this), old, new))


def _abs(reader: Reads, node: exp.Abs) -> Expression:
    one = reader.number(node.this)
    found = None
    if one.range is not None:
        low, high = one.range
        found = (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
    return made("abs", one.kind, (one,), range=found, digits=one.digits)


def _sign(reader: Reads, node: exp.Sign) -> Expression:
    return made("sign", "int", (reader.number(node.this),), range=(-1.0, 1.0))


def _rounded(reader: Reads, node: Node) -> Expression:
    one, places = as_float(reader.number(node.this)), 0
    if not isinstance(node, (exp.Round, exp.Trunc)):
        return made(ROUNDED[type(node)], "float", (one,), range=_cut(one, ROUNDED[type(node)]))
    if node.args.get("decimals") is not None:
        places = reader.whole_number(node.args["decimals"], 15)
    if isinstance(node, exp.Trunc):
        if places:
            raise refused("trunc takes a number alone: write round(value, places)", node)
        return made("trunc number", "float", (one,), range=_cut(one, "trunc"))
    step = 10.0**-places
    found = None if one.range is None else (one.range[0] - step, one.range[1] + step)
    return made("round", "float", (one, literal(places, "int")), range=found)


def _cut(one: Expression, name: str) -> tuple[float, float] | None:
    """The least and most of whole numbers; also after rounding."""
    if one.range is None:
        return None
    whole = {"floor": math.floor, "ceil": math.ceil}.get(name, math.trunc)
    return float(whole(one.range[0])), float(whole(one.range[1]))


def _curved(reader: Reads, node: Node) -> Expression:
    return made(CURVED[type(node)], "float", (as_float(reader.number(node.this)),), wild=isinstance(node, exp.Exp))


def _logarithm(reader: Reads, node: exp.Log) -> Expression:
    if node.expression is None:
        return made("log10", "float", (as_float(reader.number(node.this)),))
    base = reader.whole_number(node.this, 10)
    if base not in (2, 10):
        raise refused("logarithms are ln, log2 and log10: divide by ln of another base", node)
    return made(f"log{base}", "float", (as_float(reader.number(node.expression)),))


def _power(reader: Reads, node: exp.Pow) -> Expression:
    base, power = as_float(reader.number(node.this)), as_float(reader.number(node.expression))
    found = None
    if base.range and power.op == "literal" and power.value in (2.0, 3.0, 4.0):
        # Products of what is too large are infinite, where a power of it would be an error.
        found = span([*(math.prod([end] * int(power.value)) for end in base.range), 0.0])
    return made("pow", "float", (base, power), range=found, wild=found is None)


def _bits(reader: Reads, node: exp.Binary) -> Expression:
    left, right = reader.number(node.this), reader.number(node.expression)
    if {left.kind, right.kind} - {"int", "null"}:
        raise refused("bits are those of whole numbers", node)
    # What overflows is NULL, and so are shifts to the left by less than none, or of numbers below 0.
    return made(BITS[type(node)], "int", (left, right), null=True)


def _extreme(reader: Reads, node: Node) -> Expression:
    args = same_kind([reader.read(one) for one in (node.this, *node.expressions)], node)
    name = "greatest" if isinstance(node, exp.Greatest) else "least"
    found = made(name, args[0].kind, tuple(args), **united(args))
    return replace(found, range=range_of_extremes(found))


FUNCTION_METHODS: dict[Any, Callable[[Any, Any], Expression]] = {
    exp.Substring: _substring,
    exp.Left: _side,
    exp.Right: _side,
    **dict.fromkeys(TEXTS, _texted),
    exp.Trim: _trim,
    exp.Length: _length,
    exp.DPipe: _concat,
    exp.Concat: _concat,
    **dict.fromkeys(WITHIN, _within),
    exp.Replace: _replaced,
    exp.Abs: _abs,
    exp.Sign: _sign,
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Round, exp.Trunc), _rounded),
    **dict.fromkeys(CURVED, _curved),
    exp.Log: _logarithm,
    exp.Pow: _power,
    **dict.fromkeys(BITS, _bits),
    exp.Greatest: _extreme,
    exp.Least: _extreme,
}
ANONYMOUS_FUNCTIONS = {"prefix": _affix, "suffix": _affix}
