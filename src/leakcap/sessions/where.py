"""Conditions on rows as text, such as `age > 40 and ward in ('A', 'B')`: which rows a question is about.

The words are those of SQL. A comparison with a missing value, or of text with a number, is neither true nor false, and
such rows are left out, whatever else there is: no row can make a condition fail.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools

__all__ = ["matching"]

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<quoted>\"[^\"]+\")"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,|-))"
)
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}
HOW = "write it as in \"age >= 40 and ward in ('A', 'B')\", with and, or, not, in, between, is null"
MAX_LETTERS = 10_000


@dataclass(frozen=True)
class _Truth:
    """Of every row: true, false, or neither."""

    true: Bools
    false: Bools

    def __invert__(self) -> _Truth:
        return _Truth(self.false, self.true)

    def __and__(self, other: _Truth) -> _Truth:
        return _Truth(self.true & other.true, self.false | other.false)

    def __or__(self, other: _Truth) -> _Truth:
        return _Truth(self.true | other.true, self.false & other.false)


def matching(condition: str, columns: Mapping[str, Any], rows: int) -> Bools:
    """Which rows a condition is true for; an InputError where it cannot be read, or names a column there is not."""
    if len(condition) > MAX_LETTERS:
        raise InputError(f"the condition has more than {MAX_LETTERS:,} letters: ask several questions")
    reader = _Reader(_tokens(condition), columns, rows)
    found = reader.either()
    if reader.rest:
        raise InputError(f"the condition cannot be read from {reader.rest[0][1]!r} on: {HOW}")
    return found.true


def _tokens(condition: str) -> list[tuple[str, str]]:
    found, at = [], 0
    text = condition.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise InputError(f"the condition cannot be read from {text[at:].strip()[:12]!r} on: {HOW}")
        kind, word = match.lastgroup, match.group(match.lastgroup)
        if kind == "name" and word.lower() in WORDS:
            kind, word = "word", word.lower()
        found.append((kind, word))
        at = match.end()
    return found


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[tuple[str, str]], columns: Mapping[str, Any], rows: int) -> None:
        self.rest, self.columns, self.rows, self.depth = tokens, columns, rows, 0

    def either(self) -> _Truth:
        found = self.both()
        while self.take("or"):
            found = found | self.both()
        return found

    def both(self) -> _Truth:
        found = self.negated()
        while self.take("and"):
            found = found & self.negated()
        return found

    def negated(self) -> _Truth:
        self.depth += 1
        if self.depth > 100:
            raise InputError("the condition is nested too deeply: ask several questions")
        if self.take("not"):
            found = ~self.negated()
        elif self.take("("):
            found = self.either()
            self.need(")")
        else:
            found = self.comparison()
        self.depth -= 1
        return found

    def comparison(self) -> _Truth:
        left = self.operand()
        if self.take("is"):
            negate = self.take("not")
            self.need("null")
            missing = _missing(np.broadcast_to(np.asarray(left), (self.rows,)))
            found = _Truth(missing, ~missing)
            return ~found if negate else found
        negate = self.take("not")
        if self.take("in"):
            self.need("(")
            found = self._compared("=", left, self.operand())
            while self.take(","):
                found = found | self._compared("=", left, self.operand())
            self.need(")")
        elif self.take("between"):
            low = self.operand()
            self.need("and")
            found = self._compared(">=", left, low) & self._compared("<=", left, self.operand())
        elif not negate and self.rest and self.rest[0][1] in COMPARISONS:
            found = self._compared(self.rest.pop(0)[1], left, self.operand())
        elif not negate and isinstance(left, np.ndarray) and left.dtype == bool:
            found = _Truth(left, ~left)
        else:
            raise InputError(f"the condition lacks a comparison: {HOW}")
        return ~found if negate else found

    def operand(self) -> Any:
        sign = -1 if self.take("-") else 1
        if not self.rest:
            raise InputError(f"the condition ends too early: {HOW}")
        kind, word = self.rest.pop(0)
        if kind == "number":
            return sign * float(word)
        if sign < 0 or kind == "sign":
            raise InputError(f"the condition cannot be read at {word!r}: {HOW}")
        if kind == "text":
            return word[1:-1].replace("''", "'")
        if word in ("true", "false"):
            return word == "true"
        name = word[1:-1] if kind == "quoted" else word
        if kind == "word" or name not in self.columns:
            raise InputError(f"there is no column {name!r}: there are {', '.join(map(repr, self.columns))}")
        return np.asarray(self.columns[name])

    def take(self, word: str) -> bool:
        if self.rest and self.rest[0][0] in ("word", "sign") and self.rest[0][1] == word:
            self.rest.pop(0)
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise InputError(f"the condition lacks {word!r}: {HOW}")

    def _compared(self, sign: str, left: Any, right: Any) -> _Truth:
        if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
            raise InputError(f'a comparison needs a column, such as age > 40; a column called 0 is written "0": {HOW}')
        left, right = _as_dates(left, right), _as_dates(right, left)
        (one, known), (other, also) = _cells(left, right, self.rows), _cells(right, left, self.rows)
        with np.errstate(invalid="ignore"):
            found = np.asarray(COMPARISONS[sign](one, other), dtype=bool)
        sure = known & also
        return _Truth(found & sure, ~found & sure)


def _cells(side: Any, beside: Any, rows: int) -> tuple[Any, Bools]:
    """A side of a comparison in the kind of the other, and which of its cells are of that kind."""
    cells = np.broadcast_to(np.asarray(side), (rows,))
    as_text = any(np.asarray(part).dtype.kind in "US" for part in (side, beside)) or (
        np.asarray(side).dtype.kind == "O" and np.asarray(beside).dtype.kind == "O"
    )
    if cells.dtype.kind in "biuf":
        known = ~np.isnan(cells) if cells.dtype.kind == "f" else np.ones(rows, dtype=bool)
        return (np.zeros(rows, dtype="U1"), np.zeros(rows, dtype=bool)) if as_text else (cells, known)
    if cells.dtype.kind in "US":
        return (cells, np.ones(rows, dtype=bool)) if as_text else (np.zeros(rows), np.zeros(rows, dtype=bool))
    if cells.dtype.kind == "M":
        return cells, ~np.isnat(cells)
    wanted: type | tuple[type, ...] = str if as_text else (bool, int, float, np.number, np.bool_)
    known = np.fromiter((isinstance(cell, wanted) for cell in cells), dtype=bool, count=rows) & ~_missing(cells)
    filler: Any = "" if as_text else 0.0
    plain = np.array([cell if sure else filler for cell, sure in zip(cells, known, strict=True)])
    return plain, known


def _as_dates(side: Any, beside: Any) -> Any:
    """A text that is compared with a column of dates."""
    if not isinstance(side, str) or np.asarray(beside).dtype.kind != "M":
        return side
    try:
        return np.datetime64(side)
    except ValueError:
        pass
    raise InputError(f"{side!r} is no date: write it as in '2026-01-31'")


def _missing(cells: Any) -> Bools:
    import pandas

    return np.asarray(pandas.isna(cells), dtype=bool)
