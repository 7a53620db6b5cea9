"""Votes of blocks of people about public rows, as a question of a session: one person moves the votes of one block."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Length, Limits, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import GRAINS, exact_sums
from leakcap.simulate.silence import unheard

__all__ = ["VotesOfBlocks", "as_votes"]

FINEST = 2.0**-20  # of a vote: multiples of it are exact, so that shares of a vote never add up to more than one


def as_votes(scores: Floats) -> Floats:
    """Scores, `(..., classes)`, as shares of one vote for each row: none below 0, all together 1 at most.

    What is not finite is no vote. Shares are cut to a grid, towards 0.
    """
    usable = np.isfinite(scores).all(axis=-1, keepdims=True)
    shares = np.clip(np.where(usable, scores, 0.0), 0.0, 1.0)
    shares = shares / np.maximum(shares.sum(axis=-1, keepdims=True), 1.0)
    return np.asarray(np.floor(shares / FINEST) * FINEST)


@dataclass(frozen=True, eq=False)
class VotesOfBlocks:
    """How many blocks vote for each class of each row, in shares of a vote.

    Guarantee: what one person's block answers lies in a set of diameter `sqrt(2 rows)`, whatever the rows of its people
    are: a row's shares are none below 0 and add up to 1 at most. So a person's coin moves the sums by no more.
    """

    votes: Callable[[Bools], Floats]  # of those who take part: (blocks, rows, classes)
    people: int
    rows: int
    classes: int
    public: bool
    halving: None = None
    scale: None = None

    @property
    @proves("distilled")
    def limits(self) -> Limits:
        return Length(math.sqrt(2 * self.rows), self.numbers)

    @property
    def finish(self) -> Callable[[Floats], Floats]:
        return np.asarray

    @property
    def numbers(self) -> int:
        return self.rows * self.classes

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
        found = unheard(lambda: self._shares(pays & coins))
        votes = np.zeros((1, self.numbers)) if found is None else found
        blocks = np.ones(len(votes), dtype=bool)
        return exact_sums(votes, deviations, blocks, blocks), GRAINS, 0.0

    def _shares(self, mask: Bools) -> Floats:
        # Again, whoever made them: the noise is made for such shares. Multiples of the grid are exact in 32 bits.
        each = (as_votes(np.asarray(block, dtype=np.float64)).astype(np.float32) for block in self.votes(mask))
        return np.stack([block.reshape(self.numbers) for block in each])
