"""How many rows each person has in every bin of every column, counted while rows are swept."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Bounded
from leakcap.sessions.brought import Limits, Within
from leakcap.sessions.linear import FINE
from leakcap.sessions.row_blocks import row_blocks, rows_together
from leakcap.sessions.swept import SweptSums, checked_squares, factors_of
from leakcap.sessions.table import SessionTable

__all__ = ["RowBins"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowBins(SweptSums):
    """Counts by bin; those of a column stand together. Custodian side."""

    table: SessionTable
    names: list[str]
    mask: Bools | None
    ends: Floats  # of bins, ascending; what is outside of all is in the outermost
    limits: Limits
    finish: Callable[[Floats], Any]
    halving: Callable[[Floats], Floats] | None = None
    scale: float | None = 1.0
    public: bool = True

    @classmethod
    def within(
        cls, table: SessionTable, names: list[str], mask: Bools | None, ends: Floats, *, made: Bounded, **told: Any
    ) -> RowBins:
        """Within the limits that were made of declarations."""
        return cls(table=table, names=names, mask=mask, ends=ends, limits=Within(made.extent), **told)

    @property
    def numbers(self) -> int:
        return len(self.names) * (len(self.ends) - 1)

    @proves("partitions")
    def swept(self, deviations: Floats, pays: Bools | None, coins: Bools | None) -> tuple[Floats, Ints]:
        from leakcap.sessions._row_loops import all_counted, bins_of, counted

        people = self.table.units.count
        factors = factors_of(people, pays, coins)
        squares, total = np.zeros(people), np.zeros(self.numbers, dtype=np.int64)
        counts = np.zeros(self.numbers, dtype=np.int64)
        person, bins = (np.array([-1, 0]), counts, np.empty(self.numbers + 1, dtype=np.int64)), len(self.ends) - 1
        ladder = np.full(2 ** math.ceil(math.log2(bins)), np.nan)
        ladder[:bins] = self.ends[:-1]
        making = 1 / deviations, 1 / FINE
        codes = np.empty((len(self.names), rows_together(len(self.names))), dtype=np.uint64)
        for cells, kept, people_there in row_blocks(self.table, self.names, self.mask):
            found = codes[:, : len(kept)]
            bins_of(cells, ladder, bins, found, kept)
            counted(found, kept, people_there, person, making, factors, squares, total)
        all_counted(person, making, factors, squares, total)
        return checked_squares(squares, self.limits, deviations), total
