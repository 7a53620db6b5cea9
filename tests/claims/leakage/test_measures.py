"""What is certified about one person, against the best tests and claims found by brute force.

One output: the released grid point has finitely many values, so the best attacker on every rate is a sorted sum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import leakcap as lc
from leakcap.leakage.measures import RATIOS, Observed, balanced_by_information, measure, thresholds
from leakcap.leakage.membership import observe_units
from leakcap.leakage.posterior import Cells
from leakcap.worlds import draw_worlds

STEP = 2.0**-6
GAMES = [(1 / 2, 24, 9), (1 / 3, 24, 9), (2 / 3, 24, 9), (1 / 8, 32, 16)]


class Game:
    """Outputs on a line with one that stands out, noised and rounded to a grid; laws by scipy."""

    def __init__(self, rate, m, n, spread=1.5, seed=2):
        rng = np.random.default_rng(seed)
        self.worlds = draw_worlds(n, m, rng, rate)
        masks = self.worlds.masks()
        value = rng.standard_normal(n)
        value[0] += 3
        self.points = masks @ value
        self.points = spread * (self.points - self.points.mean()) / self.points.std()
        grid = np.arange(np.floor((self.points.min() - 9) / STEP), np.ceil((self.points.max() + 9) / STEP) + 1) * STEP
        high, low = grid[:, None] + STEP / 2 - self.points, grid[:, None] - STEP / 2 - self.points
        mass = np.where(low > 0, norm.sf(low) - norm.sf(high), norm.cdf(high) - norm.cdf(low))
        self.inside = mass @ masks / masks.sum(axis=0)  # law of the grid point given that a unit took part
        self.outside = mass @ ~masks / (~masks).sum(axis=0)
        self.total = mass.mean(axis=1)
        p = mass / m
        self.mi = float((p * np.log(np.maximum(p, 1e-300) / (self.total[:, None] / m + 1e-300))).sum())

    def observed(self, mi):
        source = Cells(self.points, STEP)
        units = observe_units(source, self.worlds, thresholds(self.worlds.rate))
        return Observed(self.worlds.rate, self.worlds.m, mi, units)

    def best_tpr(self, unit, fpr):
        """Neyman-Pearson: accuse on the grid points of largest likelihood ratio until the rate is used up."""
        order = np.argsort(-self.inside[:, unit] / (self.outside[:, unit] + 1e-300))
        return np.interp(
            fpr,
            np.concatenate([[0.0], np.cumsum(self.outside[order, unit])]),
            np.concatenate([[0.0], np.cumsum(self.inside[order, unit])]),
        )

    def best_precision(self, unit, claims):
        """Claim on the grid points of largest posterior until a share `claims` of the releases is used up."""
        q = self.worlds.rate
        order = np.argsort(-self.inside[:, unit] / (self.total + 1e-300))
        right = np.interp(
            claims,
            np.concatenate([[0.0], np.cumsum(self.total[order])]),
            np.concatenate([[0.0], np.cumsum(q * self.inside[order, unit])]),
        )
        return right / claims


def halved_sticks(seen):
    """The planted fault: sticks half as high."""
    sticks = replace(seen.units.sticks, estimate=seen.units.sticks.estimate / 2)
    return replace(seen, units=replace(seen.units, sticks=sticks))


def exact(mean):
    assert not mean.sampled
    return mean.estimate + mean.rounding


FPRS = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.9)
CLAIMS = (0.001, 0.01, 0.05, 0.2, 0.5)


@pytest.mark.parametrize("game", GAMES)
def test_no_test_beats_the_certified_roc(game):
    game = Game(*game)
    units = range(game.worlds.n)
    for ceiling in (game.mi, np.log(game.worlds.m)):  # with and without help from the information
        seen = game.observed(ceiling)
        for fpr in FPRS:
            bound = measure(lc.true_positive_rate(fpr, 0.99), seen, exact)
            best = max(game.best_tpr(unit, fpr) for unit in units)
            assert best <= bound + 1e-12
            # Not by promising nothing: between neighbouring ratios of the fixed grid little is lost.
            if 0.001 <= fpr <= 0.2:
                assert bound <= 1.5 * best + 0.01
    # Tests that are not likelihood ratio tests: accuse below or above a value.
    for turn in (slice(None), slice(None, None, -1)):
        accused, wrong = game.inside[turn].cumsum(axis=0), game.outside[turn].cumsum(axis=0)
        for cell in range(len(accused) // 8, len(accused), len(accused) // 8):
            unit = int(np.argmax(accused[cell] - wrong[cell]))
            if 0 < wrong[cell, unit] < 0.99:
                bound = measure(lc.true_positive_rate(wrong[cell, unit], 1.0), seen, exact)
                assert accused[cell, unit] <= bound + 1e-12


def test_a_planted_roc_with_half_the_sticks_is_beaten():
    game = Game(*GAMES[0])
    seen = halved_sticks(game.observed(np.log(game.worlds.m)))
    bound = measure(lc.true_positive_rate(0.01, 0.99), seen, exact)
    assert max(game.best_tpr(unit, 0.01) for unit in range(game.worlds.n)) > bound


def test_planted_thresholds_of_another_rate_are_beaten():
    """At q = 1/3 the ratio 2 is the threshold 1/2, not 2/3: sticks cut at the thresholds of q = 1/2 are too low."""
    assert np.allclose(thresholds(1 / 3), [r / 3 / (2 / 3 + r / 3) for r in RATIOS])
    assert np.allclose(thresholds(1 / 2), [r / (1 + r) for r in RATIOS])
    game = Game(*GAMES[1])
    units = observe_units(Cells(game.points, STEP), game.worlds, thresholds(1 / 2))
    wrong = Observed(1 / 3, game.worlds.m, np.log(game.worlds.m), replace(units, thresholds=thresholds(1 / 3)))
    bound = measure(lc.true_positive_rate(0.01, 0.99), wrong, exact)
    assert max(game.best_tpr(unit, 0.01) for unit in range(game.worlds.n)) > bound


@pytest.mark.parametrize("game", GAMES)
def test_no_claim_beats_the_certified_precision(game):
    game = Game(*game)
    units = range(game.worlds.n)
    for ceiling in (game.mi, np.log(game.worlds.m)):
        seen = game.observed(ceiling)
        for claims in CLAIMS:
            bound = measure(lc.precision(claims, 0.99), seen, exact)
            best = max(game.best_precision(unit, claims) for unit in units)
            assert best <= bound + 1e-12
            assert bound <= 1.25 * best
            # More frequent claims are covered by the same bound.
            assert max(game.best_precision(unit, min(1.0, 2 * claims)) for unit in units) <= bound + 1e-12


def test_a_planted_precision_with_half_the_sticks_is_beaten():
    game = Game(*GAMES[1])
    seen = halved_sticks(game.observed(np.log(game.worlds.m)))
    bound = measure(lc.precision(0.01, 0.99), seen, exact)
    assert max(game.best_precision(unit, 0.01) for unit in range(game.worlds.n)) > bound


# ---- membership by information ------------------------------------------------------------------------------------


def channel(rate, inside, outside):
    """Information about one bit, and the best balanced success, of a channel with finitely many values."""
    inside, outside = inside / inside.sum(), outside / outside.sum()
    total = rate * inside + (1 - rate) * outside
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = rate * inside * np.log(inside / total), (1 - rate) * outside * np.log(outside / total)
    return float(np.nansum(gain)), 0.5 + np.abs(inside - outside).sum() / 4


laws = st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda p: sum(p) > 1e-3)


@settings(max_examples=300, derandomize=True)
@given(st.floats(0.005, 0.995), laws, laws)
@example(0.5, [1, 0, 0, 0], [0, 1, 0, 0])
@example(0.02, [1, 0, 0, 0], [0, 1, 0, 0])
@example(0.5, [3, 1, 0, 0], [1, 3, 0, 0])  # the symmetric channel attains the bound at 1/2
@example(0.98, [1, 1, 0, 0], [0, 1, 1, 0])
def test_balanced_success_never_beats_the_information_at_any_rate(rate, inside, outside):
    information, success = channel(rate, np.array(inside, float), np.array(outside, float))
    assert success <= balanced_by_information(max(information, 0.0), rate) + 1e-9


def test_the_bound_by_information_is_attained_at_one_half():
    for wrong in (0.05, 0.2, 0.4, 0.49):
        information, success = channel(0.5, np.array([1 - wrong, wrong]), np.array([wrong, 1 - wrong]))
        assert balanced_by_information(information, 0.5) == pytest.approx(success, abs=1e-9)


@pytest.mark.parametrize("game", GAMES)
def test_no_unit_of_a_game_beats_the_information(game):
    game = Game(*game)
    best = 0.5 + np.abs(game.inside - game.outside).sum(axis=0).max() / 4
    assert measure(lc.membership(0.99), Observed(game.worlds.rate, game.worlds.m, game.mi), exact) >= best
    seen = game.observed(np.log(game.worlds.m))
    assert measure(lc.membership(0.99), seen, exact) == pytest.approx(best, abs=1e-9)


def test_the_planted_use_of_the_root_at_one_half_for_other_rates_is_beaten():
    """At q = .02 a full reveal has information .098: the root at prior 1/2 would certify .717 for a success of 1."""
    information, success = channel(0.02, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert success == 1
    assert lc.convert.posterior(information, 0.5) < 0.72
    assert balanced_by_information(information, 0.02) >= 1


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3, 7 / 8])
def test_thresholds_are_where_the_likelihood_ratio_is_reached(rate):
    """Bayes: odds of the posterior over odds of the prior are the likelihood ratio."""
    posterior = thresholds(rate)
    ratios = posterior / (1 - posterior) * (1 - rate) / rate
    assert ratios == pytest.approx(RATIOS)
