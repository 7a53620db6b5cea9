"""Clocks that lean: whatever they lean by, no answer raises the mean of the potential; and they do lean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.sessions.listed_worlds import charges as charging
from leakcap.sessions.listed_worlds import engine as engines
from leakcap.sessions.listed_worlds import leaning
from leakcap.sessions.listed_worlds.charges import REFUSED, TICKS
from leakcap.sessions.listed_worlds.engine import ListedState, ListedWorlds, Priced
from leakcap.sessions.listed_worlds.leaning import FEWEST, RECENT, lean_of
from leakcap.sessions.listed_worlds.potentials import MembershipClock, RecognitionClock
from tests.claims.sessions.analysts import ANALYSTS
from tests.claims.sessions.play import CAP, engine_of, pool, potential, sampled
from tests.claims.sessions.test_clock import prospect_of, weighed_mistakes
from tests.later import others_later

CLOCKS = (
    MembershipClock.at(CAP, 0.5),
    RecognitionClock.at(lc.true_positive_rate(0.01, 0.05), 0.5, members=True),
)


def worst_rise(lean_by: float) -> tuple[float, bool]:
    """By how much the mean of a potential rises at most, in 60 digits and in units of what is allowed for rounding; and
    whether every charge is the least. Clocks are floored where the test says, by its own arithmetic."""
    worst, least = -np.inf, True
    with mpmath.workdps(60):
        for seed, clock in enumerate(CLOCKS):
            prospect, _ = prospect_of(seed)
            rng = np.random.default_rng(seed)
            prospect = replace(prospect, lean=np.exp(lean_by * rng.uniform(-1, 1, prospect.inside.shape)))
            left = np.full(6, TICKS // 2, dtype=np.int64)
            found = charging.charges(clock, prospect, left)
            assert (found < REFUSED).all()
            for unit in range(6):
                shown, paid = int(left[unit]), int(found[unit])
                worst = max(worst, rise(clock, prospect, unit, (shown, paid)))
                least &= paid == 1 or rise(clock, prospect, unit, (shown, paid - 3)) > 0
    return float(worst), least


def rise(clock: Any, prospect: Any, unit: int, ticks: tuple[int, int]) -> float:
    left, paid = ticks
    missing, accusing = (mpmath.mpf(weight) for weight in clock.weights)
    pairs = [
        (missing * mpmath.mpf(a), accusing * mpmath.mpf(b))
        for a, b in zip(prospect.inside[:, unit], prospect.outside[:, unit], strict=True)
    ]
    shown = [clock.start * (int((left - paid) * factor) / TICKS) for factor in prospect.lean[:, unit]]
    now = weighed_mistakes(sum(a for a, _ in pairs), sum(b for _, b in pairs), mpmath.mpf(clock.start * (left / TICKS)))
    after = sum(weighed_mistakes(a, b, mpmath.mpf(one)) for (a, b), one in zip(pairs, shown, strict=True))
    return float((1 - after / now) / (3 * prospect.rounding))


@pytest.mark.parametrize("lean_by", [0.01, 0.6])
def test_no_lean_raises_the_mean_of_the_potential_and_no_charge_is_too_large(lean_by: float) -> None:
    worst, least = worst_rise(lean_by)
    assert worst <= 1
    assert least


def test_a_lean_that_is_not_paid_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices as of clocks that stand upright."""
    charged = charging.charges

    def upright(clock: Any, prospect: Any, left: Any) -> Any:
        return charged(clock, replace(prospect, lean=None), left)

    monkeypatch.setattr(charging, "charges", upright)
    assert worst_rise(0.6)[0] > 1e3


def counts(worlds: Any, seed: int) -> Callable[[], tuple[np.ndarray, float]]:
    """Random counts of some of the people, with much noise."""
    rng, masks = np.random.default_rng(seed), worlds.masks()

    def question() -> tuple[np.ndarray, float]:
        outputs = masks @ rng.integers(0, 2, masks.shape[1]).astype(float)
        return outputs, 20 * float(outputs.std()) + 1e-9

    return question


def some_answers(engine: ListedWorlds, number: int) -> ListedState:
    state, randomness, question = engine.begin(), Seeded(1), counts(engine.worlds, 2)
    for _ in range(number):
        step = engine.ask(state, *question(), secret=3, randomness=randomness)
        assert step is not None
        state = step[0]
    return state


