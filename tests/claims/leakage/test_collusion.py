"""Attackers who were told some memberships: sampled figures against quadrature over every set they might be told."""

from __future__ import annotations

import numpy as np
import pytest

import leakcap as lc
from leakcap.leakage import collusion
from leakcap.leakage.collusion import known_sizes, known_wagers, observe_known
from leakcap.leakage.confidence import log_term, upper
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import draw_worlds
from tests.claims.leakage.plane import Plane

SIGMAS = 5.0  # two-sided 6e-7 for each comparison; about fifty of them: false alarms below 1e-4
DRAWS = 2**14
TERM = log_term(1e-6, 1)


def game(rate, m, n, seed=0):
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(n, m, rng, rate)
    points = worlds.masks() @ rng.standard_normal((n, 2)) + 0.3 * rng.standard_normal((m, 2))
    return worlds, 1.2 * (points - points.mean(axis=0)) / points.std()


def standard_errors_off(mean, truth):
    return np.abs(mean.estimate - truth) / np.sqrt(mean.variance / mean.draws)


GAMES = {"halves": (1 / 2, 16, 6), "thirds": (1 / 3, 15, 6), "two thirds": (2 / 3, 15, 6)}


@pytest.mark.parametrize("name", GAMES)
def test_success_given_known_memberships_equals_brute_force(name):
    worlds, points = game(*GAMES[name])
    brute = Plane(points, worlds.masks(), step=0.1)
    for k in known_sizes(worlds.m, worlds.n):
        mean = observe_known(Sampled(points, DRAWS, np.random.SeedSequence(k)), worlds, k)
        truth = brute.known(k)
        # 1e-4 for the step of the quadrature.
        assert (np.abs(mean.estimate - truth) <= SIGMAS * np.sqrt(mean.variance / mean.draws) + 1e-4).all()
        # Who was told about is skipped: a unit counts in a share 1 - k/n of the draws.
        expected, spread = DRAWS * (1 - k / worlds.n), np.sqrt(DRAWS * k / worlds.n * (1 - k / worlds.n))
        assert (np.abs(mean.draws - expected) <= SIGMAS * spread).all()


def test_a_planted_attacker_who_is_told_one_fewer_is_caught(monkeypatch):
    """One of the told units comes twice: the sampled figure is that of a weaker attacker."""
    worlds, points = game(*GAMES["halves"])

    def repeats(n, rows, k, rng):
        told = rng.random((rows, n)).argpartition(k - 1, axis=1)[:, :k]
        told[:, 0] = told[:, 1]
        return told

    monkeypatch.setattr(collusion, "_distinct", repeats)
    mean = observe_known(Sampled(points, DRAWS, np.random.SeedSequence(1)), worlds, 3)
    assert (standard_errors_off(mean, Plane(points, worlds.masks(), step=0.1).known(3)) > SIGMAS).any()


def wagered(k):
    """Bounds by wagers for the six units of a game, of whom `k` are told in each draw, and the truth."""
    worlds, points = game(*GAMES["halves"])
    pilot = observe_known(Sampled(points, 512, np.random.SeedSequence(k)), worlds, k)
    stakes = known_wagers(pilot, worlds.rate, DRAWS, TERM)
    mean = observe_known(Sampled(points, DRAWS, np.random.SeedSequence(k + 10)), worlds, k, wagers=stakes)
    return upper(mean, TERM), Plane(points, worlds.masks(), step=0.1).known(k)


@pytest.mark.parametrize("k", [1, 3])
def test_wagers_bound_success_given_known_memberships(k):
    """Although the draws that tell about a unit, a sixth or half of all, do not count for it."""
    bound, truth = wagered(k)
    assert (bound >= truth).all() and (bound <= truth + 0.05).all()


def test_planted_draws_that_tell_about_a_unit_and_count_for_it_are_caught(monkeypatch):
    original = collusion._capital_left
    monkeypatch.setattr(collusion, "_capital_left", lambda off, wagers, told: original(off, wagers, 0 * told))
    bound, truth = wagered(3)
    assert (bound < truth).all()


def test_a_planted_noise_that_is_five_per_cent_off_is_caught():
    worlds, points = game(*GAMES["halves"])
    mean = observe_known(Sampled(points, 2**16, np.random.SeedSequence(1)), worlds, 2)
    assert (standard_errors_off(mean, Plane(points / 0.95, worlds.masks(), step=0.1).known(2)) > SIGMAS).any()


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("n", [10, 300])
def test_sets_that_are_told_are_uniform_and_without_repeats(k, n):
    """Both ways of drawing them; every unit is told equally often, to five standard errors."""
    rows = 20_000
    told = collusion._distinct(n, rows, k, np.random.default_rng(k * n))
    assert (np.diff(np.sort(told, axis=1), axis=1) > 0).all()
    counts = np.bincount(told.ravel(), minlength=n)
    expected = rows * k / n
    assert np.abs(counts - expected).max() <= SIGMAS * np.sqrt(expected)


