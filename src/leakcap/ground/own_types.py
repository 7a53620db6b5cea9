"""Cells and columns whose kind follows from themselves: what others of a column are would otherwise show in them.

Numbers and truths are floats, dates are without their zone, in UTC and microseconds; what is missing is None, or NaN
among numbers.
"""

from __future__ import annotations

import copy
import datetime
import decimal
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_date", "as_number", "cells_of", "is_missing", "own_cell", "own_column", "own_copies", "own_copy"]

NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)
# Nobody can write into these, and they show nothing but themselves. Not so of what is derived from them.
PLAIN = {str, bytes, bool, int, float, complex, type(None), decimal.Decimal, datetime.date, datetime.timedelta}


def as_number(cell: Any) -> float:
    """The cell, if it is a real number; NaN otherwise."""
    if isinstance(cell, (complex, np.complexfloating)) and cell.imag == 0:
        cell = cell.real  # beside one that is not, real numbers of a column are complex
    if isinstance(cell, NUMBERS):
        try:
            return float(cell)
        except OverflowError:
            pass
    return float("nan")


def as_date(cell: Any, text: bool = False) -> Any:
    """A date without its zone, or none."""
    try:
        if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
            cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
        if isinstance(cell, (datetime.date, np.datetime64)) or (text and isinstance(cell, str)):
            return np.asarray(cell, dtype="datetime64[us]")[()]
    except (ValueError, OverflowError):
        pass
    return np.datetime64("NaT")


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing, or a number that is none."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    if isinstance(cell, (complex, np.complexfloating)):
        return bool(np.isnan(cell))
    if isinstance(cell, NUMBERS):
        return bool(np.isnan(as_number(cell)))
    return isinstance(cell, (np.datetime64, np.timedelta64)) and bool(np.isnat(cell))


def own_cell(cell: Any) -> Any:
    """The cell in the one kind that it has wherever it stands; None where it cannot be told."""
    if type(cell) is str:  # as most that are no numbers
        return cell
    try:
        if is_missing(cell):
            return None
        number = as_number(cell)
        if not np.isnan(number):
            return number
        date = as_date(cell)
        return cell if np.isnat(date) else date.item()
    except Exception:  # whatever it is, it would tell of this cell
        return None


def own_copy(cell: Any) -> Any:
    """The cell for somebody's function: what it writes into a list or an array, others must not read there.

    None where there is no copying it.
    """
    if type(cell) in PLAIN:
        return cell
    try:
        return copy.deepcopy(cell)  # also of an array that is a view: it shows the whole that it was cut from
    except Exception:  # whatever it is, it would tell of this cell
        return None


def own_copies(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same of an array of objects: itself, where there is nothing to copy."""
    if PLAIN.issuperset(map(type, cells.flat)):
        return cells
    return np.asarray(np.frompyfunc(own_copy, 1, 1)(cells), dtype=object)


def cells_of(column: Any) -> list[Any]:
    """The cells of a column, one by one where not all can be read: None for one that Python has no word for.

    An error would quote it, and take the cells of others with it.
    """
    try:
        return column.to_list() if hasattr(column, "to_list") else list(column)
    except Exception:
        return [_read(column, place) for place in range(len(column))]


def _read(column: Any, place: int) -> Any:
    try:
        return (column.iloc if hasattr(column, "iloc") else column)[place]
    except Exception:  # a date after the year 9999, a very long time
        return None


def own_column(cells: Iterable[Any]) -> npt.NDArray[Any]:
    """Cells as an array of numbers or dates where all of them are that or missing; of copied objects otherwise."""
    found = [own_copy(own_cell(cell)) for cell in cells]
    kinds = {type(cell) for cell in found if cell is not None}
    if kinds <= {float}:
        return np.array([np.nan if cell is None else cell for cell in found], dtype=np.float64)
    if kinds <= {datetime.datetime}:
        return np.array([np.datetime64("NaT") if cell is None else cell for cell in found], dtype="datetime64[us]")
    return np.fromiter(found, dtype=object, count=len(found))
