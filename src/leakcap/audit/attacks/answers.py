"""Whether a person took part, from all answers of a session, by whoever knows everybody else's coin.

Every trial has an account of its own and tosses the person's coin. The questions that the session has answered are
asked again in it, by the code that answers them, with noise of the operating system; and then one more, that takes the
rest of the clock. The attacker knows what would have been noised in either case and the claimed noise, and takes the
likelier: nobody is right more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leakcap.audit.attacks.law import of_grid
from leakcap.audit.verdicts import Finding, judged
from leakcap.errors import BudgetError, InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sessions.asked_before import AskedBefore, clocks_at, desk_to_replay, groups_asked, new_desk, replay_of
from leakcap.sessions.brought import LikeOther, Sums, Totals
from leakcap.sessions.clock import TICKS, Clock, told_after
from leakcap.sessions.desk import Desk
from leakcap.sessions.linear import STEP
from leakcap.sessions.session import Session
from leakcap.simulate.silence import kept_quiet

__all__ = ["ATTACK", "NOISE", "answers"]

ATTACK, NOISE = "answers", "noise of the answers"
TRIED = 8  # people who have paid the most, and as many others: whom the answers move most is attacked
COINS = 0  # seed of everybody's coins: the attacker knows them
PARTS = 5  # findings for each clock
MOST_NUMBERS = 400_000  # of noise that are looked at
NOTHING_ASKED = (
    "none of this session's answers can be asked again: there are none yet, or they are of fits or functions, or about "
    "other data. Of a fit or a function, leakcap.audit.model attacks what it makes"
)


def answers(session: Session, trials: int, alpha: float, told: Callable[[int, int], None]) -> Iterator[Finding]:
    """How often the likelier guess about one person's coin is right, for every clock; and whether the noise is as said.

    Args:
        session: that was asked.
        trials: how often everything is asked again.
        alpha: what refutations may cost.
        told: is told how many trials are done, of how many.
    """
    desk = desk_to_replay(session)
    coins = np.ones(len(desk.people), dtype=bool)
    if not desk.everybody:
        coins = np.random.default_rng(COINS).random(len(desk.people)) < 0.5
    with kept_quiet(True):
        games = [
            game for group in groups_asked(session) if (game := _Replayed.of(session, desk, group, coins)) is not None
        ]
        if not games:
            raise InputError(NOTHING_ASKED)
        for at, game in enumerate(games):
            yield from game.findings(trials, alpha / len(games), _after(at * trials, len(games) * trials, told))


def _after(before: int, all_trials: int, told: Callable[[int, int], None]) -> Callable[[int], None]:
    return lambda done: told(before + done, all_trials)


@dataclass(eq=False)
class _WorkedOut(LikeOther):
    """Sums of which all but one person's coin stay as they are: worked out once for either side of it."""

    made: Sums
    person: int
    found: dict[Any, Any] = field(default_factory=dict)
    last: tuple[Any, ...] = ()  # what totals were asked for last, but for the coins

    @property
    def other(self) -> Sums:
        return self.made

    @property
    def finish(self) -> Callable[[Floats], Any]:
        return np.asarray  # what is made of noised sums tells no more than they do

    @property
    def halving(self) -> None:
        return None

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        key = ("charges", deviations.tobytes())
        if key not in self.found:
            self.found[key] = self.made.charges(deviations, clock, everybody)
        charged: Ints = self.found[key]
        return charged

    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        self.last = (deviations, pays, everybody)
        key = ("totals", deviations.tobytes(), pays.tobytes(), bool(coins[self.person]))
        if key not in self.found:
            self.found[key] = self.made.totals(deviations, pays, coins, everybody)
        totals: Totals = self.found[key]
        return totals

    def without_noise(self, coins: Bools) -> Floats:
        """What would be released last, without noise, if these people took part."""
        deviations, pays, everybody = self.last
        total, grains, beside = self.totals(deviations, pays, coins, everybody)
        return np.asarray(total / np.asarray(grains) * STEP * deviations + beside)

    def moved(self, coins: Bools, person: int) -> float:
        """How far a person moves what was released last, squared, in deviations of the noise."""
        deviations, pays, everybody = self.last
        ends = []
        for coin in (True, False):
            these = coins.copy()
            these[person] = coin
            total, grains, _ = self.made.totals(deviations, pays, these, everybody)
            ends.append(total / np.asarray(grains) * STEP)
        return float(np.square(ends[0] - ends[1]).sum())


@dataclass(frozen=True, eq=False)
class _Question:
    """A question whose sums are worked out, and how it is paid for."""

    asked: AskedBefore
    sums: _WorkedOut

    @classmethod
    def of(cls, asked: AskedBefore, person: int, made: Sums | None = None) -> _Question:
        sums = _WorkedOut(asked.question.sums(asked.noise is not None) if made is None else made, person)
        known = replace(asked.question, sums=lambda _: sums, public=lambda _: True)
        return cls(replace(asked, question=known), sums)

    def at(self, desk: Desk) -> Any:
        """What a desk releases."""
        return desk.noised(self.asked.question, self.asked.share, noise=self.asked.noise)[0]


