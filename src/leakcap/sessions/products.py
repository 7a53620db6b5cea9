"""What everybody brings as products of two rows of numbers: gradients of linear models, and second moments.

A product of a thousand numbers with ten is never written out for a person: sums of products are products of matrices.
Both factors are cut to a grid of 2^-18, so that sums of 2^16 products are exact in floating point, whichever way they
are added up; such sums are added as whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import unit_sums
from leakcap.sessions.brought import Length, Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import STEP, cut_to_length
from leakcap.worlds import Units

__all__ = ["Factor", "OnProductGrid", "OuterProducts", "PairProducts", "by_unit"]

BITS = 18  # of a factor
EXACT_ROWS = 2**16  # of products of factors of lengths up to 1 and 2^1/2
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Factor:
    """Rows of numbers, in whole multiples of 2^-18."""

    whole: Floats  # (rows, d): whole numbers
    length: Floats  # (rows,), rounded up

    @classmethod
    def of(cls, rows: Floats, most: float = 1.0) -> Factor:
        """Rows, cut to this length at most, and towards 0."""
        return cls.within(cut_to_length(rows, most))

    @classmethod
    def within(cls, rows: Floats) -> Factor:
        """Rows that are short enough already, cut towards 0."""
        whole = np.trunc(rows * 2.0**BITS * (1 - ROUNDING))
        return cls(whole, np.sqrt(np.einsum("ij,ij->i", whole, whole)) * (2.0**-BITS * (1 + ROUNDING)))


class OnProductGrid:
    """Sums of products of factors, in whole multiples of 2^-36; where half of all take part, each counts twice."""

    def factor(self, everybody: bool) -> float:
        return 1.0 if everybody else 2.0

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        """No smaller, and so that a step of the answer's grid is a whole number of the grid of products."""
        grain = self.factor(everybody) * 2.0 ** (-2 * BITS) / STEP
        return np.asarray(np.ceil(deviations / grain) * grain)

    def grains(self, deviations: Floats, everybody: bool) -> Ints:
        """How many multiples of the grid of products a step of the answer's grid is."""
        return np.rint(deviations * STEP / (self.factor(everybody) * 2.0 ** (-2 * BITS))).astype(np.int64)


@dataclass(frozen=True, eq=False)
class OuterProducts(OnProductGrid):
    """Everybody brings the products of all numbers of one factor with all of the other, added up over their rows."""

    first: Factor
    second: Factor
    units: Units
    most: float  # the length of what one person brings, as declared
    finish: Callable[[Floats], Any]
    public: bool = True
    halving: None = None
    scale: None = None

    @property
    def limits(self) -> Limits:
        return Length(self.most, self.numbers)

    @property
    def numbers(self) -> int:
        return self.first.whole.shape[1] * self.second.whole.shape[1]

    @proves("linear-sessions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """By the lengths of the products of all rows of a person together: no sum of them is longer."""
        length = by_unit(self.first.length * self.second.length, self.units)
        apart = length * (1 + ROUNDING) / (deviations.min() / self.factor(everybody))
        return clock.ticks(apart**2)

    @proves("linear-sessions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        rows = self.units.rows_in(pays)
        takes_part = (coins if self.units.of_row is None else coins[self.units.of_row])[:, None]
        total = np.zeros((self.first.whole.shape[1], self.second.whole.shape[1]), dtype=np.int64)
        for start in range(0, len(rows), EXACT_ROWS):
            some = rows[start : start + EXACT_ROWS]
            # Whatever the coins say, the same work is done.
            total += (self.first.whole[some].T @ (self.second.whole[some] * takes_part[some])).astype(np.int64)
        return self._numbers(total), self.grains(deviations, everybody), 0.0

    def _numbers(self, total: Ints) -> Ints:
        return total.ravel()


@dataclass(frozen=True, eq=False)
class PairProducts(OuterProducts):
    """OuterProducts of one factor with itself: of every pair of numbers once.

    Those of two different numbers have 2^-1/2 of the noise: then the length of what a row brings is the square of its
    own, as if every pair stood there twice.
    """

    @property
    def limits(self) -> Limits:
        return _Pairs(self.most, self.first.whole.shape[1])

    @property
    def numbers(self) -> int:
        d = self.first.whole.shape[1]
        return d * (d + 1) // 2

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return super().charges(_as_of_squares(deviations), clock, everybody)

    def _numbers(self, total: Ints) -> Ints:
        return total[np.triu_indices(len(total))]


@dataclass(frozen=True)
class _Pairs:
    """Limits of `PairProducts`."""

    norm: float
    d: int

    def worst(self, deviations: Floats) -> float:
        return float((self.norm / _as_of_squares(deviations)[0]) ** 2) * (1 + ROUNDING)

    def least(self, square: float) -> Floats:
        first, second = np.triu_indices(self.d)
        size = self.norm / math.sqrt(square) * (1 + ROUNDING)
        # The rest of the numbers of a smaller deviation is rounded up less than this.
        return np.where(first == second, size, size * (1 + ROUNDING) / math.sqrt(2))


def _as_of_squares(deviations: Floats) -> Floats:
    """The least deviation of all pairs, in units of that of a square: rounding up may have moved them apart."""
    d = int((math.isqrt(8 * len(deviations) + 1) - 1) // 2)
    first, second = np.triu_indices(d)
    return np.min(np.where(first == second, 1.0, math.sqrt(2)) * deviations, keepdims=True)


def by_unit(length: Floats, units: Units) -> Floats:
    """What the lengths of everybody's rows add up to."""
    return length if units.of_row is None else unit_sums(length[:, None], units.of_row, units.count)[:, 0]
