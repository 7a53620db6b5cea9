"""What is said about the data without having looked at them, and what follows for the most that anybody can bring.

Under a pool cap nothing but such declarations may set the noise: bounds of the columns, the most rows that a person
has, the groups there may be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import BoundsWarning, InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.callers import frames_of_ours

__all__ = ["Bounded", "ColumnNames", "Declared", "Extent", "in_half_widths", "unit_sums"]

NARROWEST = 2.0**-30  # bounds, relative to their size


@dataclass(frozen=True, eq=False)
class Extent:
    """The most that one person can move the sums: in each part of them, the numbers of one block and no other.

    `limits` bound each number in absolute value. Parts add up: a column's bins are a part, each bin a block, because
    a row is in one bin of every column. `weights` say how much noise in each number matters.
    """

    limits: Floats  # (d,), above 0
    part: Ints  # (d,)
    block: Ints  # (d,): numbers of one block may all move together
    weights: Floats  # (d,)

    @classmethod
    def together(cls, limits: Floats, weights: Floats) -> Extent:
        """All numbers may move at once."""
        none = np.zeros(len(limits), dtype=np.intp)
        return cls(limits, none, none, weights)

    @classmethod
    def one_of(cls, sizes: list[int], limit: float) -> Extent:
        """In every part, of which these are the sizes, one number moves."""
        part = np.repeat(np.arange(len(sizes)), sizes)
        alone = np.arange(len(part))
        return cls(np.full(len(part), float(limit)), part, alone, np.ones(len(part)))


@dataclass(frozen=True, eq=False)
class Bounded:
    """What every unit brings to sums over everybody, within public limits; custodian side."""

    values: Floats  # (units, d)
    extent: Extent
    finish: Callable[[Floats], Any]  # the answer, from noised sums
    cut: int = 0  # entries outside the bounds
    people: int | None = None  # where `values` are those of blocks of them

    def __post_init__(self) -> None:
        # The limits are what the noise is made for: a unit beyond them would be a false certificate.
        if not len(self.values):
            return
        furthest = np.maximum(self.values.max(axis=0), -self.values.min(axis=0))
        if (furthest > self.extent.limits * (1 + 1e-9)).any():
            raise AssertionError("a unit brings more than its limits")


@dataclass(frozen=True)
class ColumnNames:
    """Stands for a table of which nothing but the names of its columns is needed: for bounds by name."""

    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Declared:
    """Bounds of columns, and the most rows that one unit has."""

    bounds: Any = None
    rows: int = 1
    key: bytes = b""  # by which people are put into blocks: nothing that is declared hangs on it
    quiet: bool = False  # whether nothing may be said of how the data lie within the bounds

    def of_columns(self, table: Any, count: int) -> tuple[Floats, Floats]:
        """Lowest and highest value of each of the columns."""
        if self.bounds is None:
            raise InputError(
                "a pool cap needs bounds that do not come from the data, such as bounds=(0, 100) for every column, or "
                'bounds={"age": (0, 120)}: nothing else may set the noise'
            )
        if isinstance(self.bounds, Mapping):
            names = list(map(str, getattr(table, "columns", ())))
            if len(names) != count:
                raise InputError("bounds by name need a table whose columns have names: otherwise give (low, high)")
            return self._by_name(names)
        return _ends(self.bounds, count)

    def _by_name(self, names: list[str]) -> tuple[Floats, Floats]:
        unknown = [str(name) for name in self.bounds if str(name) not in names]
        if unknown:
            raise InputError(f"bounds name a column that is not asked about: {unknown[0]!r}; there are {names}")
        given = {str(name): ends for name, ends in self.bounds.items()}
        absent = [name for name in names if name not in given]
        if absent:
            raise InputError(f"no bounds for column {absent[0]!r}: every column needs its own, such as (0, 100)")
        pairs = [_ends(given[name], 1) for name in names]
        return np.concatenate([low for low, _ in pairs]), np.concatenate([high for _, high in pairs])

    def cut(self, cells: Floats, table: Any) -> tuple[Floats, tuple[Floats, Floats], int]:
        """The cells within the bounds of their columns, the bounds, and how many cells were outside."""
        low, high = self.of_columns(table, cells.shape[1])
        inside = np.clip(cells, low, high)
        if len(cells):
            self.warn_of_own_ends((low, high), cells.min(axis=0), cells.max(axis=0))
        return inside, (low, high), int((inside != cells).sum())

    def warn_of_own_ends(self, ends: tuple[Floats, Floats], least: Floats, furthest: Floats) -> None:
        """A warning where the bounds of a column seem to be read off the data, for those who may know that."""
        low, high = ends
        if not self.quiet and ((least == low) & (furthest == high) & (high - low != 1)).any():
            warnings.warn(
                "the bounds of a column are its own smallest and largest value. If they were read off the data, they "
                "publish two people's values: take bounds that are known without looking",
                BoundsWarning,
                stacklevel=1 + frames_of_ours(),
            )


def in_half_widths(cells: Floats, low: Floats, high: Floats) -> Floats:
    """Cells from -1 to 1 about the middle of their bounds; also after rounding."""
    return np.asarray(np.clip((cells - (low + high) / 2) / ((high - low) / 2), -1.0, 1.0))


def unit_sums(rows: Floats, of_row: Ints | None, count: int) -> Floats:
    """What the rows of every unit add up to: the same, to the last digit, in whichever order they come."""
    if of_row is None:
        return rows
    from leakcap.kernels._unit_loops import add_by_unit

    high, low = np.zeros((count, rows.shape[1])), np.zeros((count, rows.shape[1]))
    add_by_unit(np.asarray(rows, dtype=np.float64), of_row, high, low)
    return high


def _ends(bounds: Any, count: int) -> tuple[Floats, Floats]:
    try:
        given = tuple(bounds)
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64).ravel(), (count,)) for end in given)
    except (TypeError, ValueError):
        raise InputError(f"bounds must be (low, high): two numbers, or one for each of the {count} columns") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError("bounds must be finite, with low below high in every column")
    # By the bounds alone: where rounding decides, it would tell of a person who is cut.
    if (high - low < 1e-100).any() or (high - low < NARROWEST * np.maximum(np.abs(low), np.abs(high))).any():
        raise InputError("bounds are too close to each other beside their size: choose wider ones, or other units")
    if max(np.abs(low).max(), np.abs(high).max()) > 1e100:
        raise InputError("bounds beyond 1e100 leave nothing of an answer: choose narrower ones")
    return low, high
