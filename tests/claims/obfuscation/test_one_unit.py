"""Bounds for every unit, with confidence: they hold as often as they say, and shortcuts are caught."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pytest
from scipy.stats import binom

from leakcap.errors import CapError, InputError
from leakcap.leakage.confidence import Attempts, log_term
from leakcap.obfuscation import least, one_unit
from leakcap.obfuscation.chi_squares import PairTable, told_apart
from leakcap.obfuscation.least import least_noise
from leakcap.obfuscation.limits import FullColumn
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements, UnitBounds, UnitEffort, certify_units, look_at_units
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs
from tests.claims.obfuscation.brute_force import every_swap, nats_of, truth
from tests.claims.obfuscation.cases import CASES

GAMMA = 0.25
REPEATS = 24  # 16 failures have a chance below 1e-4; bounds that fail nine times in ten are caught all but 3 in 10,000
COARSE = lru_cache(partial(PairTable, cells=32))  # as good a bound, if less tight, at a quarter of the price


@pytest.fixture(scope="module")
def listed():
    """A pool that can be listed: the exact mean over all swaps of every unit, by a finer integral."""
    pool, law = CASES["two classes, one row"]
    swaps = [every_swap(pool, law, 0.2, unit) for unit in range(len(pool))]
    exact = np.array([told_apart(some.wider, some.narrower, 1, cells=256).mean() for some in swaps])
    nats = np.array([nats_of(some, 0.5) for some in swaps]).T
    return Obfuscated(pool, law, 0.2), exact, nats


def failures(listed, repeats, gamma, shift=0.0):
    """In how many repeats some unit's bound lies below its exact mean."""
    obfuscated, exact, _ = listed
    rng = np.random.default_rng(11)
    effort, wrong = UnitEffort(pilot=4, draws=40), 0
    for _ in range(repeats):
        bounds = certify_units(obfuscated, effort=effort, gamma=gamma, rng=rng, alarms=())
        wrong += bool((2 * (bounds.success - 0.5) + shift < exact).any())
    return wrong


def test_bounds_of_all_units_hold_as_often_as_they_say(listed):
    """False alarm: below 1e-4."""
    assert failures(listed, REPEATS, GAMMA) <= binom.isf(1e-4, REPEATS, GAMMA)


def test_planted_plain_means_are_caught(listed):
    """Without a margin some unit of eight is below its mean almost always."""
    obfuscated, exact, _ = listed
    rng = np.random.default_rng(12)
    wrong = sum((look_at_units(Statements(obfuscated), 40, rng).mean[0] < exact).any() for _ in range(REPEATS))
    assert wrong > binom.isf(1e-4, REPEATS, GAMMA)


@pytest.mark.slow
def test_coverage_over_two_thousand_repeats(listed):
    assert failures(listed, 2000, GAMMA) <= binom.isf(1e-4, 2000, GAMMA)


def test_every_bound_is_above_the_exact_mean_and_the_truth(listed):
    obfuscated, exact, nats = listed
    found = truth(obfuscated.pool, obfuscated.law, 0.2, (1.0,))
    effort = UnitEffort(pilot=16, draws=600, swaps=2)
    bounds = certify_units(obfuscated, effort=effort, gamma=1e-6, rng=np.random.default_rng(13), nats=True)
    assert (bounds.success >= 0.5 + 0.5 * exact).all() and (bounds.success >= 0.5 + 0.5 * found.tv).all()
    assert (bounds.nats >= nats).all() and (bounds.nats[0] >= found.nats).all()
    assert bounds.mean_success >= 0.5 + 0.5 * exact.mean()
    assert bounds.mean_success <= bounds.success.mean() and bounds.worst == bounds.success.max()
    assert (bounds.recognised >= np.array(bounds.alarms)[:, None]).all()
    assert bounds.worst < 0.5 + 0.5 * exact.max() + 0.03


def test_no_test_recognises_more_than_certified(listed):
    """The best test of the attacker at each rate of false alarms, from the densities themselves."""
    obfuscated, _, _ = listed
    weights = np.exp(np.linspace(-3, 5, 60))
    found = truth(obfuscated.pool, obfuscated.law, 0.2, tuple(weights))
    effort = UnitEffort(pilot=16, draws=400)
    bounds = certify_units(obfuscated, effort=effort, gamma=1e-6, rng=np.random.default_rng(14), alarms=(0.05, 0.01))
    for place, alarm in enumerate(bounds.alarms):
        best = np.min([weight * alarm + found.sticks[weight] for weight in weights], axis=0)
        assert (bounds.recognised[place] >= best - 1e-6).all()


