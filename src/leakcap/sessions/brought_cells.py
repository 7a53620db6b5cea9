"""What everybody brings to sums by group, where each person is in few of many groups: entries, not a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import FINE, FURTHEST, GRAINS

__all__ = ["BroughtByCell", "OfPoolByCell"]

ROUNDING = 1e-12  # relative: what sums of squares lose, with room to spare


@dataclass(frozen=True, eq=False)
class OfPoolByCell:
    """What people of this pool really bring: not for those who must not know the pool."""

    entries: BroughtByCell

    def worst(self, deviations: Floats) -> float:
        return float(self.entries.squares(deviations).max(initial=0.0)) * (1 + ROUNDING)

    def least(self, square: float) -> Floats:
        """The same noise for a sum in every group, as what people bring to it."""
        made = self.entries
        size = np.sqrt((made.values**2).mean(axis=0)) if len(made.values) else np.ones(made.values.shape[1])
        size = np.where(size > 0, size, 1.0)
        shape = np.tile(size, made.groups)
        worst = self.worst(shape)
        return np.asarray(shape * np.sqrt((worst or 1.0) / square) * (1 + ROUNDING))


@dataclass(frozen=True, eq=False)
class BroughtByCell:
    """Entries of person, group and sums; the numbers of a group stand together."""

    people: int
    groups: int
    units: Ints  # (entries,)
    cells: Ints  # (entries,)
    values: Floats  # (entries, sums)
    within: Limits | None  # as declared; None: what this pool brings
    finish: Callable[[Floats], Any]
    public: bool
    scale: Floats | float | None = 1.0
    halving: Callable[[Floats], Floats] | None = None

    @cached_property
    def limits(self) -> Limits:
        return OfPoolByCell(self) if self.within is None else self.within

    @property
    def numbers(self) -> int:
        return self.groups * self.values.shape[1]

    def factor(self, everybody: bool) -> float:
        """Where half of all take part, each counts twice."""
        return 1.0 if everybody else 2.0

    def _whitened(self, deviations: Floats) -> Floats:
        return np.asarray(self.values / deviations.reshape(self.groups, -1)[self.cells])

    def squares(self, deviations: Floats) -> Floats:
        """How far each person moves the sums, squared, in deviations."""
        whitened = self._whitened(deviations)
        own = np.einsum("ed,ed->e", whitened, whitened)
        # Whose numbers are tiny would have a charge of 0 by underflow, and yet be in the sum.
        own[(own == 0) & whitened.any(axis=1)] = np.finfo(float).tiny
        return np.asarray(np.bincount(self.units, own, minlength=self.people), dtype=np.float64)

    @proves("linear-sessions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return clock.ticks(self.squares(deviations / self.factor(everybody)))

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    @proves("linear-sessions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Exact, as `linear.exact_sums` are; the same work is done whatever the coins say."""
        whitened = self._whitened(deviations / self.factor(everybody))
        paying = pays[self.units]
        whitened[~paying] = 0.0
        if np.abs(whitened).max(initial=0.0) > FURTHEST:
            raise InputError("the noise is too small for what people bring: give a larger one")
        grains = np.trunc(whitened / FINE).astype(np.int64) * coins[self.units, None]
        total = np.zeros((self.groups, self.values.shape[1]), dtype=np.int64)
        np.add.at(total, self.cells, grains)
        return total.ravel(), GRAINS, 0.0
