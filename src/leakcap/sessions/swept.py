"""Sums of what people bring that is made of their rows while they are swept, and kept for nobody.

One sweep makes everybody's charge and, as most often everybody pays, the sums of those whose coin says so. Where
somebody cannot pay, rows are swept again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import FURTHEST, GRAINS

__all__ = ["SweptSums", "checked_squares", "factors_of"]

ROUNDING = 1e-9  # relative: what limits and distances lose, with room to spare


@dataclass(frozen=True, eq=False, kw_only=True)
class SweptSums(ABC):
    """Charges and exact sums, by sweeps over rows. Custodian side."""

    coins: Bools | None = None  # as they will be given, so that charges and totals are worked out at one go
    _totals: dict[bytes, Ints] = field(default_factory=dict, init=False, repr=False)  # if all pay, by deviations

    @abstractmethod
    def swept(self, deviations: Floats, pays: Bools | None, coins: Bools | None) -> tuple[Floats, Ints]:
        """Everybody's squared distance in deviations; and the total of payers whose coin says so, in grains.

        The total is exact, whoever is in it; and the same work is done whatever the coins say. None: everybody.
        """

    def expecting(self, coins: Bools) -> Self:
        """The same, which will be asked for totals of these coins after charges."""
        return replace(self, coins=coins)

    def factor(self, everybody: bool) -> float:
        """Where half of all take part, each counts twice."""
        return 1.0 if everybody else 2.0

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    def squares(self, deviations: Floats) -> Floats:
        """How far each person moves the sums, squared, in deviations."""
        squares, total = self.swept(deviations, None, self.coins)
        if self.coins is not None and squares.max(initial=0.0) <= FURTHEST**2:
            self._totals[deviations.tobytes()] = total
        return squares

    @proves("linear-sessions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return clock.ticks(self.squares(deviations / self.factor(everybody)))

    @proves("linear-sessions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Exact, as `linear.exact_sums` are; the same work is done whatever the coins say."""
        deviations = deviations / self.factor(everybody)
        total = self._totals.get(deviations.tobytes()) if coins is self.coins and pays.all() else None
        if total is None:
            squares, total = self.swept(deviations, pays, coins)
            if squares[pays].max(initial=0.0) > FURTHEST**2:
                raise InputError("the noise is too small for what people bring: give a larger one")
        return total.ravel(), GRAINS, 0.0


def factors_of(people: int, pays: Bools | None, coins: Bools | None) -> Ints:
    """1 for whoever pays and whose coin says so, otherwise 0; None: all do."""
    factors = np.ones(people, dtype=np.int64)
    for one in (pays, coins):
        if one is not None:
            factors *= one
    return factors


def checked_squares(squares: Floats, limits: Limits, deviations: Floats) -> Floats:
    """Squared distances; noise was made for the limits: beyond them a certificate is false."""
    if squares.max(initial=0.0) > limits.worst(deviations) * (1 + ROUNDING) + np.finfo(np.float64).tiny:
        raise AssertionError("a unit brings more than its limits")
    return squares
