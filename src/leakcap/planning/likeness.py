"""Units as rows of numbers, so that a design can tell which of them are alike: all data arguments, side by side.

Columns are standardised and turned to the directions in which units vary most; a column of words becomes one of 0 and
1 for each word. Custodian side: rows of people, which nothing keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.simulate import Pool
from leakcap.worlds import Units

__all__ = ["likeness"]

MAX_COLUMNS = 1024
MAX_LEVELS = 32  # words of a column that are told apart; columns with more of them are left out
MAX_DIRECTIONS = 64  # that are looked at
INSTEAD = "leave design out, or give strata= groups of like units"


def likeness(pool: Pool, units: Units) -> Floats:
    """A row for every unit, in directions that do not go together, the widest first.

    Missing values count as the column's mean. Of a unit with several rows it is their mean, and how many they are.
    """
    rows = _standardised(np.column_stack([*_columns(pool), np.zeros(pool.rows)]))
    if units.of_row is not None:
        counts = np.bincount(units.of_row, minlength=units.count)
        sums = [np.bincount(units.of_row, weights=column, minlength=units.count) for column in rows.T]
        rows = _standardised(np.column_stack([*(column / counts for column in sums), counts]))
    if not rows.shape[1]:
        raise InputError(f"no column by which units differ: matched and central designs compare units. {INSTEAD}")
    values, turn = np.linalg.eigh(rows.T @ rows / len(rows))
    wide = values > 1e-9 * values[-1]
    return np.asarray(rows @ turn[:, wide][:, ::-1][:, :MAX_DIRECTIONS])


def _columns(pool: Pool) -> Iterator[Floats]:
    """Every column that can be compared, as numbers."""
    found = 0
    for table in pool.data:
        for column in _split(table):
            for numbers in _numbers(column):
                found += 1
                if found > MAX_COLUMNS:
                    raise InputError(
                        f"matched and central designs compare units by at most {MAX_COLUMNS} columns: {INSTEAD}"
                    )
                yield numbers
    if not found:
        raise InputError(
            "matched and central designs compare units by columns of numbers, or of words from a short list, and there "
            f"are none: {INSTEAD}"
        )


def _split(table: Any) -> Iterator[Any]:
    if hasattr(table, "tocsr"):
        raise InputError(f"matched and central designs do not read sparse tables: {INSTEAD}")
    if hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
        return
    if isinstance(table, list) or not hasattr(table, "dtype"):
        try:
            table = np.asarray(table)
        except ValueError:  # ragged
            return
    flat = np.asarray(table).reshape(len(table), -1) if len(table) else np.empty((0, 0))
    yield from flat.T


def _numbers(column: Any) -> Iterator[Floats]:
    """One column, or one for each of its words; none where it has too many of them."""
    given = np.asarray(column)
    if given.dtype.kind in "mM":
        numbers = np.where(np.isnat(given), np.nan, given.astype(np.int64).astype(np.float64))
    elif given.dtype.kind in "biuf":
        numbers = given.astype(np.float64)
    else:
        try:  # numbers among which some are missing come as objects
            numbers = np.array([np.nan if _is_missing(one) else float(one) for one in given])
        except (TypeError, ValueError):
            levels, which = np.unique([str(one) for one in given], return_inverse=True)
            if len(levels) <= MAX_LEVELS:
                yield from ((which == level).astype(np.float64) for level in range(len(levels)))
            return
    yield numbers


def _is_missing(one: Any) -> bool:
    return one is None or type(one).__name__ in ("NAType", "NaTType")


def _standardised(rows: Floats) -> Floats:
    """Mean 0 and spread 1 in every column that varies; what is missing or infinite becomes the mean."""
    known = np.isfinite(rows)
    counts = np.maximum(known.sum(axis=0), 1)
    top = np.abs(np.where(known, rows, 0.0)).max(axis=0, initial=0.0)
    rows = np.where(known, rows, 0.0) / np.where(top > 0, top, 1.0)  # before sums: they would overflow
    rows = np.where(known, rows - rows.sum(axis=0) / counts, 0.0)
    spread = np.sqrt((rows**2).mean(axis=0))
    varies = spread > 1e-12
    return np.asarray(rows[:, varies] / spread[varies])
