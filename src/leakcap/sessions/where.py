"""Conditions on rows as text, such as `age > 40 and ward in ('A', 'B')`: which rows a question is about.

The words are those of SQL. Numbers are compared with numbers, text with text and dates with dates; every other
comparison is neither true nor false, and such rows are left out. What a row makes of a condition hangs on its own cells
alone: what kind the whole column is of would tell of others.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.own_types import as_date, as_number, is_missing

__all__ = ["matching", "missing_among", "numbers_among"]

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


def matching(condition: str, columns: Mapping[str, Any], rows: int, quiet: bool = False) -> Bools:
    """Which rows a condition is true for; an InputError where it cannot be read, or names a column there is not.

    `quiet` where nobody may hear whether it suits what the columns hold.
    """
    if len(condition) > MAX_LETTERS:
        raise InputError(f"the condition has more than {MAX_LETTERS:,} letters: ask several questions")
    reader = _Reader(_tokens(condition), columns, rows, quiet)
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

    def __init__(self, tokens: list[tuple[str, str]], columns: Mapping[str, Any], rows: int, quiet: bool) -> None:
        self.rest, self.columns, self.rows, self.quiet, self.depth = tokens, columns, rows, quiet, 0

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
            missing = missing_among(np.broadcast_to(np.asarray(left), (self.rows,)))
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
        elif not negate and isinstance(left, np.ndarray) and (self.quiet or left.dtype == bool):
            found = ~self._compared("=", left, 0.0)
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
        if not self.quiet:
            _refuse_no_date(left, right)
            _refuse_no_date(right, left)
        true, false = np.zeros(self.rows, dtype=bool), np.zeros(self.rows, dtype=bool)
        for kind in (_numbers, _texts, _dates):
            declared = [kind(side) for side in (left, right) if not isinstance(side, np.ndarray)]
            if any(not known.any() for _, known in declared):
                continue  # whatever the cells are, they are not compared in this kind
            (one, known), (other, also) = kind(left), kind(right)
            sure = np.broadcast_to(known & also, (self.rows,))
            if sure.any():
                found = np.broadcast_to(np.asarray(COMPARISONS[sign](one, other), dtype=bool), (self.rows,))
                true, false = true | (found & sure), false | (~found & sure)
        return _Truth(true, false)


Kind = tuple[Any, Any]  # a side of a comparison as cells of one kind, and which of them are of that kind


def _numbers(side: Any) -> Kind:
    cells = np.asarray(side)
    if cells.dtype.kind not in "biuf":
        cells = numbers_among(cells) if cells.dtype.kind == "O" else np.full(cells.shape, np.nan)
    cells = cells.astype(np.float64, copy=False)
    return np.nan_to_num(cells), ~np.isnan(cells)


def _texts(side: Any) -> Kind:
    cells = np.asarray(side)
    if cells.dtype.kind in "US":
        return cells.astype(str, copy=False), np.ones(cells.shape, dtype=bool)
    if cells.dtype.kind != "O":
        return "", np.zeros(cells.shape, dtype=bool)
    known = np.array([isinstance(cell, str) for cell in cells], dtype=bool)
    return np.where(known, cells, ""), known


def _dates(side: Any) -> Kind:
    """A text that reads as a date is one beside dates, of whatever kind the others of its column are."""
    cells = np.asarray(side)
    if cells.dtype.kind == "O":
        cells = np.array([as_date(cell) for cell in cells], dtype="datetime64[us]")
    elif isinstance(side, str):
        cells = np.asarray(as_date(side, text=True), dtype="datetime64[us]")
    elif cells.dtype.kind != "M":
        cells = np.full(cells.shape, "NaT", dtype="datetime64[us]")
    cells = cells.astype("datetime64[us]")
    return cells, ~np.isnat(cells)


def _refuse_no_date(side: Any, beside: Any) -> None:
    if isinstance(side, str) and np.asarray(beside).dtype.kind == "M" and np.isnat(as_date(side, text=True)):
        raise InputError(f"{side!r} is no date: write it as in '2026-01-31'")


def numbers_among(cells: Any) -> Floats:
    """The cells that are numbers; whatever else there is counts as missing."""
    return np.array([as_number(cell) for cell in cells.tolist()], dtype=np.float64)


def missing_among(cells: Any) -> Bools:
    """Which cells hold nothing, or a number that is none, each looked at by itself."""
    if cells.dtype.kind in "biufc":
        return np.isnan(cells)
    if cells.dtype.kind in "mM":
        return np.isnat(cells)
    if cells.dtype.kind != "O":
        return np.zeros(cells.shape, dtype=bool)
    return np.array([is_missing(cell) for cell in cells], dtype=bool)
