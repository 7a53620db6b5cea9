"""Rows as the encoder takes them: numbers, of length 1 at most.

Every row is brought there alone, by a rule that is the same whatever is sampled: a row that was scaled by looking at
others that were drawn would tell of them when it is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.whitening import Whitening

__all__ = ["NORMS", "RowRule", "block_columns", "classes_of", "numbers"]

NORMS = ("unit", "ball")
SHORTER = 1 - 2.0**-40  # lengths are at most 1 after rounding, too


@dataclass(frozen=True)
class RowRule:
    """How a row comes into the unit ball. Part of the mechanism, for queries as for the pool.

    Attributes:
        norm: "unit": every row is divided by its own length (a row of zeros stays). "ball": every row is divided by
            `scale`, and shortened to length 1 if it is longer.
        scale: a length known without the data; 1 for "unit".
        whitening: what is done before, by all rows of the pool; None for nothing.
    """

    norm: str = "unit"
    scale: float = 1.0
    whitening: Whitening | None = None

    @classmethod
    def of(cls, norm: Any, scale: Any) -> RowRule:
        chosen, length = checks.choice(NORMS, norm=norm), checks.positive(scale=scale)
        if chosen == "unit" and length != 1:
            raise InputError("scale= is for norm='ball': norm='unit' divides every row by its own length")
        return cls(chosen, length)

    def __call__(self, rows: Floats) -> Floats:
        """The rows, each brought into the unit ball."""
        if self.whitening is not None:
            rows = self.whitening(rows)
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        safe = np.where(largest > 0, largest, 1.0)
        within = rows / safe  # squares neither overflow nor vanish
        lengths = np.sqrt(np.einsum("ij,ij->i", within, within))[:, None]
        lengths[lengths == 0] = 1.0
        if self.norm == "unit":
            within *= SHORTER / lengths
            return within
        with np.errstate(over="ignore"):
            full = lengths * (safe / self.scale)
        within *= SHORTER * np.minimum(full, 1.0) / lengths
        return within

    def words(self) -> str:
        first = "every row is" if self.whitening is None else self.whitening.words()
        if self.norm == "unit":
            return f"{first} divided by its own length"
        return f"{first} divided by {self.scale:g}, and shortened to length 1 if it is longer"


def numbers(X: Any, columns: int | None = None) -> Floats:
    """Rows of numbers, pictures and sequences flattened; an InputError that quotes no cell."""
    if np.ma.is_masked(X):
        raise InputError("some cells are missing: fill them in by a public rule, or leave these rows out")
    found: npt.NDArray[Any] | None
    try:
        found = np.asarray(X)
        found = None if found.dtype.kind not in "biuf" and not _of_numbers(found) else found.astype(np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise InputError(
            "features must be numbers, a row of them for every unit: encode text and categories first, by levels that "
            "are known without the data"
        )
    if found.ndim < 2 or 0 in found.shape:
        raise InputError("features must be a table with at least one row and one column")
    found = found.reshape(len(found), -1)
    if not np.isfinite(found).all():
        raise InputError("some cells are missing or infinite: fill them in by a public rule, or leave these rows out")
    if columns is not None and found.shape[1] != columns:
        raise InputError(f"rows have {found.shape[1]} columns, and those that were encoded have {columns}")
    return np.ascontiguousarray(found)


def classes_of(y: Any, rows: int) -> tuple[tuple[Any, ...], Ints]:
    """The names of the classes, in order, and the place of every label among them."""
    try:
        given = np.asarray(y)
    except ValueError:
        given = np.empty((0, 0))
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or len(given) != rows:
        raise InputError("labels must be one column, with an entry for every row")
    if np.ma.is_masked(y) or any(_is_missing(one) for one in (given.tolist() if given.dtype.kind in "Of" else ())):
        raise InputError("some labels are missing: leave these rows out")
    names: npt.NDArray[Any] | None
    try:
        names, codes = np.unique(given, return_inverse=True)
    except TypeError:
        names, codes = None, np.empty(0, dtype=np.intp)
    if names is None or not all(isinstance(name, (str, bool, int, float)) for name in names.tolist()):
        raise InputError("labels must be all text or all numbers: the names of the classes")
    if len(names) < 2:
        raise InputError("all rows have the same label: a server has nothing to learn, and labels hide nothing")
    if given.dtype.kind == "f" and len(names) > max(2, rows // 4):
        raise InputError("labels look like measurements: an encoder takes classes; cut them into classes first")
    return tuple(names.tolist()), codes.astype(np.intp).ravel()


def block_columns(shape: tuple[int, ...], blocks: Any) -> tuple[Ints, ...]:
    """Which columns of a flattened row belong to each block.

    A number cuts a row, or a sequence along its first direction, into so many pieces of one after the other. A pair
    cuts a picture into a grid of so many patches down and across.
    """
    places = np.arange(int(np.prod(shape)))
    if isinstance(blocks, tuple):
        if len(blocks) != 2 or len(shape) < 2:
            raise InputError("blocks=(down, across) are patches of pictures: rows must be of height and width at least")
        down, across = (checks.count(blocks=one) for one in blocks)
        if shape[0] % down or shape[1] % across:
            raise InputError("blocks=(down, across) must divide the pictures' height and width")
        picture = places.reshape(down, shape[0] // down, across, shape[1] // across, -1)
        patches = picture.transpose(0, 2, 1, 3, 4).reshape(down * across, -1)
        return tuple(patches)
    count = checks.count(blocks=blocks)
    if len(places) % count:
        raise InputError(f"blocks is {count} and rows have {len(places)} columns: blocks must divide them")
    return tuple(places.reshape(count, -1))


def _of_numbers(found: npt.NDArray[Any]) -> bool:
    """Objects that are numbers, missing ones included: text that looks like a number is none."""
    return found.dtype.kind == "O" and all(isinstance(one, (int, float, np.number)) for one in found.ravel().tolist())


def _is_missing(one: Any) -> bool:
    return one is None or type(one).__name__ == "NAType" or (isinstance(one, float) and math.isnan(one))
