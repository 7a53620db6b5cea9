"""Rows of people that add up to what everybody brings to each group: kept as they came, and swept when asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.cores import on_all_cores, threads
from leakcap.sessions.linear import FINE

__all__ = ["Block", "CellRows", "Making"]

SHARED = 2**18  # rows from which threads are worth their start
TURNS = 4  # of each core: one that is kept from its work by something else leaves the rest of it to others


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
class Block:
    """Some rows: whose, the code of their group, and columns of what they add."""

    units: Ints
    codes: Ints
    columns: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, rows: Any) -> Block:
        return Block(self.units[rows], self.codes[rows], tuple(one[rows] for one in self.columns))

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        columns = zip(*(one.columns for one in blocks), strict=True)
        return cls(
            np.concatenate([one.units for one in blocks]),
            np.concatenate([one.codes for one in blocks]),
            tuple(map(np.concatenate, columns)),
        )

    @property
    def table(self) -> Any:
        """All columns in one array, whole numbers where all of them are; of one column it is that column itself."""
        kind = np.float64 if any(one.dtype.kind == "f" for one in self.columns) else np.int64
        if len(self.columns) == 1:
            return np.ascontiguousarray(self.columns[0], dtype=kind)[None]
        table = np.empty((len(self.columns), len(self)), dtype=kind)
        for row, column in zip(table, self.columns, strict=True):
            row[:] = column
        return table


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows in the order of people, in blocks of which no two share a person. Custodian side.

    Attributes:
        people: how many there are.
        groups: how many there are.
        blocks: the rows. What they add is whole numbers, unless there is one row of each person and group.
        least: the first code.
        cells: the group of each code from there on; -1 for none.
        making: numbers, from counts and columns.
    """

    people: int
    groups: int
    blocks: tuple[Block, ...]
    least: int
    cells: Ints
    making: Making

    @classmethod
    def of(cls, people: int, groups: int, blocks: Sequence[Block], **how: Any) -> CellRows:
        """The same, of rows in any order."""
        blocks = [one for one in blocks if len(one)]
        in_order = _in_order(blocks)
        _refuse_others(blocks, people, in_order)
        if not in_order:
            from leakcap.sessions._cell_loops import in_unit_order

            whole = Block.joined(blocks)
            order = in_unit_order(whole.units, people)
            blocks = on_all_cores(whole.__getitem__, np.array_split(order, _shares(len(whole))))
        return cls(people, groups, tuple(_by_people(blocks)), **how)

    @classmethod
    def of_entries(cls, people: int, groups: int, units: Ints, cells: Ints, values: Floats) -> CellRows:
        """One row for each person and group, with its numbers."""
        block = Block(np.asarray(units), np.asarray(cells), tuple(np.ascontiguousarray(values.T)))
        every, plain = np.arange(groups, dtype=np.int32), Making.plain(values.shape[1])
        return cls.of(people, groups, [block], least=0, cells=every, making=plain)

    def swept(self, deviations: Floats, pays: Bools, coins: Bools, most: float = math.inf) -> tuple[Floats, Ints]:
        """Everybody's squared distance; and the total of payers whose coin says so, in multiples of FINE.

        What somebody brings is scaled down where it is further than `most`. The total is exact, whoever is in it; and
        the same work is done whatever the coins say.
        """
        from leakcap.sessions._cell_loops import swept

        each = np.ascontiguousarray(deviations.reshape(self.groups, -1))
        shape = each.shape
        if (each == each[:1]).all():  # as a rule: then no row looks up those of its group
            each = each[:1]
        squares = np.zeros(self.people)

        def some(blocks: Sequence[Block]) -> Ints:
            total, codes = np.zeros(shape, dtype=np.int64), np.empty(max(map(len, blocks), default=0), np.int32)
            for one in blocks:
                swept(self._rows(one, codes), self._making, each, most, 1 / FINE, pays, coins, squares, total)
            return total

        return squares, np.asarray(sum(self._shared(some)))

    @cached_property
    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Whose, which group, and the numbers, of everybody in every group that they are in."""
        from leakcap.sessions._cell_loops import entries

        def some(one: Block) -> tuple[Any, Any, Floats]:
            made = np.empty(len(one), np.int32), np.empty(len(one), np.int32)
            values = np.empty((len(one), len(self.making.parts)))
            count = entries(self._rows(one, np.empty(len(one), np.int32)), self._making, self.groups, *made, values)
            return made[0][:count], made[1][:count], values[:count]

        none = np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, len(self.making.parts)))
        units, cells, values = zip(none, *map(some, self.blocks), strict=True)
        return np.concatenate(units), np.concatenate(cells), np.concatenate(values)

    @property
    def _making(self) -> tuple[Ints, Floats]:
        return self.making.parts, self.making.scales

    def _rows(self, one: Block, room: Any) -> tuple[Any, ...]:
        """Rows as loops are compiled for; `room` is for codes that come in fewer bytes."""
        codes = one.codes
        if codes.itemsize < room.itemsize:
            codes = room[: len(one)]
            codes[:] = one.codes
        return one.units, codes, self.least, self.cells, one.table

    def _shared(self, work: Callable[[Sequence[Block]], Ints]) -> Sequence[Ints]:
        """`work` on all blocks, shared by all cores where there are many rows."""
        ends = np.cumsum([0, *map(len, self.blocks)])
        shares = _shares(int(ends[-1]))
        edges = np.searchsorted(ends, [int(ends[-1]) * at // shares for at in range(shares)])
        return on_all_cores(work, [self.blocks[a:b] for a, b in pairwise([*edges, len(self.blocks)])])


def _shares(rows: int) -> int:
    """Into how many parts the work on so many rows is cut."""
    return TURNS * threads() if rows > SHARED else 1


def _in_order(blocks: Sequence[Block]) -> bool:
    """Whether rows come person by person."""

    def within(some: Sequence[Block]) -> bool:
        return all((one.units[1:] >= one.units[:-1]).all() for one in some)

    shares = threads() if sum(map(len, blocks)) > SHARED else 1
    return all(on_all_cores(within, [blocks[at::shares] for at in range(shares)])) and all(
        one.units[-1] <= later.units[0] for one, later in pairwise(blocks)
    )


def _refuse_others(blocks: Sequence[Block], people: int, in_order: bool) -> None:
    """Rows are of these people: of anybody else compiled loops would write where nobody is, and say nothing."""
    looked_at = [*blocks[:1], *blocks[-1:]] if in_order else blocks
    ends = [one.units[[0, -1]] if in_order else one.units for one in looked_at]
    if any(one.min() < 0 or one.max() >= people for one in ends):
        raise AssertionError("rows are of somebody else than the people who are asked about")


def _by_people(blocks: Iterable[Block]) -> Iterator[Block]:
    """The same rows in blocks of which no two share a person: whoever is in two of them has one of their own."""
    rest: list[Block] = []  # of one person
    for one in blocks:
        if rest and rest[0].units[0] != one.units[0]:
            yield Block.joined(rest)
            rest = []
        end = int(np.searchsorted(one.units, one.units[0], side="right")) if rest else 0
        start = max(end, int(np.searchsorted(one.units, one.units[-1])))
        if end:
            rest.append(one[:end])
        if start > end:
            if rest:
                yield Block.joined(rest)
                rest = []
            yield one[end:start]
        if start < len(one):
            if rest:
                yield Block.joined(rest)
            rest = [one[start:]]
    if rest:
        yield Block.joined(rest)
