"""Cells of tables as numbers, bins and levels; errors never quote one."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.own_types import own_cell

__all__ = [
    "bin_edges",
    "bin_of",
    "checked_levels",
    "equal",
    "finite_table",
    "level_of",
    "numbers",
    "one_table",
    "own_places",
    "places",
    "quantile_levels",
]

MAX_NAMES = 5  # of columns that a message shows
PLAIN = {str, bytes, float, datetime.datetime, type(None)}  # what `own_cell` makes of levels


def one_table(data: tuple[Any, ...]) -> Floats:
    table = finite_table(data)
    if table is None:
        raise InputError(
            "the statistic takes one table of numbers, none of them missing or infinite: drop such rows, or fill them "
            "with a value that is known without the data, table.fillna(0)"
        )
    return table


def finite_table(data: tuple[Any, ...]) -> Floats | None:
    """The one table of a pool, if all worlds can be computed from sums over it; otherwise None."""
    table = numbers(data[0]) if len(data) == 1 else np.full(1, np.nan)
    return (table[:, None] if table.ndim == 1 else table) if np.isfinite(table).all() else None


def checked_levels(levels: Sequence[Any], table: npt.NDArray[Any]) -> list[Any]:
    """The levels, which must be different and of the kind of the table's cells."""
    wanted = list(levels)
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError("levels must be a list of different values, at least one")
    if table.dtype.kind in "biuf" and any(isinstance(level, str) for level in wanted):
        raise InputError("the rows hold numbers, so the levels must be numbers too")
    return wanted


def bin_of(table: Floats, ends: Floats) -> npt.NDArray[np.intp]:
    """The bin of every cell."""
    return np.clip(np.searchsorted(ends, table, side="right") - 1, 0, len(ends) - 2)


def level_of(table: Floats, values: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The nearest level of every cell from above, and whether the cell is at it."""
    order = np.argsort(values)
    place = order[np.minimum(np.searchsorted(values, table, sorter=order), len(values) - 1)]
    return place, values[place] == table


def places(rows: Any, levels: Sequence[Any]) -> npt.NDArray[np.intp]:
    """The number of each cell's level; of a cell at none of them, the number of levels."""
    table = np.asarray(rows)
    wanted = checked_levels(levels, table)
    if table.dtype == object:
        known = {level: place for place, level in enumerate(wanted)}
        found = [_place(known, cell) for cell in table.ravel()]
        return np.array(found, dtype=np.intp).reshape(table.shape)
    place = np.full(table.shape, len(wanted), dtype=np.intp)
    for number, level in enumerate(wanted):
        place[equal(table, level)] = number
    return place


def own_places(cells: Any, levels: Sequence[Any]) -> npt.NDArray[np.intp]:
    """The same, of cells and levels in the one kind that each has wherever it stands: others do not show in it."""
    given = np.asarray(cells) if hasattr(cells, "__array__") else np.fromiter(cells, dtype=object)
    distinct, back = given.ravel(), np.arange(given.size)
    if given.dtype != object:
        distinct, back = np.unique(given, return_inverse=True)
    wanted = [own_cell(level) for level in levels]
    if not all(type(level) in PLAIN for level in wanted):
        raise InputError("levels must be text, numbers, truth values or dates")  # others would be asked about each cell
    own = np.fromiter(map(own_cell, distinct), dtype=object, count=len(distinct))
    return places(own, wanted)[back.ravel()].reshape(given.shape)


def _place(known: dict[Any, int], cell: Any) -> int:
    try:
        return known.get(cell, len(known))
    except Exception:  # a cell that cannot be looked up, for whatever reason, is at no level
        return len(known)


def equal(table: npt.NDArray[Any], level: Any) -> npt.NDArray[np.bool_]:
    if table.dtype != object:
        return np.asarray(table == level)
    same = np.frompyfunc(lambda cell: cell is level or (cell == level) is True, 1, 1)  # pandas.NA has no truth
    return np.asarray(same(table), dtype=bool)


def quantile_levels(q: float | Sequence[float]) -> Floats:
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim > 1 or levels.size == 0 or not ((levels >= 0) & (levels <= 1)).all():
        raise InputError("q must be a number from 0 to 1, or a list of them")
    return levels


def bin_edges(edges: npt.ArrayLike) -> Floats:
    try:
        ends = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all():
        raise InputError("edges must be at least two numbers, each above the one before")
    return ends


def numbers(rows: Any) -> Floats:
    """Rows as float64, with one dimension or two."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.ndim in (1, 2):
        return rows
    table = _as_floats(rows)
    if table is None:
        raise InputError(
            f"rows must be numbers: an array or table with one dimension or two, without text or dates{_texts_of(rows)}"
        )
    return table


def _texts_of(rows: Any) -> str:
    """The columns of a table that hold no numbers, and what to do about them; empty where there is no such table."""
    if type(rows).__name__ != "DataFrame":
        return ""
    names = [str(name) for name in rows.columns if _as_floats(rows[name]) is None]
    if not names:
        return ""
    told = ", ".join(map(repr, names[:MAX_NAMES])) + (
        f" and {len(names) - MAX_NAMES:,} more" * (len(names) > MAX_NAMES)
    )
    numeric = "select_dtypes('number')" if hasattr(rows, "iloc") else "select(polars.selectors.numeric())"
    return f". Leave {told} out, such as with table.{numeric}; shares of categories are those of lc.stats.categories"


def _as_floats(rows: Any) -> Floats | None:
    # A failed conversion quotes the cell that it failed on, so its error must not even be the context of ours.
    try:
        if hasattr(rows, "iloc"):  # pandas: its missing values are NaN here
            kinds = [kind.kind for kind in np.atleast_1d(np.asarray(rows.dtypes, dtype=object))]
            table = rows.to_numpy(dtype=np.float64, na_value=np.nan) if _real(kinds) else None
        else:
            given = np.asarray(rows)
            table = given.astype(np.float64) if _real([given.dtype.kind]) else None
    except (TypeError, ValueError):
        return None
    return table if table is not None and table.ndim in (1, 2) else None


def _real(kinds: Sequence[str]) -> bool:
    return all(kind in "biufO" for kind in kinds)
