"""Hostile analysts of sessions with a coin for everybody: each knows all coins but one, and wants that one.

They ask through real sessions; what they know of the coin after an answer is computed here, from the answer alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import leakcap as lc
from leakcap.custody.ledger.accounts import Spent
from leakcap.errors import BudgetError

PEOPLE, TARGET = 6, 2


class Watched:
    """A session of a few people, and the log-odds of one of them after every answer."""

    def __init__(self, seed: int, cap: Any = 0.6, rows: int = 1, people: int = PEOPLE) -> None:
        self.people, self.alone = people, np.eye(1, people, TARGET)[0]
        ids = np.repeat(np.arange(people), rows)
        whose = {"unit": ids, "rows_per_unit": rows} if rows > 1 else {}
        self.session = lc.Session(ids[:, None].astype(float), cap=cap, seed=seed, **whose)
        self.desk: Any = self.session._desk
        self.odds = 0.0
        self.rng = np.random.default_rng(seed)

    def ask(self, weights: Any, noise: float) -> None:
        """A weighted sum over people, with weights from -1 to 1; what is refused tells nothing."""
        given = np.asarray(weights, dtype=float)
        before = self._spent()
        try:
            answer = self.session.linear(lambda rows: given[int(rows[0, 0])], bounds=(-1, 1), noise=noise)
        except BudgetError:
            return
        if answer.again:
            return
        moves = 2 * given * (self._spent() > before)
        others = moves * self.desk.coins
        residual = answer.value - (others.sum() - others[TARGET])
        self.odds += (moves[TARGET] * residual - moves[TARGET] ** 2 / 2) / noise**2

    def _spent(self) -> Any:
        with self.desk.account.reading() as now:
            return Spent.read(now, "").of(self.desk.people)

    @property
    def sure(self) -> float:
        """Probability of the likelier side of the target's coin."""
        return 1 / (1 + math.exp(-abs(self.odds)))

    @property
    def whole(self) -> float:
        """Noise at which a question about one person takes the whole clock."""
        return 2 / math.sqrt(self.desk.clock.square) * (1 + 1e-9)


def direct(play: Watched) -> None:
    play.ask(play.alone, play.whole)


def greedy(play: Watched) -> None:
    for _ in range(6):
        play.ask(play.alone, 2.2 * play.whole)


def largest_step(play: Watched) -> None:
    for power in range(-2, 6):
        play.ask(play.alone, play.whole * 2.0 ** (power / 2))


def gambler(play: Watched) -> None:
    for _ in range(10):
        if play.sure < 0.62:  # stops while ahead
            play.ask(play.alone, play.whole * float(play.rng.uniform(2.5, 3.0)))


def averaging(play: Watched) -> None:
    for step in range(12):
        play.ask(play.alone, 3 * play.whole * (1 + 1e-6 * step))


def tracker(play: Watched) -> None:
    for step in range(3):
        others = (play.rng.random(play.people) < 0.5).astype(float)
        others[TARGET] = 0
        play.ask(others + play.alone, 1.8 * play.whole * (1 + 1e-6 * step))
        play.ask(others, 1.8 * play.whole * (1 + 1e-6 * step))


def duplicates(play: Watched) -> None:
    """The target's rows are three: each may bring something, and all of them are one person's."""
    for step in range(4):
        play.ask(play.alone, 2 * play.whole * (1 + 1e-6 * step))


def set_splitting(play: Watched) -> None:
    for step in range(6):
        play.ask(play.rng.choice([-1.0, 1.0], size=play.people), 2.4 * play.whole * (1 + 1e-6 * step))


def noise_probing(play: Watched) -> None:
    for factor in (0.01, 0.5, 0.99, 1.5, 1.01, 1.6, 3.0, 2.0, 5.0):
        play.ask(play.alone, factor * play.whole)


ANALYSTS: dict[str, Callable[[Watched], None]] = {
    "direct": direct,
    "greedy": greedy,
    "largest step": largest_step,
    "gambler": gambler,
    "averaging": averaging,
    "tracker": tracker,
    "duplicates": duplicates,
    "set-splitting": set_splitting,
    "noise probing": noise_probing,
}


def watched(analyst: Callable[[Watched], None], seed: int, people: int = PEOPLE, **how: Any) -> float:
    """How sure an analyst is of the target's coin at the end of one session."""
    if analyst is duplicates:
        how = {"rows": 3, **how}
    play = Watched(seed, people=people, **how)
    analyst(play)
    return play.sure


def measured(analyst: Callable[[Watched], None], sessions: int, **how: Any) -> tuple[float, float]:
    """Mean success of an analyst over sessions, and its standard error."""
    found = [watched(analyst, seed, **how) for seed in range(sessions)]
    return float(np.mean(found)), float(np.std(found) / math.sqrt(sessions))
