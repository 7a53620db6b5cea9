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
from leakcap.sessions.listed_worlds.charges import TICKS, Ticks, leaned
from leakcap.sessions.listed_worlds.leaning import RECENT, lean_of
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

    @property
    def leaning(self) -> bool:
        """Whether what clocks show after an answer may hang on it."""
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
        recent: `(questions, worlds)`, what was asked last, in deviations of its noise.
    """

    fraction: Floats
    power: npt.NDArray[np.int64]
    clocks: Ticks
    answers: int = 0
    lost: float = 0.0
    recent: npt.NDArray[np.float32] | None = None

    @property
    def posterior(self) -> Posterior:
        return Posterior(self.fraction, self.power, self.answers)


@dataclass(frozen=True, eq=False)
class Priced:
    """An answer that may be drawn: its channel and what everybody pays, whatever is drawn.

    Attributes:
        cells: the channel.
        charges: `(rows, units)`, ticks.
        asked: `(worlds,)`, the number in every world, in deviations of the noise.
        lean: `(cells, units)`, factors of what clocks show after each cell; None where all are 1.
    """

    cells: Channel
    charges: Ticks
    asked: Floats
    lean: Floats | None = None

    def left(self, clocks: Ticks, cell: int) -> Ticks:
        """What clocks show once this cell was drawn."""
        return leaned(clocks - self.charges, None if self.lean is None else self.lean[cell])


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
        found, leans = np.empty_like(state.clocks), list[Floats]()
        asked, recent = np.asarray(outputs, dtype=np.float64) / noise, state.recent
        lean = None
        if self.rule.leaning and recent is not None:
            lean = lean_of(state.posterior.weights(), asked, recent, cells.values / noise)
        for units, prospect in prospects(self.worlds, state.posterior, cells, lean):
            left = state.clocks[:, units]
            found[:, units] = self.rule.price(prospect, left)
            if not ((found[:, units] >= 0) & (found[:, units] <= left)).all():
                return None
            if prospect.lean is not None:
                leans.append(prospect.lean)
        return Priced(cells, found, asked, np.hstack(leans) if leans else None)

    def after(self, state: ListedState, priced: Priced, cell: int) -> ListedState:
        """The session once the answer was drawn: charges are taken whatever it was, and clocks lean as was said."""
        posterior = state.posterior.after(priced.cells, cell)
        return ListedState(
            posterior.fraction,
            posterior.power,
            priced.left(state.clocks, cell),
            answers=posterior.answers,
            lost=self._lost(state, priced.cells),
            recent=_with(state.recent, priced.asked),
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


def _with(recent: npt.NDArray[np.float32] | None, asked: Floats) -> npt.NDArray[np.float32]:
    """The last questions, and one more, as they are stored."""
    latest = asked.astype(np.float32)[None]
    return latest if recent is None else np.vstack([recent[-RECENT + 1 :], latest])
