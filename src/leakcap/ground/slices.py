"""Some rows of an array, a table, a sparse matrix or a list, in their own order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
    """The same, without a trace of where in the whole they stood: row numbers of a table begin anew.

    An index that somebody made is part of the rows and stays; one that merely counts tells how many others there are.
    """
    found = take(data, rows)
    index: Any = getattr(data, "index", None)
    if type(index).__name__ == "RangeIndex":
        found.index = type(index)(len(rows))
    return found


def take_own(data: Any, rows: npt.NDArray[np.intp]) -> Any:
    """The same, and of what kind the columns are follows from these rows alone: it would tell of other rows."""
    found = take_alone(data, rows)
    if hasattr(found, "iloc"):
        plain = found.astype(object)
        plain.index = (
            type(plain.index)(plain.index) if type(plain.index).__name__ == "RangeIndex" else list(plain.index)
        )
        return plain.infer_objects()
    if isinstance(found, np.ndarray) or hasattr(found, "tocsr"):
        if found.dtype.kind in "biuf":
            return found.astype(np.float64)
        return found.astype("datetime64[us]") if found.dtype.kind == "M" else found.astype(object)
    if hasattr(found, "to_dict") and hasattr(found, "columns"):  # polars
        return type(found)(found.to_dict(as_series=False), strict=False)
    if hasattr(found, "to_list"):
        return type(found)(found.name, found.to_list(), strict=False)
    return found
