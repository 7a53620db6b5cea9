"""Some rows of an array, a table, a sparse matrix or a list, in their own order."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.own_types import cells_of, own_column, own_copies, own_copy

__all__ = ["take", "take_alone", "take_own"]


def take(data: Any, rows: npt.NDArray[np.intp]) -> Any:
    """The rows at these places, in a thing of the same kind."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if isinstance(data, np.ndarray):
        # By positions: up to eight times faster than by a mask. Where columns lie together they are taken one by one,
        # and stay so: two to five times faster again.
        if data.ndim == 2 and data.flags.f_contiguous and not data.flags.c_contiguous:
            return data.T.take(rows, axis=1).T
        return data.take(rows, axis=0)
    if hasattr(data, "shape"):
        return data[rows]
    found = [data[i] for i in rows.tolist()]
    return type(data)(found) if isinstance(data, (list, tuple)) else found


def take_alone(data: Any, rows: npt.NDArray[np.intp]) -> Any:
    """The same, without a trace of where in the whole they stood, and nothing in it that changes the whole.

    Row numbers of a table begin anew. An index that somebody made is part of the rows and stays; one that merely counts
    tells how many others there are, and so do numbers without a name: they may be row numbers of a larger table.
    """
    found = take(data, rows)
    if hasattr(found, "iloc"):
        return _alone_pandas(found)
    if isinstance(found, np.ndarray):
        return own_copies(found) if found.dtype == object else found
    return type(found)(map(own_copy, found)) if isinstance(found, (list, tuple)) else found


def take_own(data: Any, rows: npt.NDArray[np.intp]) -> Any:
    """The same, and of what kind the columns are follows from these rows alone: it would tell of other rows."""
    found = take(data, rows)
    if hasattr(found, "iloc"):
        return _own_pandas(found)
    if hasattr(found, "tocsr"):
        return found.astype(np.float64)
    if isinstance(found, np.ndarray):
        if found.dtype.kind in "biuf":
            return np.asarray(np.ma.filled(found.astype(np.float64), np.nan))
        return own_column(found.ravel().tolist()).reshape(found.shape)
    if hasattr(found, "get_columns"):  # polars
        return type(found)([_own_polars(column) for column in found.get_columns()])
    if hasattr(found, "to_list"):
        return _own_polars(found)
    return type(found)(map(own_copy, found)) if isinstance(found, (list, tuple)) else found


def _alone_pandas(found: Any) -> Any:
    if not hasattr(found, "columns"):
        found = found.map(own_copy) if found.dtype == object else found
    else:
        for place, kind in enumerate(found.dtypes):
            cells = found.iloc[:, place].to_numpy() if kind == "object" else None
            if cells is not None and (copies := own_copies(cells)) is not cells:
                found.isetitem(place, copies)
    if _counts(found.index):
        found.index = _numbers(len(found))
    return found


def _own_polars(column: Any) -> Any:
    cells = own_column(cells_of(column)).tolist()
    try:
        return type(column)(column.name, cells, strict=False)
    except Exception:  # lists of this beside lists of that
        return type(column)(column.name, cells, dtype=object)


def _own_pandas(found: Any) -> Any:
    index = _numbers(len(found)) if _counts(found.index) else own_column(cells_of(found.index))
    if not hasattr(found, "columns"):
        return type(found)(own_column(cells_of(found)), index=index, name=found.name)
    made = type(found)(index=index)
    for place, name in enumerate(found.columns):
        made.insert(place, name, own_column(cells_of(found.iloc[:, place])), allow_duplicates=True)
    return made


def _counts(index: Any) -> bool:
    """Whether these may be row numbers: what has a name, or is text or dates all over, was put there by somebody."""
    if type(index).__name__ == "RangeIndex" or not len(index):
        return True
    named = any(name is not None for name in index.names)
    return not named and not all(isinstance(label, (str, datetime.date)) for label in cells_of(index))


def _numbers(count: int) -> Any:
    import pandas

    return pandas.RangeIndex(count)
