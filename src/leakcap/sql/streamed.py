"""Sums by person and group, added up by us from a stream of rows: best where few rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakcap.ground.arrays import Ints
from leakcap.sessions.cell_rows import CellRows
from leakcap.sql.cells import Numbering
from leakcap.sql.program import SqlRelease
from leakcap.sql.terms import Term, making

__all__ = ["LARGEST", "MOST_ROWS", "streamed"]

MOST_ROWS = 2**24  # of one stream
LARGEST = 2.0**38  # whole number of a row, of which so many have room in 64 bits


def streamed(release: SqlRelease, numbered: Numbering, terms: Sequence[Term], *, run: Any, people: int) -> CellRows:
    """The rows as they are."""
    columns = [f"{release.base.unit} AS unit", f"({numbered.code})::INTEGER AS code"]
    columns += [f"{one.of_row} AS s{at}" for at, one in enumerate(terms)]
    found = run(f"SELECT {', '.join(columns)} FROM {numbered.rows}", numbered.tables)
    whole = np.empty((len(terms), found.num_rows), dtype=np.int64)
    for row, name in zip(whole, found.column_names[2:], strict=True):
        _fill(row, found.column(name))
    return numbered.of(found, people, whole, making=making(release.sums, whole=True))


def _fill(row: Ints, column: Any) -> None:
    """Write whole numbers, or decimals in their last digit; 0 for what is missing."""
    import pyarrow

    start = 0
    for chunk in column.chunks:
        end = start + len(chunk)
        if pyarrow.types.is_decimal(chunk.type):
            row[start:end] = _decimals(chunk)
            if chunk.null_count:
                row[start:end][chunk.is_null().to_numpy(zero_copy_only=False)] = 0
        else:
            row[start:end] = (chunk.fill_null(0) if chunk.null_count else chunk).to_numpy()
        start = end


def _decimals(chunk: Any) -> Ints:
    """Decimals in their last digit; of 128 bits the lower half, for they have room in it."""
    width = chunk.type.bit_width // 8
    kind = np.dtype(f"<i{min(width, 8)}")
    words, step = np.frombuffer(chunk.buffers()[1], dtype=kind), width // kind.itemsize
    return words[step * chunk.offset : step * (chunk.offset + len(chunk)) : step]
