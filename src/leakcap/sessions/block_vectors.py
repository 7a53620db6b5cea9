"""Vectors of blocks of people as a question of a session: one person moves that of one block, within a ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Length, Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import GRAINS, cut_to_length, exact_sums
from leakcap.simulate.silence import unheard

__all__ = ["BlockVectors"]


@dataclass(frozen=True, eq=False)
class BlockVectors:
    """The sum of a vector of each block, cut to a length; a block without a usable one counts as 0.

    Guarantee: whatever the rows of its people are, what a block brings lies in a ball of this radius. So a person, who
    is in one block, moves the sums by `2 radius` at most.
    """

    vectors: Callable[[Bools], Floats]  # of those who take part: (blocks, numbers)
    people: int
    numbers: int
    radius: float  # from declarations and answers alone
    public: bool
    halving: None = None
    scale: None = None

    @property
    @proves("distilled")
    def limits(self) -> Limits:
        return Length(2 * self.radius, self.numbers)

    @property
    def finish(self) -> Callable[[Floats], Floats]:
        return np.asarray

    def factor(self, everybody: bool) -> float:
        return 1.0

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """The same for everybody: what a block makes of one person's rows is not looked at."""
        return np.full(self.people, clock.ticks(np.array([self.limits.worst(deviations)]))[0])

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    @proves("distilled")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        # A word, a warning or an error that is heard only now would tell about the coins.
        found = unheard(lambda: self._cut(pays & coins))
        vectors = np.zeros((1, self.numbers)) if found is None else found
        blocks = np.ones(len(vectors), dtype=bool)
        return exact_sums(vectors, deviations, blocks, blocks), GRAINS, 0.0

    def _cut(self, mask: Bools) -> Floats:
        found = np.asarray(self.vectors(mask), dtype=np.float64)
        usable = np.isfinite(found).all(axis=1, keepdims=True) & (np.abs(found).max(axis=1, keepdims=True) < 1e100)
        return cut_to_length(np.where(usable, found, 0.0), self.radius)