def means_of_potentials(engine: ListedWorlds, state: ListedState, priced: Priced) -> tuple[np.ndarray, np.ndarray]:
    """Of everybody, before an answer and on average after it, by counting worlds."""
    masks, weights = engine.worlds.masks(), state.posterior.weights()
    joint = weights[:, None] * priced.cells.masses()
    law, inside = joint.sum(axis=0), joint.T @ masks
    start, units = engine.rule.potentials[0].start, range(engine.worlds.n)
    before = np.array([potential(weights @ masks[:, u], start * state.clocks[0, u] / TICKS) for u in units])
    after = np.zeros(len(before))
    for cell in np.flatnonzero(law > 1e-300):
        left = start * priced.left(state.clocks, int(cell))[0] / TICKS
        after += law[cell] * np.array([potential(inside[cell, u] / law[cell], left[u]) for u in units])
    return before, after


def test_clocks_lean_after_some_answers_and_the_mean_of_the_potential_stays() -> None:
    engine = engine_of(pool(64, 12), reach=6.0)
    question = counts(engine.worlds, 5)
    for number in (FEWEST - 1, FEWEST + 4):
        state = some_answers(engine, number)
        priced = engine.price(state, *question())
        assert priced is not None
        assert (priced.lean is None) == (number < FEWEST)
        before, after = means_of_potentials(engine, state, priced)
        assert (after <= before + 1e-12).all()
        assert (after >= before - 1e-6).all()  # nothing is wasted
    assert priced.lean is not None
    assert priced.lean.std() > 1e-4
    clocks = [engine.after(state, priced, cell).clocks for cell in (8, 16)]
    assert (clocks[0] != clocks[1]).any()


def test_clocks_lean_towards_answers_after_which_the_same_questions_cost_more() -> None:
    """The lean of a cell against the price of recent questions in the posterior that the cell leaves."""
    engine = engine_of(pool(64, 12), reach=6.0)
    state = some_answers(engine, FEWEST + 8)
    outputs, noise = counts(engine.worlds, 9)()
    priced = engine.price(state, outputs, noise)
    assert priced is not None and priced.lean is not None and state.recent is not None
    masks = engine.worlds.masks().astype(float)

    def prices(cell: int) -> np.ndarray:
        weights = engine.after(state, priced, cell).posterior.weights()
        share = weights @ masks
        moved = (state.recent * weights) @ masks - np.outer(state.recent @ weights, share)
        return np.asarray((moved**2).sum(axis=0) / (share * (1 - share)) ** 2)

    middle = len(priced.cells.values) // 2
    low, high = prices(middle - 2), prices(middle + 2)
    leans = np.log(priced.lean[middle + 2] / priced.lean[middle - 2])
    assert np.corrcoef(np.log(high / low), leans)[0, 1] > 0.9


def test_questions_that_leap_leave_clocks_upright() -> None:
    weights, rng = np.full(8, 1 / 8), np.random.default_rng(0)
    recent = rng.standard_normal((FEWEST, 8))
    asked = rng.standard_normal(8)
    assert lean_of(weights, 0.1 * asked, recent, np.zeros(3)) is not None
    assert lean_of(weights, 10 * asked, recent, np.zeros(3)) is None
    assert lean_of(weights, np.ones(8), recent, np.zeros(3)) is None
    assert lean_of(weights, 0.1 * asked, recent[1:], np.zeros(3)) is None


def test_no_more_questions_are_kept_than_are_looked_at() -> None:
    state, engine = None, engine_of(pool(16, 6), reach=6.0)
    for number in range(RECENT + 3):
        state = engines._with(state, np.full(16, float(number)))
    assert len(state) == RECENT
    assert state[-1, 0] == RECENT + 2
    assert engine.begin().recent is None


@pytest.mark.parametrize("name", others_later(["averaging", "tracker", "greedy"], "averaging", "tracker"))
def test_no_analyst_beats_leaning_clocks(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Clocks lean from the second answer on, as far as they may; four standard errors, seeds are fixed."""
    monkeypatch.setattr(leaning, "FEWEST", 1)
    monkeypatch.setattr(leaning, "PART", 4.0)
    engine = engine_of(pool(32, 6), reach=6.0)
    found = sampled(engine, ANALYSTS[name][0], 0, sessions=25, answers=8, seed=0)
    assert found.mean() <= CAP + 4 * found.std() / np.sqrt(len(found))
