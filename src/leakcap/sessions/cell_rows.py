"""Rows of people that add up to what everybody brings to each group: kept as they came, and swept when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.cores import on_all_cores, threads
from leakcap.sessions.linear import FINE

__all__ = ["CellRows", "Making"]

SHARED = 2**18  # rows from which threads are worth their start


@dataclass(frozen=True, eq=False)
class Making:
    """How numbers are made of terms, the first of which counts rows.

    Attributes:
        parts: `(numbers, 2)`: the term of each number, and another that is added to it, or -1.
        scales: `(numbers, 3)`: what the term is divided by and multiplied with, and a factor of the other.
    """

    parts: Ints
    scales: Floats

    @classmethod
    def plain(cls, columns: int) -> Making:
        """Every column is a number as it stands."""
        parts = np.stack([np.arange(1, columns + 1), np.full(columns, -1)], axis=1)
        return cls(parts, np.ones((columns, 3)))


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows in the order of people. Custodian side.

    Attributes:
        people: how many there are.
        groups: how many there are.
        units: `(rows,)`: whose.
        codes: `(rows,)`: of the group.
        least: the first code.
        cells: the group of each code from there on; -1 for none.
        whole: `(columns, rows)`: what each row adds, whole numbers unless there is one row of each person and group.
        making: numbers, from counts and columns.
    """

    people: int
    groups: int
    units: Ints
    codes: Ints
    least: int
    cells: Ints
    whole: Any
    making: Making

    @classmethod
    def ordered(cls, people: int, groups: int, units: Ints, codes: Ints, **how: Any) -> CellRows:
        """The same, of rows in any order."""
        if (units[1:] < units[:-1]).any():
            from leakcap.sessions._cell_loops import in_unit_order

            order = in_unit_order(units, people)
            units, codes, how["whole"] = units[order], codes[order], np.ascontiguousarray(how["whole"][:, order])
        return cls(people, groups, units, codes, **how)

    @classmethod
    def of_entries(cls, people: int, groups: int, units: Ints, cells: Ints, values: Floats) -> CellRows:
        """One row for each person and group, with its numbers."""
        return cls.ordered(
            people,
            groups,
            np.asarray(units),
            np.asarray(cells),
            least=0,
            cells=np.arange(groups, dtype=np.int32),
            whole=np.ascontiguousarray(values.T),
            making=Making.plain(values.shape[1]),
        )

    def swept(self, deviations: Floats, pays: Bools, coins: Bools) -> tuple[Floats, Ints]:
        """Everybody's squared distance; and the total of payers whose coin says so, in multiples of FINE.

        It is exact, whoever is in it; and the same work is done whatever the coins say.
        """
        from leakcap.sessions._cell_loops import swept

        each = np.ascontiguousarray(deviations.reshape(self.groups, -1))
        squares = np.zeros(self.people)

        def some(rows: slice) -> Ints:
            total = np.zeros(each.shape, dtype=np.int64)
            swept(self._rows, rows.start, rows.stop, self._making, each, 1 / FINE, pays, coins, squares, total)
            return total

        return squares, np.asarray(sum(self._in_parts(some)))

    @cached_property
    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Whose, which group, and the numbers, of everybody in every group that they are in."""
        from leakcap.sessions._cell_loops import entries

        def some(rows: slice) -> tuple[Ints, Ints, Floats]:
            size = rows.stop - rows.start
            made = np.empty(size, np.int32), np.empty(size, np.int32), np.empty((size, len(self.making.parts)))
            count = entries(self._rows, rows.start, rows.stop, self._making, self.groups, *made)
            return made[0][:count], made[1][:count], made[2][:count]

        units, cells, values = zip(*self._in_parts(some), strict=True)
        return np.concatenate(units), np.concatenate(cells), np.concatenate(values)

    @property
    def _making(self) -> tuple[Ints, Floats]:
        return self.making.parts, self.making.scales

    @property
    def _rows(self) -> tuple[Any, ...]:
        return self.units, self.codes, self.least, self.cells, self.whole

    def _in_parts(self, work: Callable[[slice], Any]) -> Sequence[Any]:
        """`work` on rows in parts, one for each core, with nobody in two of them."""
        size, count = len(self.units), threads() if len(self.units) > SHARED else 1
        edges = [int(np.searchsorted(self.units, self.units[size * at // count])) for at in range(1, count)]
        edges = [0, *edges, size]
        return on_all_cores(work, [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)])
