"""The pool: all data arguments, sliced alike by rows."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.slices import take, take_alone
from leakcap.ground.twins import refuse_twin_columns
from leakcap.worlds import Units
from leakcap.worlds.names import as_labels

__all__ = ["Pool", "first_rows"]


class Pool:
    """Data arguments that share their rows: arrays, DataFrames, Series, sparse matrices or lists."""

    def __init__(self, data: Sequence[Any]) -> None:
        if not data:
            raise InputError("no data: pass at least one array or table after the function")
        self.data = tuple(_sliceable(one) for one in data)
        lengths = {_length(one) for one in self.data}
        if len(lengths) != 1:
            raise InputError(f"data arguments differ in length: {sorted(lengths)} rows; they must be sliced alike")
        (self.rows,) = lengths

    def take(self, rows: npt.NDArray[np.intp]) -> tuple[Any, ...]:
        """The same rows of every argument, in the pool's own order."""
        return tuple(take(one, rows) for one in self.data)

    def pop_column(self, name: str) -> npt.NDArray[Any]:
        """A named column, removed from the table that holds it (ids are not for the function)."""
        values = self.column(name)
        self.data = tuple(_without(one, name) if _has_column(one, name) else one for one in self.data)
        return values

    def column(self, name: str) -> npt.NDArray[Any]:
        """A named column of the first table that has it."""
        for one in self.data:
            if _has_column(one, name):
                return np.asarray(one[name])
        raise InputError(f"no data argument has a column {name!r}: name one, or pass an array with a label per row")


def first_rows(pool: Pool, whose: npt.ArrayLike | None, most: int) -> tuple[Pool, npt.NDArray[Any] | None]:
    """The pool with at most so many rows of every unit, its first ones: which they are depends on nobody else."""
    checks.count(rows_per_unit=most)
    if whose is None:
        return pool, None  # every row is a unit of its own
    units = Units.of(pool.rows, whose)
    assert units.of_row is not None
    order = np.argsort(units.of_row, kind="stable")
    rows = np.bincount(units.of_row, minlength=units.count)
    place = np.arange(pool.rows) - np.repeat(np.cumsum(rows) - rows, rows)
    kept = np.sort(order[place < most])
    return Pool(tuple(take_alone(one, kept) for one in pool.data)), as_labels(whose)[kept]


def _sliceable(data: Any) -> Any:
    if isinstance(data, (str, PathLike)):
        raise InputError(
            "the data are given as a name, not as a table: read the file first, pandas.read_csv(...) or "
            "polars.read_csv(...); or let `leakcap release FILE --fn mean --cap membership=0.55 --out FOLDER` read it"
        )
    if isinstance(data, dict):
        raise InputError("cannot slice a dict by rows; make a table of it, pandas.DataFrame(...)")
    if callable(data):
        raise InputError("the function comes first, and the data after it: plan(fn, data, cap=...)")
    if isinstance(data, bytes) or (not hasattr(data, "__len__") and not hasattr(data, "shape")):
        raise InputError(f"cannot slice a {type(data).__name__} by rows; pass an array, a table or a list")
    if hasattr(data, "tocsr"):
        return data.tocsr()
    refuse_twin_columns(data)
    return data


def _length(data: Any) -> int:
    shape = getattr(data, "shape", None)
    if shape is not None:
        if len(shape) == 0:
            raise InputError("a single number has no rows; bind it to the function instead (functools.partial)")
        return int(shape[0])
    return len(data)


def _has_column(data: Any, name: str) -> bool:
    return hasattr(data, "columns") and name in list(data.columns)


def _without(data: Any, name: str) -> Any:
    return data.drop(columns=name) if hasattr(data, "iloc") else data.drop(name)