@dataclass(frozen=True, eq=False)
class _Heard:
    """What one trial tells. Custodian side."""

    odds: float  # log-odds that the person's coin shows heads
    noise: Floats  # in units of the claimed one


@dataclass(frozen=True, eq=False)
class _Replayed:
    """What a group has asked, and the person whose coin is tossed."""

    desk: Desk
    coins: Bools
    person: int
    asked: list[_Question]
    rest: list[_Question]  # a further one, which takes what is left of the person's clock; none where nothing is
    spent: int  # ticks of the person, after the questions
    words: str

    @classmethod
    def of(cls, session: Session, desk: Desk, group: str, coins: Bools) -> _Replayed | None:
        """The game about whom the answers move most, of those who have paid the most and of some others."""
        replay = replay_of(session, group, coins)
        if not replay.asked:
            return None
        asked = [_Question.of(one, 0) for one in replay.asked]
        played = new_desk(desk, session.name, coins)
        for one in asked:
            one.at(played)
        paid, allowance = clocks_at(played)
        some = [*np.argsort(-paid, kind="stable")[:TRIED], *np.linspace(0, len(coins) - 1, TRIED).astype(int)]
        moves = np.array([[one.sums.moved(coins, int(person)) for one in asked] for person in some])
        person = int(some[int(moves.sum(axis=1).argmax())])
        most = replay.asked[int(moves[int(moves.sum(axis=1).argmax())].argmax())]
        asked = [_Question.of(one, person, known.sums.made) for one, known in zip(replay.asked, asked, strict=True)]
        rest = [_Question.of(one, person) for one in _taking(most, allowance - int(paid[person]))]
        try:
            for one in rest:
                one.at(played)
        except BudgetError:  # others have less left, and none of them may be left out
            rest = []
        count = len(asked) + replay.others
        words = f"whether a person {'is in the data' if desk.everybody else 'took part'}, from {len(asked)} "
        words += f"{f'of {count} ' if replay.others else ''}answer{'s' if count > 1 else ''}"
        words += f" to {group}" if group else ""
        return cls(desk, coins, person, asked=asked, rest=rest, spent=int(paid[person]), words=words)

    def findings(self, trials: int, alpha: float, told: Callable[[int], None]) -> Iterator[Finding]:
        rng, share = np.random.default_rng(), alpha / PARTS
        tossed = rng.random(trials) < 0.5
        odds, noise = np.zeros((trials, 2)), list[Floats]()
        looked_at: Ints | None = None
        for trial, coin in enumerate(tossed):
            heard = self.played(bool(coin))
            odds[trial] = [one.odds for one in heard]
            numbers = np.concatenate([one.noise for one in heard])
            if looked_at is None:
                most = max(1, MOST_NUMBERS // trials)
                looked_at = rng.permutation(len(numbers))[:most]
            noise.append(numbers[looked_at])
            told(trial + 1)
        luck = np.where(rng.random(trials) < 0.5, 1e-300, -1e-300)  # where nothing tells them apart
        clock = self.desk.clock
        _, allowance = clocks_at(self.desk)
        ends = [(self.words, odds[:, 0], self.spent)]
        if self.rest:
            ends.append((f"{self.words}, and one more that takes the rest of the clock", odds.sum(axis=1), allowance))
        for question, known, ticks in ends:
            yield judged(
                ATTACK,
                question,
                int(((known + luck > 0) == tossed).sum()),
                trials=trials,
                prior=0.5,
                certified=told_after(ticks / TICKS * clock.square, clock.distance),
                alpha=share,
                named=True,
            )
        yield from of_grid(NOISE, np.stack(noise), STEP, rng, alpha=share)

    def played(self, coin: bool) -> tuple[_Heard, _Heard]:
        """One trial: what the answers tell, and what the further one does."""
        coins = self.coins.copy()
        coins[self.person] = coin
        desk = new_desk(self.desk, "audit", coins)
        return self.heard(desk, self.asked), self.heard(desk, self.rest)

    def heard(self, desk: Desk, asked: list[_Question]) -> _Heard:
        inside, outside = desk.coins.copy(), desk.coins.copy()
        inside[self.person], outside[self.person] = True, False
        odds, noise = 0.0, [np.zeros(0)]
        for one in asked:
            noised = one.at(desk)
            off = [(noised.value - one.sums.without_noise(coins)) / noised.deviations for coins in (inside, outside)]
            odds += float((off[1] ** 2 - off[0] ** 2).sum()) / 2
            noise.append(off[0] if desk.coins[self.person] else off[1])
        return _Heard(odds, np.concatenate(noise))


def _taking(asked: AskedBefore, left: int) -> Iterator[AskedBefore]:
    """The same question once more, for the rest of a clock."""
    if left > 1:
        question = replace(asked.question, words={**asked.question.words, "again": "for the rest of the clock"})
        yield AskedBefore(question, None, (left - 1) / TICKS)