def test_what_a_test_finds_is_its_hockey_stick_and_its_false_alarms(monkeypatch):
    """Where every swap tells the same: `P(A) <= weight Q(A) + stick`, and hardly more is stated."""
    seen = []

    def constant(statements, rng, *, swaps, units=None):
        seen[:] = statements.weights
        return np.full((len(statements.weights), len(statements.obfuscated.pool)), 0.1)

    monkeypatch.setattr(Statements, "of_draw", constant)
    effort, rng = UnitEffort(draws=2000), np.random.default_rng(1)
    bounds = certify_units(some_obfuscated(0.3), effort=effort, gamma=0.01, rng=rng, alarms=(0.2, 0.05))
    for weight, alarm, found in zip(seen[1:], bounds.alarms, bounds.recognised, strict=True):
        assert (found >= weight * alarm + 0.1).all() and (found < weight * alarm + 0.14).all()


def test_both_kinds_of_draws_agree_with_listing_all():
    """Means over 1,500 draws, in which every unit is now inside and now outside: within six of their errors."""
    pool, law = CASES["two classes, one row"]
    pool = 0.1 * pool
    pool[0] *= 10  # a long row among short ones: with it numbers are larger, so the two laws are not alike
    weight, rng = 2.0, np.random.default_rng(15)
    statements = Statements(Obfuscated(pool, law, 0.1), (weight,))
    values = np.array([statements.of_draw(rng, swaps=1)[0, 0] for _ in range(1500)])
    swaps = every_swap(pool, law, 0.1, 0)
    exact = PairTable(1, weight)(swaps.wider, swaps.narrower).mean()
    turned = PairTable(1, weight)(swaps.narrower, swaps.wider).mean()
    error = values.std() / np.sqrt(1500)
    assert abs(values.mean() - exact) < 6 * error
    assert abs(turned - exact) / 2 > 8 * error  # planted: half of the draws the wrong way round would show


def test_every_statement_about_every_unit_is_counted(monkeypatch):
    """Three statements for each unit and the mean of all, in both stages; the stages share gamma."""
    asked = []

    def counted(gamma, bounds):
        asked.append((gamma, bounds))
        return log_term(gamma, bounds)

    monkeypatch.setattr(one_unit, "log_term", counted)
    obfuscated, rng = some_obfuscated(0.3), np.random.default_rng(16)
    certify_units(obfuscated, effort=UnitEffort(draws=5, again=5), gamma=1e-3, rng=rng, cap=0.51)
    everybody = len(obfuscated.pool)
    assert asked == [(5e-4, 3 * everybody + 1), (5e-4, 3 * everybody + 1)]


def test_what_rare_columns_tell_is_added(monkeypatch, listed):
    """With every column called rare, nothing is left of the values, and everything may be told."""
    monkeypatch.setattr(one_unit, "full_column", lambda law: FullColumn(0.0, 0.3))
    bounds = certify_units(
        listed[0], effort=UnitEffort(pilot=2, draws=3), gamma=1e-3, rng=np.random.default_rng(17), alarms=()
    )
    assert (bounds.success >= 0.65).all() and bounds.mean_success >= 0.65


def some_obfuscated(noise):
    rng = np.random.default_rng(2)
    pool = rng.normal(size=(90, 8))
    pool /= np.linalg.norm(pool, axis=1)[:, None]
    law = MixingLaw(np.repeat(np.arange(3), 30), 12, 6, all_class_pairs(3, 2), 20)
    return Obfuscated(pool, law, noise)


@pytest.fixture
def coarse(monkeypatch):
    """For tests in which bounds are compared with what was seen of all units of a larger pool."""
    monkeypatch.setattr(one_unit, "pair_table", COARSE)


