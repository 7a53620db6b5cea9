"""What everybody brings to sums by group, where each person is in few of many groups: rows, not a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Limits, Totals
from leakcap.sessions.cell_rows import CellRows
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import FURTHEST, GRAINS

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
class BroughtByCell:
    """Rows of people by group; the numbers of a group stand together."""

    rows: CellRows
    within: Limits | None  # as declared; None: what this pool brings
    finish: Callable[[Floats], Any]
    public: bool
    scale: Floats | float | None = 1.0
    halving: Callable[[Floats], Floats] | None = None
    cut: bool = False  # whether people may bring more than `within` says, and are cut to it
    coins: Bools | None = None  # as they will be given, so that charges and totals are worked out at one go
    _totals: dict[bytes, Ints] = field(default_factory=dict, init=False, repr=False)  # if all pay, by deviations

    @cached_property
    def limits(self) -> Limits:
        return OfPoolByCell(self) if self.within is None else self.within

    @property
    def numbers(self) -> int:
        return self.rows.groups * len(self.rows.making.parts)

    def factor(self, everybody: bool) -> float:
        """Where half of all take part, each counts twice."""
        return 1.0 if everybody else 2.0

    def _most(self, deviations: Floats) -> float:
        """Squared distance to which everybody is brought back."""
        return self.within.worst(deviations) if self.cut and self.within is not None else math.inf

    def squares(self, deviations: Floats) -> Floats:
        """How far each person moves the sums, squared, in deviations."""
        everybody = np.ones(self.rows.people, dtype=bool)
        coins = everybody if self.coins is None else self.coins
        squares, total = self.rows.swept(deviations, everybody, coins, self._most(deviations))
        if self.coins is not None and squares.max(initial=0.0) <= FURTHEST**2:
            self._totals[deviations.tobytes()] = total
        return squares

    @proves("linear-sessions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return clock.ticks(self.squares(deviations / self.factor(everybody)))

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    @proves("linear-sessions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Exact, as `linear.exact_sums` are; the same work is done whatever the coins say."""
        deviations = deviations / self.factor(everybody)
        total = self._totals.get(deviations.tobytes()) if coins is self.coins and pays.all() else None
        if total is None:
            squares, total = self.rows.swept(deviations, pays, coins, self._most(deviations))
            if squares[pays].max(initial=0.0) > FURTHEST**2:
                raise InputError("the noise is too small for what people bring: give a larger one")
        return total.ravel(), GRAINS, 0.0
