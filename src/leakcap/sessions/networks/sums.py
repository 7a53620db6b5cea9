"""What everybody brings to a step: the gradients of their rows, each cut to one length, added up over their rows.

A gradient is a list of products of two rows of numbers: of a linear layer, what goes into it and what comes back to it;
of anything else, the number 1 and the gradient itself. Both factors are cut to a grid, so that sums are exact. They are
made block by block, for what everybody pays and again for the sum; only small ones are kept in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.interrupts import interrupts_heard
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Length, Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.products import Factor, OnProductGrid, by_unit
from leakcap.sessions.seats import Seats
from leakcap.simulate.silence import silenced
from leakcap.worlds import Units

__all__ = ["GradientSums", "Pairs", "cut"]

DIGIT = 2**8  # so many equal rows, of 256 different ones, have exact sums of products
ROUNDING = 1e-12
TINY = 1e-100
MAX_HELD = 2**25  # numbers of factors, for which they are made once and not twice
Pairs: TypeAlias = list[tuple[Floats, Floats]]
Block: TypeAlias = tuple[Ints, list[tuple[Factor, Factor]], Floats]  # who sits where, factors, lengths


@proves("linear-sessions")
def cut(pairs: Pairs, clip: float) -> tuple[list[tuple[Factor, Factor]], Floats]:
    """Gradients of rows in units of `clip`, none longer than 1, on the grid; and their lengths, rounded up.

    One that is not finite counts as 0.
    """
    with np.errstate(all="ignore"):
        sizes = [(_length(first), _length(second)) for first, second in pairs]
        length = np.sqrt(sum(np.square(one * other) for one, other in sizes))
        finite = np.isfinite(length)
        scale = (1 - 1e-9) / np.maximum(length, clip)
        found = []
        for (first, second), (size, _) in zip(pairs, sizes, strict=True):
            # A length below this one has lost its digits, and what it leads to is too small to matter.
            counts = finite & (size > TINY)
            found.append((_factor(first, 1 / size, counts), _factor(second, size * scale, counts)))
    squares = sum(np.square(first.length * second.length) for first, second in found)
    return found, np.sqrt(squares) * (1 + ROUNDING)


def _length(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _factor(rows: Floats, scale: Floats, counts: Bools) -> Factor:
    """Rows times their scale, which makes them no longer than 1; nothing of those that do not count."""
    scaled = rows * scale[:, None]
    scaled[~counts] = 0.0
    return Factor.within(scaled)


@dataclass(frozen=True, eq=False)
class GradientSums(OnProductGrid):
    """Sums of cut gradients over people, in units of `clip`; custodian side."""

    seats: Seats
    gradients: Callable[[npt.NDArray[Any], npt.NDArray[Any]], Pairs]  # of the rows of one block
    shapes: tuple[tuple[int, int], ...]  # numbers of both factors of every product
    units: Units
    clip: float
    most_rows: int  # of one person, as declared
    finish: Callable[[Floats], Any]
    public: bool = True
    halving: None = None
    scale: None = None

    @property
    def limits(self) -> Limits:
        return Length(float(self.most_rows), self.numbers)

    @property
    def numbers(self) -> int:
        return sum(first * second for first, second in self.shapes)

    @cached_property
    def lengths(self) -> Floats:
        """Of the gradients of different rows."""
        found = np.zeros(len(self.seats.rows))
        for people, _, length in self._blocks():
            found[people[people >= 0]] = length[people >= 0]
        return found

    @proves("linear-sessions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """By the lengths of the gradients of all rows of a person together: no sum of them is longer."""
        length = by_unit(self.lengths[self.seats.which], self.units)
        apart = length * (1 + ROUNDING) / (deviations.min() / self.factor(everybody))
        return clock.ticks(apart**2)

    @proves("linear-sessions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Everybody's gradients are made, whatever their coins say, and count as often as the coins say."""
        which = self.seats.which
        times = np.bincount(which[self.units.rows_in(pays & coins)], minlength=len(self.seats.rows))
        digits = range(1 + int(np.log2(np.bincount(which).max(initial=1)) // np.log2(DIGIT)))  # whatever the coins
        total = [np.zeros(shape, dtype=np.int64) for shape in self.shapes]
        for people, factors, length in self._blocks():
            # Nobody brings more than they have paid for, should a computation not repeat itself.
            counts = (people >= 0) & (length <= self.lengths[people])
            for power in digits:
                digit = (times[people] * counts // DIGIT**power % DIGIT)[:, None]
                for place, (first, second) in enumerate(factors):
                    total[place] += DIGIT**power * (first.whole.T @ (second.whole * digit)).astype(np.int64)
        found = np.concatenate([part.ravel() for part in total])
        return found, self.grains(deviations, everybody), 0.0

    def _blocks(self) -> Iterator[Block]:
        return self._made_blocks() if self._held is None else iter(self._held)

    @cached_property
    def _held(self) -> list[Block] | None:
        """All blocks, where they are small."""
        numbers = self.seats.blocks.size * sum(map(sum, self.shapes))
        return list(self._made_blocks()) if numbers <= MAX_HELD else None

    def _made_blocks(self) -> Iterator[Block]:
        for people in self.seats.blocks:
            yield people, *cut(self._made(people), self.clip)

    def _made(self, people: Ints) -> Pairs:
        """Gradients of a block. If somebody's fail, all are made one by one, each in its seat among its own like."""
        made = self._tried(people)
        if made is not None:
            return made
        found = [tuple(np.full((len(people), width), np.nan) for width in shape) for shape in self.shapes]
        for seat in np.flatnonzero(people >= 0):
            alone = np.full(len(people), people[seat])
            for own, pair in zip(found, self._tried(alone) or (), strict=False):
                for kept, new in zip(own, pair, strict=True):
                    kept[seat] = new[seat]
        return [(first, second) for first, second in found]

    def _tried(self, people: Ints) -> Pairs | None:
        stops = list[bool]()
        try:
            with interrupts_heard(stops), silenced():
                return self.gradients(*self.seats.block(people))
        except BaseException:  # whatever it is, it would tell of these people
            if stops:
                raise KeyboardInterrupt from None
            return None
