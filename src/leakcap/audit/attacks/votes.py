"""Whether a person took part, from the noised votes of a distilled model, by whoever knows everybody else's coin.

Each trial has an account of its own in a session as `fit` opens it, tosses the person's coin and asks the teachers by
the code of the fit, with noise of the operating system. The attacker knows what would have been noised in either case
and the claimed noise, and takes the likelier: nobody is right more often about what leaves for the student.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leakcap.audit.verdicts import Finding, judged
from leakcap.custody.ledger import Book
from leakcap.custody.ledger.accounts import open_account
from leakcap.errors import InputError
from leakcap.estimators.block_average import BlockAverage
from leakcap.estimators.distilled import Distilled, votes_of
from leakcap.estimators.own_session import ALL, opened
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.noise.entropy import OperatingSystem, Randomness
from leakcap.sessions.desk import Desk
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.linear import STEP
from leakcap.sessions.session import desk_of
from leakcap.simulate.silence import kept_quiet

__all__ = ["votes"]

DRAWN, SURPRISING = 8, 40  # people tried, of whom the one that moves the votes of their block most is attacked
COINS = 0  # seed of everybody's coins and of the blocks: the attacker knows both


def votes(
    model: Distilled,
    data: tuple[Any, ...],
    trials: int,
    alpha: float,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Finding:
    """How often the likelier guess about one person's coin is right.

    Args:
        model: fitted.
        data: the rows and classes it was fitted to, and whose rows they are if it was told.
        trials: number of releases.
        alpha: what a refutation may cost.
        told: is told how many releases are attacked, of how many.
    """
    if len(data) not in (2, 3):
        raise InputError("data=(X, y): give the rows that the model was fitted to, their classes, and its unit if any")
    game = _Game.of(model, *data)
    tossed = np.random.default_rng().random(trials) < 0.5
    right = 0
    for done, coin in enumerate(tossed, start=1):
        right += game.guess(bool(coin)) == bool(coin)
        told(done, trials)
    certificate = model.certificate_
    asked = "is in the data" if certificate.design == "pool" else "took part"
    return judged(
        "votes",
        f"whether a person {asked}",
        right,
        trials=trials,
        prior=0.5,
        certified=certificate.membership_success,
        alpha=alpha,
        named=True,
    )


@dataclass(eq=False)
class _Game:
    """The model, its data, and the person whose coin is tossed."""

    model: Distilled
    opened: tuple[Any, list[str], str]  # a session, and what it calls features and target
    randomness: Randomness = field(default_factory=OperatingSystem)
    teachers: TaughtBlocks | None = None
    share: float = 1.0
    coins: Bools = field(default_factory=lambda: np.empty(0, dtype=bool))
    person: int = 0
    fitting: Fitting | None = None

    @classmethod
    def of(cls, fitted: Distilled, X: Any, y: Any, unit: Any = None) -> _Game:
        """The same settings, with as many blocks as the fit had, and nothing that spends a ledger."""
        options = {name: one for name, one in (fitted.options or {}).items() if name not in ("ledger", "name")}
        settings = {"blocks": fitted.estimator_.blocks_, "random_state": COINS, "options": options}
        model = type(fitted)(**(fitted.get_params(deep=False) | settings))
        with kept_quiet(True):
            made = cls(model, opened(model, X, y, unit))
            session, names, goal = made.opened
            session.fit(_Listening(made), names, goal, share=ALL)
            made.coins = np.array(made.desk.coins)
            made.asked(lambda fitting: made.prepare(fitting, fitted), made.coins)
        return made

    @property
    def desk(self) -> Desk:
        """That of the session as it was opened."""
        found = desk_of(self.opened[0])
        assert isinstance(found, Desk)
        return found

    def asked(self, ask: Callable[[Fitting], Any], coins: Bools) -> Any:
        """What this makes of a fit in a session that nobody has asked before, where these people take part."""
        session, desk = self.opened[0], self.desk
        fresh = open_account(
            Book.in_memory(),
            session.name,
            design="pool" if desk.everybody else "bits",
            caps=session.caps,
            version=desk.version,
            named=False,
            clock=(desk.clock.square, desk.clock.distance),
        )
        desk = replace(desk, account=fresh.account, coins=coins, randomness=self.randomness)
        assert self.fitting is not None
        return ask(self.fitting.answered_by(lambda question, share: desk.noised(question, share)[0]))

    def prepare(self, fitting: Fitting, fitted: Distilled) -> None:
        """Choose the person."""
        plain = type(self.model)(**(self.model.get_params(deep=False) | {"cap": None, "options": None}))
        average, self.share = votes_of(plain, fitting)
        self.teachers = average.teachers
        some = [*np.random.default_rng(COINS).permutation(len(self.coins))[:DRAWN], *self.surprising(fitted)]
        self.person = int(max(some, key=lambda one: float(np.linalg.norm(self.moved(int(one))))))

    def surprising(self, fitted: Distilled) -> Ints:
        """People of whose classes the released model believes the least: they turn the votes of a teacher most."""
        assert self.teachers is not None
        codes, units = self.teachers.codes, self.teachers.units
        said = np.append(fitted.estimator_.predict_proba(self.teachers.features), np.ones((len(codes), 1)), axis=1)
        owner = np.arange(len(codes)) if units.of_row is None else units.of_row
        surprise = np.bincount(owner, -np.log(said[np.arange(len(codes)), codes]), minlength=units.count)
        return np.argsort(-surprise[: len(self.coins)], kind="stable")[:SURPRISING]

    def moved(self, person: int) -> Floats:
        """By how much a person moves the votes of their block."""
        assert self.teachers is not None
        given = self.teachers
        coins = np.append(self.coins, np.zeros(given.units.count - len(self.coins), dtype=bool))
        place = int(given.of_unit[person])
        found = []
        for coin in (True, False):
            coins[person] = coin
            found.append(given.of_block(coins, place))
        return found[0] - found[1]

    def guess(self, coin: bool) -> bool:
        """Whether the person took part, guessed from one release in which their coin shows this."""
        coins = self.coins.copy()
        coins[self.person] = coin
        other = coins.copy()
        other[self.person] = not coin
        likelier = self.asked(lambda fitting: self._heard(fitting, coins, other), coins)
        if likelier == 0:  # nothing tells them apart
            return bool(np.random.default_rng().random() < 0.5)
        return coin if likelier > 0 else not coin

    def _heard(self, fitting: Fitting, coins: Bools, other: Bools) -> float:
        """Log-likelihood of what is released where these take part, less that where the others do."""
        assert self.teachers is not None
        told: list[float] = []

        def listening(question: Any, noised: Any) -> None:
            sums = question.sums(False)
            expected = [self._expected(sums, noised.deviations, one) for one in (coins, other)]
            apart = [float(np.square((noised.value - one) / noised.deviations).sum()) for one in expected]
            told.append((apart[1] - apart[0]) / 2)

        heard = fitting.heard_by(listening)
        BlockAverage(heard, self.teachers, public=self.model.classes is not None).asked(self.share)
        return float(np.sum(told))

    def _expected(self, sums: Any, deviations: Floats, coins: Bools) -> Floats:
        """What would be released without noise."""
        everybody = self.model._design(self.model.cap) == "pool"
        total, grains, beside = sums.totals(deviations, np.ones(len(coins), dtype=bool), coins, everybody)
        return np.asarray(total / np.asarray(grains) * STEP * deviations + beside)


@dataclass(frozen=True)
class _Listening:
    """Takes the place of an estimator in a session's fit, and keeps what it is given."""

    game: _Game

    def told_in_session(self) -> dict[str, Any]:
        return {}

    @property
    def takes_any_features(self) -> bool:
        return True

    def fit_in_session(self, fitting: Fitting) -> None:
        self.game.fitting = fitting
