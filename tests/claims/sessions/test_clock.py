"""The clock: its potentials against integrals, its charges in 60 digits, and every session of tiny pools."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import CapError
from leakcap.sessions.listed_worlds import charges as charging
from leakcap.sessions.listed_worlds import potentials as kinds
from leakcap.sessions.listed_worlds.cells import REACH, SCALE, cells_of
from leakcap.sessions.listed_worlds.charges import REFUSED, TICKS, Clocks, raised
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.posterior import SPARE, UNIT, Posterior
from leakcap.sessions.listed_worlds.potentials import (
    RESERVE,
    InformationClock,
    MembershipClock,
    RecognitionClock,
    potentials_of,
)
from leakcap.sessions.listed_worlds.prospects import prospects
from leakcap.worlds import draw_worlds
from tests.claims.sessions.analysts import SHARP, set_splitting
from tests.claims.sessions.play import CAP, View, all_coins, branches, engine_of, leaves, pool, recognised, success

mpmath = pytest.importorskip("mpmath")
X = np.linspace(-12, 12, 30_001)
MEMBERSHIP = MembershipClock.at(CAP, 0.5)
RECOGNITION = lc.true_positive_rate(0.01, 0.03)
CLOCKS = {
    "membership": MEMBERSHIP,
    "balanced at 1/4": MembershipClock.at(CAP, 0.25),
    "claims in": RecognitionClock.at(RECOGNITION, 0.5, members=True),
    "claims out": RecognitionClock.at(RECOGNITION, 0.5, members=False),
    "claims in at 1/4": RecognitionClock.at(RECOGNITION, 0.25, members=True),
}


def payoff(clock: Any, q: np.ndarray) -> np.ndarray:
    """What is capped, of a posterior, from its definition."""
    p = clock.rate
    if isinstance(clock, RecognitionClock):
        true, false = (q / p, (1 - q) / (1 - p)) if clock.members else ((1 - q) / (1 - p), q / p)
        return np.maximum(true - clock.ratio * false, 0.0)
    return 0.5 + np.abs(q / p - (1 - q) / (1 - p)) / 4


def integrated(clock: Any, q: float, left: float) -> float:
    """The mean of the payoff after one more observation, by a sum over its values."""
    if not left:
        return float(payoff(clock, np.array(q)))
    apart = np.sqrt(left)
    inside = q * np.exp(-((X - apart / 2) ** 2) / 2)
    outside = (1 - q) * np.exp(-((X + apart / 2) ** 2) / 2)
    law = (inside + outside) / np.sqrt(2 * np.pi)
    return float((payoff(clock, inside / (inside + outside)) * law).sum() * (X[1] - X[0]))


@pytest.mark.parametrize("name", CLOCKS)
def test_the_potential_is_the_payoff_after_one_more_observation(name: str) -> None:
    clock = CLOCKS[name]
    for q in (1e-6, 0.03, 0.25, 0.5, 0.61, 0.97, 1 - 1e-6):
        for left in (0.0, 1e-4, 0.06, 0.25, 2.0):
            assert clock.value(q, left) - clock.value(q, 0) == pytest.approx(
                integrated(clock, q, left) - integrated(clock, q, 0), abs=2e-7
            )


@pytest.mark.parametrize("q", [0.0, 1e-300, 0.2, 0.5, 1 - 1e-15, 1.0])
def test_an_empty_clock_shows_the_success_itself(q: float) -> None:
    assert MEMBERSHIP.value(q, 0.0) == max(q, 1 - q)
    assert MEMBERSHIP.value(q, 1e-300) == pytest.approx(max(q, 1 - q), abs=1e-15)


def test_starts_are_those_of_the_caps() -> None:
    starts = [round(MembershipClock.at(cap, 0.5).start, 5) for cap in (0.55, 0.6)]
    assert starts == [0.06316, 0.25674]
    assert MembershipClock.at(0.6, 0.25).start == MEMBERSHIP.start


def start_is_kept(cap: float, rate: float) -> bool:
    """In 60 digits: what fresh clocks promise is below the cap by what is kept for rounding errors."""
    with mpmath.workdps(60):
        start = mpmath.mpf(MembershipClock.at(cap, rate).start)
        return bool(mpmath.ncdf(mpmath.sqrt(start) / 2) <= mpmath.mpf(cap) - mpmath.mpf(RESERVE))


def recognition_is_kept(fpr: float, at_most: float) -> bool:
    clock = RecognitionClock.at(lc.true_positive_rate(fpr, at_most), 0.5, members=True)
    with mpmath.workdps(60):
        apart = mpmath.sqrt(mpmath.mpf(clock.start))
        ratio = mpmath.mpf(clock.ratio)
        turn = -mpmath.log(ratio) / apart
        best = mpmath.ncdf(turn + apart / 2) - ratio * mpmath.ncdf(turn - apart / 2)
        kept = 2 * mpmath.mpf(clock.most) * mpmath.mpf(RESERVE)
        return bool(best <= mpmath.mpf(at_most) - ratio * mpmath.mpf(fpr) - kept)


GRID = [0.501, 0.51, 0.55, 0.6, 0.7321, 0.9, 0.999]


def test_fresh_clocks_promise_no_more_than_the_cap() -> None:
    assert all(start_is_kept(cap, rate) for cap in GRID for rate in (0.5, 0.1))
    assert all(recognition_is_kept(*rates) for rates in ((0.01, 0.03), (0.001, 0.005), (0.1, 0.2), (0.5, 0.6)))


def test_planted_starts_that_are_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "DOWN", 1 + 4e-12)
    assert not all(start_is_kept(cap, 0.5) for cap in GRID)


def prospect_of(seed: int, answers: int = 3, noise: float = 5.0) -> tuple[Any, Any]:
    """Some units after a few answers about random things, and the law of the next one."""
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(6, 8, rng)
    posterior = Posterior.uniform(8)
    for _ in range(answers):
        cells = cells_of(rng.standard_normal(8), noise, 1.0)
        posterior = posterior.after(cells, int(rng.integers(len(cells.values))))
    cells = cells_of(rng.standard_normal(8), noise, 1.0)
    ((_, prospect),) = prospects(worlds, posterior, cells)
    return prospect, cells


def weighed_mistakes(inside: Any, outside: Any, left: Any) -> Any:
    if not left or not inside or not outside:
        return min(inside, outside)
    apart = mpmath.sqrt(left)
    turn = mpmath.log(inside / outside) / apart
    return inside * mpmath.ncdf(-apart / 2 - turn) + outside * mpmath.ncdf(turn - apart / 2)


def lacking(clock: Any, prospect: Any, unit: int, ticks: tuple[int, int]) -> Any:
    """By how much the mean of the potential rises, relative to the weighed mistakes now, in 60 digits."""
    missing, accusing = (mpmath.mpf(weight) for weight in clock.weights)
    before, after = (mpmath.mpf(clock.start * (shown / TICKS)) for shown in ticks)
    pairs = [
        (missing * mpmath.mpf(a), accusing * mpmath.mpf(b))
        for a, b in zip(prospect.inside[:, unit], prospect.outside[:, unit], strict=True)
    ]
    now = weighed_mistakes(sum(a for a, _ in pairs), sum(b for _, b in pairs), before)
    return 1 - sum(weighed_mistakes(a, b, after) for a, b in pairs) / now


def faults_of_charges(clock: Any) -> tuple[int, int]:
    """How many charges break the inequality by more than rounding errors, and how many are not the least."""
    broken = loose = 0
    with mpmath.workdps(60):
        for seed in range(4):
            prospect, _ = prospect_of(seed)
            left = np.full(6, TICKS // 2, dtype=np.int64)
            found = charging.charges(clock, prospect, left)
            assert (found < REFUSED).all()
            for unit in range(6):
                shown, paid = int(left[unit]), int(found[unit])
                broken += lacking(clock, prospect, unit, (shown, shown - paid)) > 3 * prospect.rounding
                loose += paid > 1 and lacking(clock, prospect, unit, (shown, shown - paid + 2)) < 0
    return broken, loose


@pytest.mark.parametrize("name", ["membership", "claims in", "claims out"])
def test_no_answer_raises_the_mean_of_the_potential_and_no_charge_is_too_large(name: str) -> None:
    assert faults_of_charges(CLOCKS[name]) == (0, 0)


def test_planted_charges_that_are_rounded_down_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    charged = charging.charges

    def less(*given: Any) -> Any:
        found = charged(*given)
        return np.where(found < REFUSED, np.maximum(found - 1, 0), found)

    monkeypatch.setattr(charging, "charges", less)
    assert faults_of_charges(MEMBERSHIP)[0] > 0


@pytest.mark.parametrize("name", CLOCKS)
def test_the_inequality_holds_for_the_integrated_payoff(name: str) -> None:
    """By the definition of the payoff and sums over observations, for large steps and small ones."""
    clock, seen = CLOCKS[name], 0
    for seed, noise in ((0, 2.0), (1, 4.0), (2, 12.0)):
        rng = np.random.default_rng(seed)
        worlds = draw_worlds(8, 16, rng, rate=clock.rate)
        cells = cells_of(rng.standard_normal(16), noise, 1.0)
        ((_, prospect),) = prospects(worlds, Posterior.uniform(16), cells)
        found = charging.charges(clock, prospect, np.full(8, TICKS, dtype=np.int64))
        for unit in np.flatnonzero(found < REFUSED)[:2]:
            law = prospect.inside[:, unit] + prospect.outside[:, unit]

            def mean(share: float, unit: int = unit, law: Any = law, prospect: Any = prospect) -> float:
                left = clock.start * (1 - share)
                return sum(
                    p * integrated(clock, a / p, left) for a, p in zip(prospect.inside[:, unit], law, strict=True)
                )

            now = integrated(clock, float(prospect.members[unit]), clock.start)
            share = found[unit] / TICKS
            assert mean(share) <= now + 2e-7
            assert share < 1e-3 or mean(0.9 * share) > now, "a tenth less would not do"
            seen += 1
    assert seen >= 4


def test_mistakes_are_accurate_to_the_last_digits() -> None:
    """In 60 digits, over all sizes of weights and clocks: far within what the rounding error spares for it."""
    rng, worst = np.random.default_rng(0), 0.0
    with mpmath.workdps(60):
        for number in range(500):
            a = 10 ** rng.uniform(-300 if number % 3 == 0 else -8, 0)
            b = a * np.exp(rng.normal() * 10 ** rng.uniform(-4, 1.5))
            left = 10 ** rng.uniform(-13, 1)
            exact = weighed_mistakes(mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(left))
            worst = max(worst, float(abs(mpmath.mpf(float(kinds.mistakes(a, b, left))) / exact - 1)))
    assert worst < SPARE / 4 * UNIT


def test_sums_are_off_by_no_more_than_stated() -> None:
    """Against fractions of whole numbers, after 60 answers."""
    rng = np.random.default_rng(1)
    worlds = draw_worlds(6, 8, rng)
    posterior, exact = Posterior.uniform(8), [Fraction(1, 8)] * 8
    for _ in range(60):
        cells = cells_of(rng.standard_normal(8), 1.0)
        likely = np.flatnonzero(cells.counts.min(axis=0))
        cell = int(rng.choice(likely))
        posterior = posterior.after(cells, cell)
        exact = [weight * int(count) for weight, count in zip(exact, cells.counts[:, cell], strict=True)]
    cells = cells_of(rng.standard_normal(8), 1.0)
    ((_, prospect),) = prospects(worlds, posterior, cells)
    masks = worlds.masks()
    total, found = sum(exact), 0.0
    for unit in range(6):
        for cell in range(len(cells.values)):
            pairs = zip(exact, cells.counts[:, cell], masks[:, unit], strict=True)
            share = sum((w * int(c) for w, c, inside in pairs if inside), Fraction(0)) / total / SCALE
            if share:
                found = max(found, abs(float(Fraction(float(prospect.inside[cell, unit])) / share - 1)))
    assert UNIT / 8 < found < prospect.rounding


def test_a_session_ends_when_rounding_has_used_up_its_reserve() -> None:
    engine = engine_of(pool(16, 6))
    question = np.zeros(16), 1.0
    assert engine.price(engine.begin(), *question) is not None
    assert engine.price(replace(engine.begin(), lost=RESERVE), *question) is None


def best_of_all(view: View, joint: np.ndarray, questions: Any, depth: int) -> float:
    """The largest success of any analyst who asks such questions: the best next one after every answer, or none."""
    members = view.members
    best = max(joint[members].sum(), joint[~members].sum())
    if not depth or best == joint.sum():
        return float(best)
    for outputs, noise in questions:
        priced = view.engine.price(view.state, outputs, noise)
        if priced is None:
            continue
        found = 0.0
        for cell, law in branches(priced.cells.counts / SCALE, joint):
            after = replace(view, state=view.engine.after(view.state, priced, cell))
            found += best_of_all(after, joint * law, questions, depth - 1)
        best = max(best, found)
    return float(best)


def test_no_analyst_of_all_trees_beats_the_cap_and_the_best_nearly_reaches_it() -> None:
    """Every way to ask up to three of these questions, in all subsets of three people: 16 or more branches each."""
    engine = engine_of(all_coins(3), reach=0.5)
    masks = engine.worlds.masks()
    direct, other = masks[:, 0].astype(float), (masks[:, 0] ^ masks[:, 1]).astype(float)
    world = np.eye(8)[7]
    questions = [(direct, 2.0), (direct, 3.5), (other, 1.0), (world, SHARP), (direct + 2 * world, 3.0)]
    joint = np.full(8, 1 / 8)
    first = View(engine, engine.begin(), masks=masks, weights=joint, target=0)
    found = best_of_all(first, joint, questions, 3)
    assert 0.595 < found <= CAP


@pytest.mark.parametrize("rate", [0.25, 0.75])
def test_at_other_rates_the_balanced_success_is_capped(rate: float) -> None:
    worlds = draw_worlds(8, 16, np.random.default_rng(0), rate=rate)
    ends = leaves(engine_of(worlds), lambda view: (view.members.astype(float), 3.5), 0, 4)
    balanced = 0.5 + sum(abs(a / rate - b / (1 - rate)) for a, b in ends) / 4
    assert 0.58 < balanced <= CAP


def certain(view: View) -> Any:
    """A few worlds with the target, exactly: a claim that is never wrong."""
    return _largest(view, 1.0)


def certain_out(view: View) -> Any:
    return _largest(view, 0.0)


def _largest(view: View, side: float) -> Any:
    for size in range(12, 0, -1):
        outputs = np.zeros(len(view.weights))
        outputs[np.flatnonzero(view.members == side)[:size]] = 1
        if view.engine.price(view.state, outputs, SHARP):
            return outputs, SHARP
    return None


BOTH = [lc.membership(CAP), lc.true_positive_rate(0.01, 0.08)]


@pytest.mark.parametrize("analyst", [certain, certain_out])
def test_a_cap_on_true_positives_needs_its_own_clock(analyst: Any) -> None:
    worlds = pool(64, 6)

    def rates(caps: Any) -> float:
        ends = leaves(engine_of(worlds, caps, reach=REACH), analyst, 0, 1)
        return recognised(ends if analyst is certain else [(b, a) for a, b in ends], 0.01)

    assert rates(BOTH) <= 0.08
    assert rates(BOTH[:1]) > 0.15, "planted: membership alone leaves certainty with probability 2 cap - 1"


def test_a_cap_on_true_positives_is_reached() -> None:
    worlds = pool(16, 6)
    ends = leaves(engine_of(worlds, [lc.true_positive_rate(0.05, 0.1)], reach=0.5), spender, 0, 3)
    assert 0.085 < recognised(ends, 0.05) <= 0.1


def spender(view: View) -> Any:
    return view.members.astype(float), 2.8 * 1.2**view.refusals


def test_information_about_one_person_adds_up() -> None:
    rule = Clocks([InformationClock.at(0.02, 0.5)])
    engine = ListedWorlds(pool(16, 6), rule, 1.0)
    ends = leaves(engine, lambda view: (view.members.astype(float), 3.0 * 1.3**view.refusals), 0, 4)
    told = np.log(2) - sum((a + b) * entropy(a / (a + b)) for a, b in ends)
    assert 0.015 < told <= 0.02


def entropy(q: float) -> float:
    return -sum(p * np.log(p) for p in (q, 1 - q) if p)


def test_a_cap_that_is_raised_is_kept_and_added_starts_are_not() -> None:
    """Clocks that were gambled away: nothing is known, nothing is left. Added starts would be worth too much."""
    low, high = 0.55, 0.6
    engine = engine_of(all_coins(6), [lc.membership(low)], reach=REACH)
    (clock,) = engine.rule.potentials
    extra = round((MembershipClock.at(high, 0.5).start / clock.start - 1) * TICKS)
    successes = {}
    for name in ("raised", "added"):

        def analyst(view: View, name: str = name) -> Any:
            if view.step == 0:
                return set_splitting(view)
            if view.step == 1:
                shares = engine.shares(view.state)
                right = raised(clock, shares, view.state.clocks[0], high - low)
                wrong = view.state.clocks[0] + extra
                view.state.clocks[0] = right if name == "raised" else wrong
            return strongest(view)

        successes[name] = success(leaves(engine, analyst, 0, 2))
    assert 0.59 < successes["raised"] <= high
    assert successes["added"] > high + 0.01


def strongest(view: View) -> Any:
    """The least noise at which the target's clock pays; others hardly show in the target's own bit."""
    outputs = view.members.astype(float)
    for noise in np.geomspace(1.5, 20, 60):
        if view.engine.price(view.state, outputs, noise):
            return outputs, float(noise)
    return None


@pytest.mark.parametrize(
    "cap",
    [
        lc.name_a_member(0.6),
        lc.identification(0.1),
        lc.any_inference(0.1, 0.2),
        lc.precision(0.1, 0.7),
        lc.mutual_information(0.1),
        lc.task(np.eye(4), 0.5),
        lc.pool_membership(0.55),
    ],
)
def test_other_caps_are_refused_with_a_way_on(cap: Any) -> None:
    with pytest.raises(CapError, match=r"use"):
        potentials_of([cap], 0.5)


@pytest.mark.parametrize("cap", [lc.membership(0.50000001), lc.membership(1.0), lc.true_positive_rate(0.1, 1.0)])
def test_caps_that_no_clock_can_keep_are_refused(cap: Any) -> None:
    with pytest.raises(CapError, match="choose"):
        potentials_of([cap], 0.5)
    with pytest.raises(CapError, match="needs a cap"):
        potentials_of([], 0.5)


class Stale(ListedWorlds):
    """Planted: prices by the posterior before the first answer."""

    def price(self, state: Any, outputs: Any, noise: float) -> Any:
        fresh = self.begin()
        return super().price(replace(state, fraction=fresh.fraction, power=fresh.power), outputs, noise)


def one_pair(view: View) -> Any:
    """Which pair of complementary worlds it is tells about nobody; then one world of that pair."""
    m = len(view.weights)
    if view.step == 0:
        return (np.arange(m) % (m // 2)).astype(float), SHARP
    return np.eye(m)[int(view.weights.argmax())], SHARP


def test_prices_follow_the_posterior_and_stale_ones_are_caught() -> None:
    engine = engine_of(pool(16, 6), reach=REACH)
    assert success(leaves(engine, one_pair, 0, 2)) <= CAP
    planted = Stale(engine.worlds, engine.rule, engine.reach)
    assert success(leaves(planted, one_pair, 0, 2)) > 0.95


def test_refusals_and_prices_do_not_depend_on_the_secret() -> None:
    """Same history, other secret: the price is a function that is not even told the secret."""
    engine = engine_of(pool(16, 6))
    state, question = engine.begin(), (engine.worlds.masks()[:, 0].astype(float), 3.0)
    first = engine.price(state, *question)
    assert first is not None
    one, two = (engine.after(state, first, 2) for _ in range(2))
    assert (engine.price(one, *question).charges == engine.price(two, *question).charges).all()
