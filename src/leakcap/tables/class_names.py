"""Class names and numbers as they are found in the cells of a label column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats

__all__ = ["MARKS", "MISSING", "STRANGE", "ClassNames", "Codes", "number_in", "numbers_in", "whole_number_in"]

Codes = npt.NDArray[np.int64]
MISSING, STRANGE = -1, -2  # codes of an empty cell, and of one that holds none of the classes
# What an empty cell is called in text; a class of such a name comes first.
MARKS = {"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A"}


class ClassNames:
    """Names as they are found in text: letter by letter, or the same number written otherwise."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name: place for place, name in enumerate(names)}
        self._numbers: dict[Decimal, int] = {}
        for place, name in enumerate(names):
            number = number_in(name)
            if number is not None and self._numbers.setdefault(number, place) != place:
                raise InputError(f"--classes names the number {number:g} twice: name each class once")

    def codes(self, cells: Sequence[str]) -> Codes:
        """The place of each cell's class, or that it is missing or none of them."""
        return np.array([self._code(cell.strip()) for cell in cells], dtype=np.int64)

    def _code(self, word: str) -> int:
        if word in self._names:
            return self._names[word]
        number = number_in(word)
        return MISSING if word in MARKS else STRANGE if number is None else self._numbers.get(number, STRANGE)


def number_in(word: str) -> Decimal | None:
    """The finite number that a word writes, exactly."""
    try:
        number = Decimal(word)
    except InvalidOperation:
        return None
    return number if number.is_finite() and "_" not in word else None


def whole_number_in(word: str) -> int | None:
    """The whole number of at most 64 bits that a word writes."""
    number = number_in(word)
    return int(number) if number is not None and abs(number) < 2**64 and number == int(number) else None


def numbers_in(text: Any) -> tuple[Floats, Bools]:
    """Cells of text as numbers, and which of them are missing; NaN where a cell is neither."""
    import pandas

    cells = text.str.strip()
    numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    return numbers, cells.isin(MARKS).to_numpy(dtype=bool)