@pytest.mark.usefixtures("coarse")
def test_few_are_looked_at_again_and_none_gets_worse():
    obfuscated, effort = some_obfuscated(0.3), UnitEffort(draws=150)
    seen = look_at_units(Statements(obfuscated), 200, np.random.default_rng(5)).mean[0]
    cap = 0.5 + 0.5 * float(seen.max()) + 0.03
    once = certify_units(obfuscated, effort=effort, gamma=1e-3, rng=np.random.default_rng(6), cap=cap)
    again = UnitEffort(draws=150, again=1200)
    twice = certify_units(obfuscated, effort=again, gamma=1e-3, rng=np.random.default_rng(6), cap=cap)
    assert once.worst > cap >= twice.worst
    assert (2 * twice.success - 1 >= seen - 0.02).all()
    assert 0 < twice.again < 1200  # stops as soon as the cap is kept


@pytest.mark.usefixtures("coarse")
def test_it_stops_on_the_width():
    obfuscated, rng = some_obfuscated(0.5), np.random.default_rng(9)
    bounds = certify_units(obfuscated, effort=UnitEffort(draws=2000), gamma=1e-3, rng=rng, width=0.05, alarms=())
    assert bounds.draws < 1000 and bounds.draws % one_unit.LOOK_EVERY == 0
    seen = look_at_units(Statements(obfuscated), 200, rng).mean[0]
    assert (2 * bounds.success - 1 >= seen - 0.01).all()


@pytest.mark.usefixtures("coarse")
def test_the_least_noise_keeps_its_cap_and_is_not_far_above_need():
    rng, attempts = np.random.default_rng(7), Attempts(1e-3)
    found = least_noise(some_obfuscated(0.05), 0.62, effort=UnitEffort(draws=600), attempts=attempts, rng=rng)
    assert found.bounds.worst <= 0.62
    assert found.gamma == pytest.approx(sum(1e-3 / (j * (j + 1)) for j in range(1, found.attempts + 1)))
    assert attempts.made == found.attempts
    halved = look_at_units(Statements(found.obfuscated.with_noise(found.obfuscated.noise_std * 0.75)), 100, rng)
    assert 0.5 + 0.5 * halved.mean[0].max() > 0.62


def test_what_exceeds_the_cap_about_one_row_is_certified_again_with_more_noise(monkeypatch):
    """The average does not decide, and every certification has a share of the failure probability of its own."""
    asked, worst = [], iter([0.7, 0.63, 0.61])

    def bounds(release, *, gamma, **more):
        asked.append((release.noise_std, gamma))
        success = np.full(len(release.pool), 0.52)
        success[5] = next(worst)
        return UnitBounds(success, success[None], None, 0.52, (0.01,), draws=1, again=0, gamma=gamma)

    monkeypatch.setattr(least, "certify_units", bounds)
    monkeypatch.setattr(least, "likely_noise", lambda release, cap, **more: 0.1)
    effort, rng = UnitEffort(draws=20), np.random.default_rng(8)
    found = least_noise(some_obfuscated(0.5), 0.62, effort=effort, attempts=Attempts(1e-3), rng=rng)
    noises, gammas = zip(*asked, strict=True)
    assert gammas == pytest.approx([1e-3 / 2, 1e-3 / 6, 1e-3 / 12]) and found.gamma == pytest.approx(sum(gammas))
    assert 0.1 == noises[0] < noises[1] < noises[2] == found.obfuscated.noise_std and found.attempts == 3


def test_draws_that_place_the_wagers_certify_nothing(monkeypatch):
    """No draw is used for two things: neither by the pilots, nor by either stage."""
    drawn = []

    def noted(statements, rng, *, swaps, units=None):
        drawn.append(rng.random())
        return np.full((len(statements.weights), len(statements.obfuscated.pool) if units is None else len(units)), 0.1)

    monkeypatch.setattr(Statements, "of_draw", noted)
    effort = UnitEffort(pilot=3, draws=16, again=16)
    certify_units(some_obfuscated(0.3), effort=effort, gamma=1e-3, rng=np.random.default_rng(9), cap=0.51)
    assert len(drawn) == 3 + 3 + 16 + 16 == len(set(drawn))


@pytest.mark.parametrize(("cap", "error"), [(0.5, InputError), (0.4, InputError), (0.500001, CapError)])
def test_caps_that_nothing_can_keep_are_refused(cap, error):
    rng = np.random.default_rng(8)
    with pytest.raises(error):
        least_noise(some_obfuscated(0.5), cap, effort=UnitEffort(draws=20), attempts=Attempts(1e-3), rng=rng)
