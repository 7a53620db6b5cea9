"""Whether two data sets are of the same people: by columns that hold the same values as often, in whichever order.

The same rows in another order, with other columns beside them, read from a file or made in Python, are the same data.
Whatever goes out of this file is for the custodian, because values can be guessed by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.fingerprint import every_row

__all__ = ["ContentsByPart", "contents_prints"]

MANY = 64  # different values, one of each, from which on a column of other people would hardly be the same
BITS = 30  # by which numbers of the same values differ between groups of people, from which on they would hardly be
KEPT = 64  # columns by which data are known: those of the smallest prints, so that tables that share many share some
TOGETHER = 2**22  # values that are looked at at a time
SEEN = 2**17  # of which more come in parts, those by which a column is judged


def contents_prints(data: tuple[Any, ...]) -> tuple[str, ...]:
    """Some names of data, of which data of the same people share one; never none."""
    try:
        columns = sorted((one for part in data for one in _columns(part)), key=lambda one: one[0])
        telling = (name for name, values in columns if _tells(values))
        return tuple(islice(telling, KEPT)) or (_digest("; ".join(name for name, _ in columns).encode()),)
    except Exception:  # data of no columns, or of cells that are no values: an error would quote them
        return (_digest(np.sort(every_row(data[0])).tobytes()),)


class ContentsByPart:
    """The same names of data that come in parts, each of which is looked at once.

    Whether a column tells is judged by its first values, of which many are kept.
    """

    def __init__(self) -> None:
        """Of no part yet."""
        self._sums: list[int] = []
        self._first: list[list[npt.NDArray[Any]]] = []
        self._rows = 0

    def add(self, part: Any) -> None:
        """A table with the columns of those before it."""
        for place, (name, values) in enumerate(_columns(part)):
            if place == len(self._sums):
                self._sums.append(0)
                self._first.append([])
            self._sums[place] = (self._sums[place] + int(name.partition(" ")[0], 16)) % 2**64
            if self._rows < SEEN:
                self._first[place].append(values[: SEEN - self._rows].copy())
        self._rows += len(part)

    def prints(self) -> tuple[str, ...]:
        """The names; never none."""
        columns = sorted(
            (
                (f"{total:016x} of {self._rows}", np.concatenate(first))
                for total, first in zip(self._sums, self._first, strict=True)
            ),
            key=lambda one: one[0],
        )
        telling = (name for name, values in columns if _tells(values))
        return tuple(islice(telling, KEPT)) or (_digest("; ".join(name for name, _ in columns).encode()),)


def _digest(told: bytes) -> str:
    return hashlib.sha256(told).hexdigest()


def _columns(table: Any) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Columns with their prints. Numbers count as singles: that is what most ways to store them have in common."""
    import pandas

    plain = table.to_pandas() if hasattr(table, "to_pandas") else table
    if isinstance(plain, np.ndarray) and plain.dtype.kind in "iufb":
        numbers = plain.reshape(len(plain), -1)
        width = max(1, TOGETHER // max(1, len(numbers)))
        for start in range(0, numbers.shape[1], width):
            part = np.asfortranarray(_singles(numbers[:, start : start + width]))
            for column in part.T:
                yield _print(column), column
        return
    frame = pandas.DataFrame(plain)
    for place in range(frame.shape[1]):
        cells = frame.iloc[:, place]
        if pandas.api.types.is_datetime64_any_dtype(cells.dtype):
            continue  # the days of a year are anybody's
        if pandas.api.types.is_numeric_dtype(cells.dtype):
            values = _singles(cells.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            values = cells.astype(str).fillna("nan").to_numpy(dtype=object)  # missing ones are no text by themselves
        yield _print(values), values


def _singles(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return numbers.astype(np.float32) + np.float32(0)  # of the two zeros one


def _print(values: npt.NDArray[Any]) -> str:
    from pandas.util import hash_array

    return f"{int(hash_array(values).sum(dtype=np.uint64)):016x} of {len(values)}"


def _tells(values: npt.NDArray[Any]) -> bool:
    """Whether other people's would hardly be the same: neither a few categories nor a count, a grid or a design."""
    different, times = np.unique(values, return_counts=True)
    if times.max() > times.min():  # as many of each as here
        return bool(np.log2(2 * np.pi * np.sort(times)[:-1]).sum() / 2 > BITS)
    if len(different) < MANY:
        return False
    return different.dtype.kind != "f" or len(np.unique(np.diff(different))) > 1
