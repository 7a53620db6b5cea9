"""A session on listed worlds, in memory: prices of answers, draws, and the state between them.

Nothing here is stored or shown. Whoever keeps a session calls `price`, then `draw`, and stores the new state before
anybody sees the answer. Prices and refusals depend on the public history and the pool alone, never on the secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise import Randomness
from leakcap.sessions.listed_worlds.cells import REACH, Channel, cells_of
from leakcap.sessions.listed_worlds.charges import TICKS, Ticks
from leakcap.sessions.listed_worlds.posterior import Posterior
from leakcap.sessions.listed_worlds.potentials import RESERVE
from leakcap.sessions.listed_worlds.prospects import Prospect, prospects, shares
from leakcap.worlds import Worlds

__all__ = ["ListedState", "ListedWorlds", "Priced", "SessionRule"]


class SessionRule(Protocol):
    """Says what an answer costs every unit."""

    @property
    def rows(self) -> int:
        """Clocks that each unit has."""
        ...

    def price(self, prospect: Prospect, left: Ticks) -> Ticks:
        """Ticks for some units, `(rows, units)`; more than is left where the answer must not be given."""
        ...


@dataclass(frozen=True, eq=False)
class ListedState:
    """Everything that a session has to remember, as plain arrays. Custodian side.

    Attributes:
        fraction, power, answers: the posterior over worlds.
        clocks: `(rows, units)`, ticks left.
        lost: of `RESERVE`, what the rounding errors of earlier answers may have taken, at most.
    """

    fraction: Floats
    power: npt.NDArray[np.int64]
    clocks: Ticks
    answers: int = 0
    lost: float = 0.0

    @property
    def posterior(self) -> Posterior:
        return Posterior(self.fraction, self.power, self.answers)


@dataclass(frozen=True, eq=False)
class Priced:
    """An answer that may be drawn: its channel and what everybody pays, whatever is drawn.

    Attributes:
        cells: the channel.
        charges: `(rows, units)`, ticks.
    """

    cells: Channel
    charges: Ticks


@dataclass(frozen=True, eq=False)
class ListedWorlds:
    """A pool's worlds and the rule by which answers are charged.

    Attributes:
        worlds: of which one is the secret.
        rule: what answers cost: `Clocks`, or one of the rules for comparison.
        reach: deviations beyond the outermost outputs at which cells end.
    """

    worlds: Worlds
    rule: SessionRule
    reach: float = REACH

    def begin(self) -> ListedState:
        """Before the first answer: nothing known, all clocks full."""
        fresh = Posterior.uniform(self.worlds.m)
        clocks = np.full((self.rule.rows, self.worlds.n), TICKS, dtype=np.int64)
        return ListedState(fresh.fraction, fresh.power, clocks)

    @proves("clock")
    def price(self, state: ListedState, outputs: npt.ArrayLike, noise: float) -> Priced | None:
        """What an answer costs, or None where it is refused.

        Guarantee: it looks at the history, the pool and the worlds, not at the secret. Sessions that answer only what
        was priced, take the charges and draw from the priced channel keep the caps of the rule, for every analyst.

        Args:
            state: of the session so far.
            outputs: `(worlds,)`, the number that is asked for in every world.
            noise: deviation of the noise.
        """
        cells = cells_of(outputs, noise, self.reach)
        if len(cells.counts) != self.worlds.m:
            raise InputError("outputs must hold one number for every world")
        if self._lost(state, cells) > RESERVE:
            return None
        found = np.empty_like(state.clocks)
        for units, prospect in prospects(self.worlds, state.posterior, cells):
            left = state.clocks[:, units]
            found[:, units] = self.rule.price(prospect, left)
            if not ((found[:, units] >= 0) & (found[:, units] <= left)).all():
                return None
        return Priced(cells, found)

    def after(self, state: ListedState, priced: Priced, cell: int) -> ListedState:
        """The session once the answer was drawn: charges are taken whatever it was."""
        posterior = state.posterior.after(priced.cells, cell)
        return ListedState(
            posterior.fraction,
            posterior.power,
            state.clocks - priced.charges,
            answers=posterior.answers,
            lost=self._lost(state, priced.cells),
        )

    def ask(
        self, state: ListedState, outputs: npt.ArrayLike, noise: float, *, secret: int, randomness: Randomness
    ) -> tuple[ListedState, Priced, int] | None:
        """Price, draw and charge in one: the new state, what was priced and the cell; None where it is refused."""
        priced = self.price(state, outputs, noise)
        if priced is None:
            return None
        cell = priced.cells.draw(secret, randomness)
        return self.after(state, priced, cell), priced, cell

    def shares(self, state: ListedState) -> Floats:
        """Probability that each unit takes part, given the history. Custodian side."""
        return shares(self.worlds, state.posterior)

    def _lost(self, state: ListedState, cells: Channel) -> float:
        """Rounding errors so far and of this answer: three times that of a sum, of mistakes of at most 1/2."""
        return state.lost + 1.5 * state.posterior.rounding(cells)
