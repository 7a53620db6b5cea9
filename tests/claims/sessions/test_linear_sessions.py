"""Sessions with a coin for everybody: by quadrature, by hostile analysts, and with planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.caps import as_caps
from leakcap.custody.ledger.accounts import Spent
from leakcap.ground.arrays import Floats
from leakcap.sessions import desk
from leakcap.sessions.clock import TICKS, Clock, surest_of
from leakcap.sessions.linear import Payment, paying
from tests.claims.sessions.coin_analysts import ANALYSTS, PEOPLE, TARGET, Watched, direct, measured

M = (2 * norm.ppf(0.6)) ** 2
Rule = Callable[[Floats], Floats]  # from the log-odds after the first answer to the charge of the second


def success(first: float, second: Rule, third: Rule) -> float:
    """Of the best guess after three answers with these charges, by sums over fine grids; no formula of ours."""
    grid = np.linspace(-9, 9, 601)
    step = grid[1] - grid[0]
    odds, weight = np.zeros(1), np.ones(1)  # log-odds so far, and the law of them when the coin is 0
    charges = [lambda _: np.full(1, first), second, third]
    for charge in charges:
        c = charge(odds)
        # An answer N(b sqrt(c), 1): log-odds move by sqrt(c) y - c/2.
        y = grid[None]
        moved = odds[:, None] + np.sqrt(c)[:, None] * y - c[:, None] / 2
        odds, weight = moved.ravel(), (weight[:, None] * norm.pdf(y) * step).ravel()
        keep = weight > 1e-12
        # Log-odds are the sufficient statistic: put them into bins, so that three answers stay affordable.
        edges = np.linspace(-6, 6, 1201)
        place = np.clip(np.searchsorted(edges, odds[keep]), 1, len(edges) - 1)
        total = np.bincount(place, weight[keep], minlength=len(edges))
        mean = np.bincount(place, weight[keep] * odds[keep], minlength=len(edges)) / np.maximum(total, 1e-300)
        odds, weight = mean[total > 0], total[total > 0]
    return float((0.5 * weight * np.maximum(1.0, np.exp(odds))).sum())


RULES: dict[str, tuple[float, Rule, Rule]] = {
    "all at once": (M, lambda o: 0 * o, lambda o: 0 * o),
    "three alike": (M / 3, lambda o: np.full(len(o), M / 3), lambda o: np.full(len(o), M / 3)),
    "stop when sure": (M / 3, lambda o: np.where(np.abs(o) < 0.5, 2 * M / 3, 0.0), lambda o: 0 * o),
    "only when unsure": (M / 2, lambda o: np.where(np.abs(o) < 0.3, M / 2, 0.0), lambda o: 0 * o),
    "bet on one side": (M / 4, lambda o: np.where(o > 0, 3 * M / 4, 0.0), lambda o: 0 * o),
    "small steps": (M / 10, lambda o: np.full(len(o), M / 10), lambda o: np.full(len(o), 0.8 * M)),
}
# Each breaks what the clock asks for: charges add up to more than M on some course.
FAULTS: dict[str, tuple[float, Rule, Rule]] = {
    "charged by what the answer told": (M, lambda o: np.where(np.abs(o) < 0.2, M, 0.0), lambda o: 0 * o),
    "a stale clock": (0.6 * M, lambda o: np.full(len(o), 0.6 * M), lambda o: 0 * o),
    "lengths for squares": (M, lambda o: np.full(len(o), (0.5 * math.sqrt(M)) ** 2), lambda o: 0 * o),
}


@pytest.mark.parametrize("name", RULES)
def test_adaptive_questions_never_beat_the_bound_by_quadrature(name: str) -> None:
    assert success(*RULES[name]) <= norm.cdf(math.sqrt(M) / 2) + 2e-4


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_beat_the_bound_by_quadrature(name: str) -> None:
    assert success(*FAULTS[name]) > norm.cdf(math.sqrt(M) / 2) + 2e-3


def test_the_clock_is_the_square_that_the_cap_allows_rounded_down() -> None:
    for cap in (0.51, 0.55, 0.6, 0.75, 0.95):
        exact = (2 * norm.ppf(cap)) ** 2
        assert (1 - 1e-3) * exact < Clock.of(as_caps(cap)).square < exact
    rate = Clock.of((lc.true_positive_rate(0.01, 0.03),))
    assert 0.999 < rate.square / (norm.ppf(0.03) - norm.ppf(0.01)) ** 2 < 1
    both = Clock.of((lc.membership(0.6), lc.true_positive_rate(0.01, 0.03)))
    assert both.square < min(rate.square, Clock.of(as_caps(0.6)).square) * (1 + 1e-4)


def test_charges_are_rounded_up_to_whole_ticks() -> None:
    clock = Clock.of(as_caps(0.6))
    squares = np.random.default_rng(0).exponential(size=2000) * 10.0 ** np.arange(-18, 2).repeat(100)
    ticks = clock.ticks(squares)
    assert (ticks >= 1).all() and (ticks * clock.square >= squares * TICKS).all()
    assert (ticks - 1 <= squares * TICKS / clock.square * (1 + 1e-11)).all()


@pytest.mark.parametrize("name", ANALYSTS)
def test_no_hostile_analyst_beats_the_cap_through_real_sessions(name: str) -> None:
    """Four standard errors: a false alarm once in 30,000 runs of each, and the seeds are fixed."""
    seen, error = measured(ANALYSTS[name], 30)
    assert seen <= 0.6 + 4 * error
    assert seen > 0.52  # it does learn something


def test_one_question_about_one_person_attains_the_cap() -> None:
    seen, error = measured(direct, 500)
    assert error < 0.0035
    assert 0.59 < seen <= 0.6 + 4 * error  # three standard errors below


def test_a_planted_charge_that_is_not_paid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(cost: Any, spent: Any, allowance: int) -> Payment:
        return Payment(paying(cost, spent, allowance).pays, spent + (cost > 0))

    def insistent(play: Watched) -> None:
        for step in range(8):
            play.ask(play.alone, 1.5 * play.whole * (1 + 1e-6 * step))

    assert measured(insistent, 40)[0] < 0.62
    monkeypatch.setattr(desk, "paying", forgetful)
    seen, error = measured(insistent, 40)
    assert seen > 0.6 + 4 * error


def test_nobody_ever_pays_more_than_the_clock() -> None:
    for seed, analyst in enumerate(ANALYSTS.values()):
        play = Watched(seed)
        analyst(play)
        with play.desk.account.reading() as now:
            ticks = Spent.read(now, "").ticks
        assert ticks.max() <= TICKS


def test_an_analyst_sees_nothing_of_who_retires() -> None:
    """Two pools that differ in one person; with the noise held fixed, an analyst sees the same but for the sums."""
    shown = []
    for value in (0.0, 1.0):
        data = np.ones((PEOPLE, 1))
        data[TARGET] = value
        session = lc.Session(data, cap=0.6, seed=3, analyst="ann")
        for step in range(4):
            session.sum("0", bounds=(0, 1), share=0.4 + 0.01 * step)
        seen = session.preview("sum", "0", bounds=(0, 1), share=0.3)
        lines = [(line.question, line.share) for line in session.history]
        shown.append(
            (lines, session.spent, session.remaining, seen.share, seen.fits, seen.retired, session.certificate)
        )
    assert shown[0] == shown[1]


def told_in_the_pool(divide: bool, answers: int = 4, sessions: int = 250) -> tuple[float, float]:
    """Success at telling whether the target is in the pool: the attacker knows everybody else and their coins.

    Asked is a sum over people, in which the target counts against all others. A fault divides it by the number of
    people in the pool, which moves it in the same direction again.
    """
    found = []
    for seed in range(sessions):
        kept = np.arange(PEOPLE) != TARGET if seed % 2 else np.ones(PEOPLE, dtype=bool)
        ids = np.flatnonzero(kept)
        session = lc.Session(ids[:, None].astype(float), cap=0.6, unit=ids, rows_per_unit=1, seed=seed)
        coins = np.zeros(PEOPLE)
        coins[kept] = session._desk.coins
        coins[TARGET] = 0  # unknown
        weights = np.where(np.arange(PEOPLE) == TARGET, -1.0, 1.0)
        if divide:
            weights = 4.0 * weights / kept.sum()
        noise = 2 * weights.max() * math.sqrt(answers / session._desk.clock.square) * (1 + 1e-9)
        odds = np.zeros(3)  # log-likelihoods: outside; inside with either coin
        for step in range(answers):
            sigma = noise * (1 + 1e-6 * step)
            value = session.linear(lambda rows, w=weights: w[int(rows[0, 0])], bounds=(-1, 1), noise=sigma).value
            means = 2 * coins.sum() + np.array([0.0, 0.0, -2.0])
            if divide:
                means = means * 4.0 / np.array([PEOPLE - 1, PEOPLE, PEOPLE])
            odds -= ((value - means) / sigma) ** 2 / 2
        inside = np.logaddexp(odds[1], odds[2]) - math.log(2)
        found.append(1 / (1 + math.exp(-abs(odds[0] - inside))))
    return float(np.mean(found)), float(np.std(found) / math.sqrt(sessions))


def test_nobody_tells_who_is_in_the_pool_better_than_stated() -> None:
    seen, error = told_in_the_pool(divide=False)
    assert seen <= 0.55 + 4 * error


def test_a_divisor_from_the_pool_is_caught() -> None:
    seen, error = told_in_the_pool(divide=True)
    assert seen > 0.55 + 4 * error


def test_the_surest_of_many_is_what_a_simulation_reaches() -> None:
    rng = np.random.default_rng(0)
    for people in (50, 2000):
        coins = rng.random((400, people)) < 0.5
        odds = M * (coins - 0.5) + math.sqrt(M) * rng.standard_normal((400, people))
        sure = 1 / (1 + np.exp(-np.abs(odds).max(axis=1)))
        assert abs(sure.mean() - surest_of(M, people)) < 5 * sure.std() / 20