def test_worlds_are_drawn_freely_although_the_source_deals_them_in_turn(monkeypatch):
    """Sixteen draws in turn would visit all sixteen worlds; sixteen free draws do so once in a million times."""
    worlds, points = game(*GAMES["halves"])
    seen, original = [], Sampled.view

    def spy(self, block):
        view = original(self, block)
        seen.append(len(set(view.world.tolist())))
        return view

    monkeypatch.setattr(Sampled, "view", spy)
    source = Sampled(points, 16, np.random.SeedSequence(0))
    observe_known(source, worlds, 2)
    assert seen[-1] < 16
    source.view(0)
    assert seen[-1] == 16


@pytest.mark.parametrize("name", GAMES)
def test_the_exact_figures_grow_with_what_is_told(name):
    worlds, points = game(*GAMES[name])
    brute = Plane(points, worlds.masks(), step=0.12)
    assert np.allclose(brute.known(0), brute.membership())
    figures = np.array([brute.known(k) for k in range(worlds.n)])
    assert (np.diff(figures, axis=0) >= -1e-9).all()


@pytest.fixture(scope="module")
def planned():
    """Ten units in 64 worlds: 4 memberships are not measured, 5 are."""
    X = np.random.default_rng(3).standard_normal((10, 2))
    plan = lc.plan(lambda X: X.mean(axis=0), X, cap=lc.membership(0.62), worlds=64, seed=5, draws=4096)
    points = (plan.outputs - plan.outputs.mean(axis=0)) @ np.linalg.pinv(plan.noise.factor).T
    brute = Plane(points, plan.worlds.masks(), step=0.2)
    return plan.certificate, {k: brute.known(k).max() for k in range(7)}


def test_success_does_not_fall_with_the_number_known(planned):
    certificate, truth = planned
    given = [certificate.given(k) for k in range(10)]
    assert (np.diff(given) >= 0).all()
    assert (np.diff(list(truth.values())) >= -1e-9).all()
    for k, exact in truth.items():
        assert exact <= given[k] + 1e-4  # the quadrature's step
    assert certificate.given(4) == certificate.given(5)  # not measured itself
    assert certificate.given(7) == 1  # beyond what was measured nothing is promised


def test_a_planted_answer_from_the_next_smaller_number_is_beaten(planned):
    certificate, truth = planned
    measured = dict(certificate.known_memberships)
    assert 4 not in measured
    assert truth[5] > measured[3]  # five known, answered with the figure for three


# ---- how many worlds are left -------------------------------------------------------------------------------------


def left_over(masks, k, tries, rng):
    """How many worlds agree with a random one on `k` random units, itself included."""
    m, n = masks.shape
    found = np.empty(tries, dtype=int)
    for i in range(tries):
        told = rng.choice(n, k, replace=False)
        world = rng.integers(m)
        found[i] = (masks[:, told] == masks[world, told]).all(axis=1).sum()
        assert k == 0 or not (masks[(world + m // 2) % m, told] == masks[world, told]).any()  # the complement is out
    return found


def test_known_memberships_leave_about_m_over_two_to_the_k_worlds():
    """Five standard errors of a Poisson count each: false alarms below 1e-5."""
    rng = np.random.default_rng(0)
    for k in (1, 3, 5):
        # Independent fair memberships: exactly (m - 2)/2^k besides the secret world, on average over designs.
        found = []
        for _ in range(400):
            first = rng.random((32, 12)) < 0.5
            found.append(left_over(np.concatenate([first, ~first]), k, 4, rng).mean() - 1)
        assert abs(np.mean(found) - 62 / 2**k) <= SIGMAS * np.std(found) / 20
        assert abs(np.mean(found) - 62 / 2 ** (k - 1)) > SIGMAS * np.std(found) / 20  # the planted fault: off by one
    halves = draw_worlds(400, 1024, rng).masks()
    ten = left_over(halves, 10, 3000, rng)
    assert ten.mean() == pytest.approx(2.0, abs=SIGMAS / np.sqrt(3000) + 0.02)
    sixteen = left_over(halves, 16, 3000, rng)
    assert (sixteen == 1).mean() == pytest.approx(0.984, abs=SIGMAS * np.sqrt(0.984 * 0.016 / 3000) + 0.002)


@pytest.mark.parametrize(("m", "n"), [(2, 4), (8, 3), (16, 6), (64, 10), (1000, 50), (1024, 50), (16384, 10**6)])
def test_numbers_that_are_measured_end_where_one_world_is_left(m, n):
    sizes = known_sizes(m, n)
    assert all(2**k <= m and k < n for k in sizes)
    last = m.bit_length() - 1
    assert last >= n or max(sizes) == last
    assert list(sizes) == sorted(set(sizes))
