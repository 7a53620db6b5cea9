"""Sums of people's numbers within declared bounds, and of products of two, made while rows are swept.

A row's numbers are rounded to a grid, on which sums over a person's rows are whole numbers: the same in any order of
rows. Nothing is kept of a person but the charge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Bounded, Declared
from leakcap.sessions.brought import Limits, Within
from leakcap.sessions.linear import FINE
from leakcap.sessions.row_blocks import row_blocks, rows_together
from leakcap.sessions.swept import SweptSums, checked_squares, factors_of
from leakcap.sessions.table import SessionTable

__all__ = ["RowSums", "refuse_long"]

STEPS = 2.0**30  # of the grid of numbers, in the furthest that one may be from the middle
PAIR_STEPS = 2.0**20  # the same where products are added up
MAX_ROWS = 2**23  # of one person, whose sums of products are whole numbers of 64 bits
EXACT = 2.0**53  # up to which floats are whole numbers


@dataclass(frozen=True, eq=False)
class Grid:
    """Bounds of columns, and whole numbers for what lies between them.

    Attributes:
        low: the least of each column.
        high: the furthest.
        middle: what is 0.
        size: how far from it `steps` are.
        worth: what a number that far adds to a sum.
    """

    low: Floats
    high: Floats
    middle: Floats
    size: Floats
    worth: Floats

    @classmethod
    def in_half_widths(cls, low: Floats, high: Floats) -> Grid:
        """About the middle of the bounds: sums are in half-widths."""
        return cls(low, high, (low + high) / 2, (high - low) / 2, np.ones(len(low)))

    @classmethod
    def about_nothing(cls, low: Floats, high: Floats) -> Grid:
        """Sums are of the numbers as they are."""
        most = np.maximum(np.abs(low), np.abs(high))
        return cls(low, high, np.zeros(len(low)), most, most)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSums(SweptSums):
    """Sums over people's rows. Custodian side.

    Attributes:
        pairs: whether products of any two numbers are asked, which stand before the sums.
        counted: whether rows are, behind them.
    """

    table: SessionTable
    names: list[str]
    mask: Bools | None
    grid: Grid
    pairs: bool
    counted: bool
    limits: Limits
    finish: Callable[[Floats], Any]
    halving: Callable[[Floats], Floats] | None = None
    scale: float | None = 1.0
    public: bool = True

    @classmethod
    def within(
        cls,
        table: SessionTable,
        names: list[str],
        mask: Bools | None,
        *,
        grid: Grid,
        made: Bounded,
        pairs: bool = False,
        counted: bool = True,
        **told: Any,
    ) -> RowSums:
        """Within the limits that were made of declarations, with what is made of the sums."""
        refuse_long(table.most_rows)
        made_of = {"limits": Within(made.extent), "finish": made.finish, **told}
        return cls(table=table, names=names, mask=mask, grid=grid, pairs=pairs, counted=counted, **made_of)

    @property
    def numbers(self) -> int:
        d = len(self.names)
        return self.pairs * (d * (d + 1) // 2) + d + self.counted

    @property
    def steps(self) -> float:
        return PAIR_STEPS if self.pairs else STEPS

    def warned(self, declared: Declared) -> RowSums:
        """The same, after a word to the custodian where bounds are the data's own ends."""
        if not declared.quiet:
            columns = (self.table.numbers_of(name) for name in self.names)
            cells = [one if self.mask is None else one[self.mask] for one in columns]
            cells = [one[np.isfinite(one)] for one in cells]
            if all(map(len, cells)):
                least, furthest = (np.array(list(map(end, cells))) for end in (np.min, np.max))
                declared.warn_of_own_ends((self.grid.low, self.grid.high), least, furthest)
        return self

    @proves("partitions")
    def swept(self, deviations: Floats, pays: Bools | None, coins: Bools | None) -> tuple[Floats, Ints]:
        from leakcap.sessions._row_loops import closed, on_grid, swept

        d, people = len(self.names), self.table.units.count
        by = self._by(deviations)
        factors = factors_of(people, pays, coins)
        making = by, 1 / FINE, int(EXACT / self.steps ** (1 + self.pairs))
        squares, total = np.zeros(people), np.zeros(by.shape, dtype=np.int64)
        person = np.array([-1, 0, 0]), np.zeros(by.shape), np.zeros(by.shape, dtype=np.int64)
        grid, rows = self.grid, np.ones((rows_together(d), d + 1))  # a 1 behind every row
        ends = grid.low, grid.high, grid.middle, self.steps / grid.size, self.steps
        for cells, kept, people_there in row_blocks(self.table, self.names, self.mask):
            on_grid(cells, ends, rows, kept)
            swept(rows, kept, people_there, person, making, factors, squares, total)
        closed(person, making, factors, squares, total)
        squares = checked_squares(squares, self.limits, deviations)
        found = [total[0, : d + self.counted]]
        if self.pairs:
            found.insert(0, total[1:, :d][np.triu_indices(d)])
        return squares, np.concatenate(found)

    def _by(self, deviations: Floats) -> Floats:
        """What a step of each sum is in deviations, as loops add them up; 0 for what was not asked."""
        d, step = len(self.names), 1 / self.steps
        by = np.zeros((1 + d * self.pairs, d + 1))
        at = self.numbers - d - self.counted
        by[0, :d] = self.grid.worth * step / deviations[at : at + d]
        if self.counted:
            by[0, d] = 1 / deviations[-1]
        if self.pairs:
            worth = np.outer(self.grid.worth, self.grid.worth) * step**2
            by[1:, :d][np.triu_indices(d)] = worth[np.triu_indices(d)] / deviations[:at]
        return by


def refuse_long(most: int) -> None:
    """An InputError where one person has so many rows that sums over them would not be exact."""
    if most > MAX_ROWS:
        raise InputError(
            f"somebody may bring {most:,} rows, and {MAX_ROWS:,} can be added up: give rows_per_unit=, the most rows "
            "of one person that count"
        )
