"""Bounds from draws fail no more often than they may, for laws chosen to make them fail; weaker ones are caught.

Thousands of experiments each. A test raises a false alarm when more bounds fail than the 1 - 1e-5 quantile of a
binomial with the allowed probability.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

from leakcap.leakage import confidence
from leakcap.leakage.collusion import _distinct
from leakcap.leakage.confidence import Attempts, MeanEstimate, forecast, log_term, upper
from leakcap.leakage.posterior import Sampled

FALSE_ALARM = 1e-5


def too_many(failures, gamma):
    return failures.sum() > binom.isf(FALSE_ALARM, failures.size, gamma)


# ---- one bound ----------------------------------------------------------------------------------------------------
# A law gives, for `runs` experiments of `k` draws, sums of values and squares; its expectation; and its range.


def bernoulli(p):
    def draw(k, runs, rng):
        hits = rng.binomial(k, p, size=runs).astype(float)
        return hits, hits

    return draw, p, 1.0


def two_values(low, high, p):
    def draw(k, runs, rng):
        hits = rng.binomial(k, p, size=runs)
        return hits * high + (k - hits) * low, hits * high**2 + (k - hits) * low**2

    return draw, p * high + (1 - p) * low, high - low


def power(a):
    def draw(k, runs, rng):
        values = rng.random((runs, k)) ** a
        return values.sum(axis=1), (values**2).sum(axis=1)

    return draw, 1 / (a + 1), 1.0


LAWS = {
    "coin": (bernoulli(0.5), 2, 3, 10, 2000, 10**6),
    "rare": (bernoulli(0.01), 2, 50, 200, 5000),
    "very rare": (bernoulli(1e-4), 100, 10**4, 10**5),
    "rarely less": (bernoulli(0.98), 10, 100, 5000),
    "off the origin": (two_values(0.5, 0.9, 0.03), 20, 300, 10**5),
    "uniform": (power(1.0), 2, 10, 200),
    "skewed": (power(12.0), 10, 100, 400),
}


def failures(law, k, gamma, rng, runs=20_000, rounding=0.0, bound=upper):
    draw, mean, span = law
    total, squares = draw(k, runs, rng)
    found = MeanEstimate.from_sums(total, squares, k, span, rounding)
    # Arithmetic errors all in the dangerous direction, as large as stated.
    found = MeanEstimate(found.estimate - rounding, found.variance, found.draws, found.span, rounding)
    return bound(found, log_term(gamma, 1)) < mean - 1e-12


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.01])
def test_bounds_fail_no_more_often_than_gamma_allows(name, gamma):
    law, *counts = LAWS[name]
    rng = np.random.default_rng(int(1000 * gamma))
    for k in counts:
        assert not too_many(failures(law, k, gamma, rng), gamma)
        assert not too_many(failures(law, k, gamma, rng, rounding=1e-3), gamma)


def half_margin(mean, term):
    return (upper(mean, term) + mean.estimate + mean.rounding) / 2


def variance_for_deviation(mean, term):
    range_term = 7 * mean.span * term / (3 * (mean.draws - 1))
    return mean.estimate + mean.rounding + mean.variance * math.sqrt(2 * term) / np.sqrt(mean.draws) + range_term


def no_range_term(mean, term):
    return mean.estimate + mean.rounding + np.sqrt(2 * mean.variance * term / mean.draws)


def no_rounding(mean, term):
    return upper(mean, term) - mean.rounding


@pytest.mark.parametrize(
    ("fault", "name", "k", "rounding"),
    [
        (half_margin, "coin", 10**6, 0.0),
        (half_margin, "off the origin", 10**5, 0.0),
        (variance_for_deviation, "rare", 5000, 0.0),
        (no_range_term, "very rare", 100, 0.0),
        (no_range_term, "rare", 50, 0.0),
        (no_rounding, "coin", 10**6, 0.005),
    ],
)
def test_planted_bounds_that_are_too_small_are_caught(fault, name, k, rounding):
    law = LAWS[name][0]
    assert too_many(failures(law, k, 0.05, np.random.default_rng(1), rounding=rounding, bound=fault), 0.05)


def test_the_bound_is_that_of_maurer_and_pontil():
    mean = MeanEstimate.from_sums(np.array([30.0]), np.array([30.0]), 100, 2.0, 0.25)
    variance = (30 - 30 * 0.3) / 99
    term = math.log(2 / 1e-6)
    expected = 0.3 + 0.25 + math.sqrt(2 * variance * term / 100) + 7 * 2.0 * term / (3 * 99)
    assert upper(mean, log_term(1e-6, 1))[0] == pytest.approx(expected, rel=1e-4)
    assert upper(mean, log_term(1e-6, 1))[0] >= expected  # the variance is raised for its rounding, never lowered
    assert log_term(1e-3, 40) == pytest.approx(math.log(2 * 40 / 1e-3))


def test_an_integral_has_no_margin_and_a_unit_nobody_drew_has_no_bound():
    assert upper(MeanEstimate.exact(np.array([0.4]), 1e-9), 10.0)[0] == 0.4 + 1e-9
    never = MeanEstimate.from_sums(np.zeros(2), np.zeros(2), np.array([0.0, 1.0]), 1.0, 0.0)
    assert np.isinf(upper(never, 10.0)).all()


def test_what_is_not_finite_is_not_bounded():
    with pytest.raises(confidence.NumericalError):
        upper(MeanEstimate.from_sums(np.array([np.nan]), np.array([1.0]), 10, 1.0, 0.0), 1.0)


def test_scaling_and_blurring_keep_a_bound_a_bound():
    mean = MeanEstimate.from_sums(np.array([20.0]), np.array([9.0]), 100, 0.5, 1e-6)
    term = log_term(0.01, 1)
    assert upper(mean.scaled(3.0, 0.5), term)[0] == pytest.approx(0.5 + 3 * upper(mean, term)[0])
    assert upper(mean.blurred(0.1), term)[0] == pytest.approx(0.1 + upper(mean, term)[0])


def test_a_forecast_claims_nothing_but_aims_above():
    """Certifying fresh draws at what was forecast for them mostly succeeds: that is all it is for."""
    rng = np.random.default_rng(0)
    draw = bernoulli(0.3)[0]
    term = log_term(1e-6, 100)
    aimed = forecast(MeanEstimate.from_sums(*draw(4096, 400, rng), 4096, 1.0, 0.0), 8192, term)
    fresh = MeanEstimate.from_sums(*draw(8192, 400, rng), 8192, 1.0, 0.0)
    assert (upper(fresh, term) <= aimed).mean() > 0.95


# ---- stratified draws, random counts ------------------------------------------------------------------------------

POINTS = np.linspace(-3, 3, 6)[:, None]
CHANCE = np.array([0.02, 0.02, 0.05, 0.5, 0.9, 0.98])  # a success in each of six worlds


def worlds_dealt(draws, seed, stratified=True):
    source = Sampled(POINTS, draws, np.random.SeedSequence(seed), stratified)
    return np.concatenate([source.seen(block)[1] for block in range(source.blocks)])


def stratified_failures(deal, draws, gamma, runs=1000):
    """Successes drawn in the worlds that were dealt; the truth is the plain average over worlds."""
    failed = np.zeros(runs, dtype=bool)
    for run in range(runs):
        hits = np.random.default_rng([run, 7]).random(draws) < CHANCE[deal(draws, run)]
        total = np.array([hits.sum()], dtype=float)
        failed[run] = (
            upper(MeanEstimate.from_sums(total, total, draws, 1.0, 0.0), log_term(gamma, 1))[0] < CHANCE.mean()
        )
    return failed


def counted_failures(deal, draws, gamma, runs=1000):
    """The same where each draw counts with probability one half, for a reason that has nothing to do with it."""
    failed = np.zeros(runs, dtype=bool)
    for run in range(runs):
        rng = np.random.default_rng([run, 8])
        told = _distinct(4, draws, 2, rng)
        counts = ~(told == 0).any(axis=1)
        hits = (rng.random(draws) < CHANCE[deal(draws, run)])[counts]
        total = np.array([hits.sum()], dtype=float)
        mean = MeanEstimate.from_sums(total, total, np.array([float(counts.sum())]), 1.0, 0.0)
        failed[run] = upper(mean, log_term(gamma, 1))[0] < CHANCE.mean()
    return failed


def test_bounds_cover_stratified_draws_and_random_counts():
    for draws in (30, 400, 403):  # whole rounds, and rounds that are cut short
        world = worlds_dealt(draws, 1)
        assert (np.bincount(world, minlength=6) >= draws // 6).all()
        assert not too_many(stratified_failures(worlds_dealt, draws, 0.1), 0.1)
        free = lambda draws, seed: worlds_dealt(draws, seed, stratified=False)  # noqa: E731
        assert not too_many(counted_failures(free, draws, 0.1), 0.1)
    # Draws beyond the last whole round choose their world freely: 400 times 3 of them, chi-square, 1e-5.
    rest = np.concatenate([worlds_dealt(9, seed)[6:] for seed in range(400)])
    counts = np.bincount(rest, minlength=6)
    assert chi2.sf(((counts - 200) ** 2 / 200).sum(), 5) > FALSE_ALARM
    # Given which draws count, freely drawn worlds are uniform: 200 experiments, draws that count for unit 0.
    kept = []
    for seed in range(200):
        told = _distinct(4, 40, 2, np.random.default_rng(seed))
        kept.append(worlds_dealt(40, seed, stratified=False)[~(told == 0).any(axis=1)])
    counts = np.bincount(np.concatenate(kept), minlength=6)
    assert chi2.sf(((counts - counts.mean()) ** 2 / counts.mean()).sum(), 5) > FALSE_ALARM


def test_planted_rounds_that_stop_in_the_middle_are_caught():
    """Dealing in turn to the very end favours the first worlds: nine draws visit the quiet ones twice."""
    in_turn = lambda draws, seed: np.arange(draws) % 6  # noqa: E731
    rest = np.concatenate([in_turn(9, seed)[6:] for seed in range(400)])
    counts = np.bincount(rest, minlength=6)
    assert chi2.sf(((counts - 200) ** 2 / 200).sum(), 5) < FALSE_ALARM


def test_planted_stratification_without_conditioning_is_caught():
    """Draws dealt in turn, of which only those of the first half of each round count: unequal shares of the worlds."""

    def first_half(draws, gamma, runs=300):
        failed = np.zeros(runs, dtype=bool)
        for run in range(runs):
            world = worlds_dealt(draws, run)
            counts = np.arange(draws) % 6 < 3
            hits = (np.random.default_rng([run, 9]).random(draws) < CHANCE[world])[counts]
            total = np.array([hits.sum()], dtype=float)
            mean = MeanEstimate.from_sums(total, total, np.array([float(counts.sum())]), 1.0, 0.0)
            failed[run] = upper(mean, log_term(gamma, 1))[0] < CHANCE.mean()
        return failed

    assert too_many(first_half(402, 0.1), 0.1)


def test_a_planted_number_of_draws_chosen_after_seeing_them_is_caught():
    """Stopping where the bound is lowest: a count that depends on the values is no count."""
    rng = np.random.default_rng(3)
    looks = np.unique(np.geomspace(1e3, 1e12, 400).astype(np.int64))
    hits = rng.binomial(np.diff(looks, prepend=0), 0.5, size=(400, len(looks))).cumsum(axis=1).astype(float)
    bounds = upper(MeanEstimate.from_sums(hits, hits, looks.astype(float), 1.0, 0.0), log_term(0.5, 1))
    assert not too_many(bounds[:, -1] < 0.5, 0.5)  # one look, fixed beforehand
    assert too_many(bounds.min(axis=1) < 0.5, 0.5)


# ---- attempts -----------------------------------------------------------------------------------------------------


def test_attempts_share_one_gamma():
    attempts = Attempts(0.25)
    spent = [attempts.next() for _ in range(1000)]
    assert spent == [0.25 / (j * (j + 1)) for j in range(1, 1001)]
    assert attempts.made == 1000
    assert spent[:3] == [0.25 / 2, 0.25 / 6, 0.25 / 12]
    exact = sum(Fraction(1, 4) / (j * (j + 1)) for j in range(1, 1001))
    assert exact == Fraction(1, 4) * Fraction(1000, 1001) < Fraction(1, 4)
    # Somebody who tries until something fails: each attempt fails with its share, whatever happened before.
    rng = np.random.default_rng(0)
    gamma, runs = 0.2, 20_000
    shares = np.array([Attempts(gamma).share(j) for j in range(1, 400)])
    failed = (rng.random((runs, len(shares))) < shares).any(axis=1)
    assert not too_many(failed, gamma)
    assert failed.mean() > 0.8 * gamma  # and nothing is given away


@pytest.mark.parametrize("share", [lambda g, j: g, lambda g, j: g / j, lambda g, j: 2 * g / (j * (j + 1))])
def test_planted_shares_that_spend_gamma_twice_are_caught(share):
    rng = np.random.default_rng(0)
    gamma, runs = 0.2, 20_000
    shares = np.minimum(1, np.array([share(gamma, j) for j in range(1, 400)]))
    assert too_many((rng.random((runs, len(shares))) < shares).any(axis=1), gamma)
