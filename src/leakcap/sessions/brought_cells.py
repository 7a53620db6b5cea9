"""What everybody brings to sums by group, where each person is in few of many groups: rows, not a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sessions.brought import Limits
from leakcap.sessions.cell_rows import CellRows
from leakcap.sessions.swept import SweptSums

__all__ = ["BroughtByCell", "OfPoolByCell"]

ROUNDING = 1e-12  # relative: what sums of squares lose, with room to spare


@dataclass(frozen=True, eq=False)
class OfPoolByCell:
    """What people of this pool really bring: not for those who must not know the pool."""

    brought: BroughtByCell

    def worst(self, deviations: Floats) -> float:
        return float(self.brought.squares(deviations).max(initial=0.0)) * (1 + ROUNDING)

    def least(self, square: float) -> Floats:
        """The same noise for a sum in every group, as what people bring to it."""
        values = self.brought.rows.entries[2]
        size = np.sqrt((values**2).mean(axis=0)) if len(values) else np.ones(values.shape[1])
        size = np.where(size > 0, size, 1.0)
        shape = np.tile(size, self.brought.rows.groups)
        worst = self.worst(shape)
        return np.asarray(shape * np.sqrt((worst or 1.0) / square) * (1 + ROUNDING))


@dataclass(frozen=True, eq=False)
class BroughtByCell(SweptSums):
    """Rows of people by group; the numbers of a group stand together."""

    rows: CellRows
    within: Limits | None  # as declared; None: what this pool brings
    finish: Callable[[Floats], Any]
    public: bool
    scale: Floats | float | None = 1.0
    halving: Callable[[Floats], Floats] | None = None
    cut: bool = False  # whether people may bring more than `within` says, and are cut to it

    @cached_property
    def limits(self) -> Limits:
        return OfPoolByCell(self) if self.within is None else self.within

    @property
    def numbers(self) -> int:
        return self.rows.groups * len(self.rows.making.parts)

    def _most(self, deviations: Floats) -> float:
        """Squared distance to which everybody is brought back."""
        return self.within.worst(deviations) if self.cut and self.within is not None else math.inf

    def swept(self, deviations: Floats, pays: Bools | None, coins: Bools | None) -> tuple[Floats, Ints]:
        everybody = np.ones(self.rows.people, dtype=bool)
        pays, coins = (everybody if one is None else one for one in (pays, coins))
        return self.rows.swept(deviations, pays, coins, self._most(deviations))
