"""Rows of a session's table, some at a time, person by person: few enough to stay in the caches of a core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sessions.table import SessionTable

__all__ = ["row_blocks", "rows_together"]

NUMBERS = 2**15  # at a time
FEWEST = 2**8  # rows


def rows_together(columns: int) -> int:
    """How many rows a block has."""
    return max(FEWEST, NUMBERS // max(1, columns))


def row_blocks(
    table: SessionTable, names: list[str], mask: Bools | None
) -> Iterator[tuple[Floats, Bools, tuple[int, Ints]]]:
    """Numbers `(columns, rows)`, which rows are asked about, and whose they are; arrays are used again.

    Whose: who has the first row, and where the rows end of that person and of everybody after. A row with a number
    that is missing or infinite, in any of the columns, is not asked about either: that is for loops to find.
    """
    columns, order, ends = [table.numbers_of(name) for name in names], table.by_person, table.ends
    step = rows_together(len(names))
    room = np.empty((len(names), step))
    for start in range(0, table.units.rows, step):
        end = min(start + step, table.units.rows)
        places: Any = slice(start, end) if order is None else order[start:end]
        cells = room[:, : end - start]
        for into, column in zip(cells, columns, strict=True):
            into[:] = column[places]
        kept = np.ones(end - start, dtype=bool) if mask is None else np.array(mask[places])
        first, last = np.searchsorted(ends, (start, end - 1), side="right")
        yield cells, kept, (int(first), np.minimum(ends[first : last + 1], end) - start)
