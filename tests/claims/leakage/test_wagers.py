"""The bound by wagers fails no more often than it may, through the compiled loop that certificates use.

Each experiment is one column of a panel: the loop takes columns for units. A test raises a false alarm when more of
20,000 bounds fail than the 1 - 1e-6 quantile of a binomial with the allowed probability.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from leakcap.leakage._loops import wager_panel
from leakcap.leakage.certify import PILOT
from leakcap.leakage.confidence import MeanEstimate, Wagers, forecast, log_term, upper
from leakcap.leakage.measures import thresholds
from leakcap.leakage.membership import UnitWagers, evidence, observe_units, unit_columns
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import draw_worlds

RUNS = 20_000
NO_CUTS = np.empty(0, np.float32)


def too_many(failed, gamma):
    return failed.sum() > binom.isf(1e-6, failed.size, gamma)


def capital_of(values, wagers):
    """What `values` (draws x experiments) leave of each wager, by the loop of the certificates."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    capital = np.zeros((1, values.shape[1]))
    rows = (np.ascontiguousarray(wagers.base[None]), np.ascontiguousarray(wagers.stake[None]))
    for start in range(0, len(values), 512):
        panel = values[start : start + 512]
        wager_panel(panel, NO_CUTS, *rows, capital, np.zeros(len(panel)))
    return capital[0]


@pytest.mark.parametrize("draws", [1, 2, 3, 4, 5, 31, 33, 255, 258, 511])
def test_every_release_is_wagered_on_whatever_their_number(draws):
    """The loop takes four releases at a time: those that are left over count like the others."""
    rng = np.random.default_rng(draws)
    values = rng.uniform(-0.5, 0.5, size=(draws, 7)).astype(np.float32)
    cuts = np.array([-0.1, 0.2], np.float32)
    base, stake = (rng.uniform(low, high, size=(3, 7)).astype(np.float32) for low, high in ((1, 1.2), (0.1, 0.9)))
    capital, best = np.zeros((3, 7)), np.full(draws, -np.inf)
    wager_panel(values, cuts, base, stake, capital, best)
    seen = np.stack([np.abs(values), *(np.maximum(values - cut, 0) for cut in cuts)]).astype(np.float64)
    plain = np.log(base[:, None].astype(float) - stake[:, None].astype(float) * seen).sum(axis=1)
    assert capital == pytest.approx(plain, abs=1e-6 * draws)
    assert np.array_equal(best, values.max(axis=1))


def bounds(values, pilot, most, gamma, *, draws=None, rounding=0.0):
    """Upper bounds from `values`, with stakes placed by other draws (`pilot`)."""
    k = len(values)
    term = log_term(gamma, 1)
    mean, variance = pilot.mean(axis=0), pilot.var(axis=0)
    wagers = Wagers.placed(mean, variance, most, k, term)
    capital = capital_of(values, wagers)
    found = MeanEstimate.from_wagers(capital, wagers, variance=variance, draws=draws or k, rounding=rounding)
    return upper(found, term)


# A law draws values in single precision and says its expectation and its largest value.
def half_normal(rng, shape):
    return np.minimum(np.abs(0.05 * rng.standard_normal(shape)), 0.5).astype(np.float32)


def rare(rng, shape):
    return (0.5 * (rng.random(shape) < 1e-3)).astype(np.float32)


def coin(rng, shape):
    return (0.5 * (rng.random(shape) < 0.5)).astype(np.float32)


def rarely_less(rng, shape):
    return (0.5 * (rng.random(shape) < 0.99)).astype(np.float32)


def skewed(rng, shape):
    return (0.5 * rng.random(shape) ** 12).astype(np.float32)


T = 0.5 / 0.05
LAWS = {
    "half-normal": (half_normal, 0.05 * (2 * norm.pdf(0) - 2 * norm.pdf(T)) + 0.5 * 2 * norm.sf(T)),
    "rare": (rare, 0.5e-3),
    "coin": (coin, 0.25),
    "rarely less": (rarely_less, 0.495),
    "skewed": (skewed, 0.5 / 13),
}


@pytest.mark.parametrize("gamma", [0.05, 0.001])
@pytest.mark.parametrize("name", LAWS)
def test_bounds_by_wagers_fail_no_more_often_than_gamma_allows(name, gamma):
    law, mean = LAWS[name]
    rng = np.random.default_rng([int(1 / gamma), len(name)])
    for k in (33, 300):
        found = bounds(law(rng, (k, RUNS)), law(rng, (32, RUNS)), 0.5, gamma)
        assert not too_many(found < mean - 1e-6, gamma)


def test_it_needs_half_the_draws_of_empirical_bernstein_or_fewer():
    """Values like those of a certificate: |q_u - 1/2| of a unit near a cap of .60, one of many statements."""
    rng = np.random.default_rng(5)
    term = log_term(0.05, 10**5)
    for law, mean in (LAWS["half-normal"], LAWS["rare"]):
        widths = []
        for k in (2048, 4096):
            values = law(rng, (k, 200))
            sums = MeanEstimate.from_sums(
                values.sum(axis=0, dtype=float), (values.astype(float) ** 2).sum(axis=0), k, 0.5, 0.0
            )
            wagered = bounds(values, law(rng, (PILOT, 200)), 0.5, 0.05 / 10**5)
            widths.append((np.median(wagered) - mean, np.median(upper(sums, term)) - mean))
        assert widths[0][0] < widths[1][1], "with half of the draws"


@pytest.mark.parametrize("gamma", [0.05, 0.001])
def test_bounds_hold_for_real_posteriors(gamma):
    """Posteriors of 64 worlds and 24 units. The truth: a mean over 200,000 other draws, in double precision."""
    rng = np.random.default_rng(7)
    worlds = draw_worlds(24, 64, rng, 1 / 2)
    points = worlds.masks() @ rng.standard_normal((24, 3)) / 3
    columns = unit_columns(worlds, np.arange(24))

    def deviations(draws, seed):
        source = Sampled(points, draws, np.random.SeedSequence(seed))
        return np.concatenate(
            [evidence(source.view(block), True, False).table @ columns for block in range(source.blocks)]
        )

    many = np.abs(deviations(200_000, 1).astype(float))
    truth, error = many.mean(axis=0), 5 * many.std(axis=0) / math.sqrt(200_000)
    pilot = np.abs(deviations(256, 2))
    failed = np.array(
        [bounds(np.abs(deviations(192, seed)), pilot, 0.5, gamma) < truth - error for seed in range(10, 410)]
    )
    # The units of one run are dependent: each unit by itself.
    assert not any(too_many(failed[:, unit], gamma) for unit in range(24))


def test_rounding_of_values_and_products_is_covered():
    """Values computed too small by as much as is stated, and constant ones, where only rounding is left."""
    rng = np.random.default_rng(9)
    law, mean = LAWS["coin"]
    values = np.maximum(law(rng, (4096, 2000)) - np.float32(0.05), 0)
    assert not too_many(bounds(values, law(rng, (64, 2000)), 0.5, 0.05, rounding=0.05) < mean, 0.05)
    assert too_many(bounds(values, law(rng, (64, 2000)), 0.5, 0.05) < mean, 0.05)
    constant = np.full((100_000, 1), 0.3, dtype=np.float32)
    wagers = Wagers.placed(np.array([0.3]), np.array([1e-3]), 0.5, 100_000, 20.0)
    exact = 100_000 * math.log(float(wagers.base[0]) - float(wagers.stake[0]) * float(np.float32(0.3)))
    left = capital_of(constant, wagers)[0]
    assert abs(left - exact) <= 100_000 * wagers.slip[0]
    assert left - 100_000 * wagers.slip[0] <= exact
    # Products that rounding made as large as it can: what it may have added is taken off, not added once more.
    most = np.array([exact + 100_000 * wagers.slip[0]])
    held = MeanEstimate.from_wagers(most, wagers, variance=np.array([1e-3]), draws=100_000, rounding=0.0)
    assert held.capital is not None
    assert held.capital[0] <= exact + 1e-9


def test_no_capital_is_lost_to_the_ends_of_single_precision():
    """256 draws of the largest value, and of none: factors of 1/5, and of the largest base there is."""
    wagers = Wagers.placed(np.array([0.0, 0.5]), np.zeros(2), 0.5, 512, 20.0)
    for value in (0.5, 0.0):
        left = capital_of(np.full((512, 2), value, dtype=np.float32), wagers)
        exact = 512 * np.log(wagers.base.astype(float) - wagers.stake.astype(float) * value)
        assert left == pytest.approx(exact, rel=1e-5)
        assert (wagers.base - wagers.stake * 0.5 > 1 / 8).all() and (wagers.base < 4).all()


def test_a_wager_bounds_from_above_only():
    wagers = Wagers.placed(np.array([0.1]), np.array([0.01]), 0.5, 100, 5.0)
    mean = MeanEstimate.from_wagers(np.array([0.0]), wagers, variance=np.array([0.01]), draws=100, rounding=0.0)
    term = log_term(0.01, 1)
    assert upper(mean.scaled(3.0, 0.5), term)[0] == pytest.approx(0.5 + 3 * upper(mean, term)[0])
    with pytest.raises(ValueError, match="above only"):
        mean.scaled(-1.0)


def test_a_forecast_aims_above_what_wagers_will_give():
    rng = np.random.default_rng(2)
    for law, _ in (LAWS["half-normal"], LAWS["coin"], LAWS["skewed"]):
        few = law(rng, (4096, 300)).astype(float)
        seen = MeanEstimate.from_sums(few.sum(axis=0), (few**2).sum(axis=0), 4096, 0.5, 0.0)
        aimed = forecast(seen, 8192, log_term(1e-4, 1))
        assert (bounds(law(rng, (8192, 300)), few, 0.5, 1e-4) <= aimed).mean() > 0.9


def test_one_stake_holds_for_every_number_of_draws_at_once():
    """So a pass may stop where its margin is small enough."""
    law, mean = LAWS["coin"]
    values = law(np.random.default_rng(6), (400, RUNS))
    term = log_term(0.05, 1)
    least = np.min([upper_at(values[:k], k, term) for k in range(10, 401, 10)], axis=0)
    assert not too_many(least < mean, 0.05)


# ---- planted ------------------------------------------------------------------------------------------------------


def test_planted_unequal_strata_are_caught():
    """Two worlds of expectations 0 and 1/2; the quiet one is drawn three times as often."""
    rng = np.random.default_rng(3)

    def dealt(quiet, loud):
        return np.concatenate([np.zeros((quiet, RUNS)), np.full((loud, RUNS), 0.5)]).astype(np.float32)

    fair, unfair = (
        bounds(dealt(*split), rng.permuted(dealt(16, 16), axis=0), 0.5, 0.05) for split in ((256, 256), (384, 128))
    )
    assert not (fair < 0.25).any()
    assert too_many(unfair < 0.25, 0.05)


def test_planted_draws_that_count_twice_are_caught():
    rng = np.random.default_rng(4)
    law, mean = LAWS["coin"]
    values = law(rng, (200, RUNS))
    pilot = law(rng, (32, RUNS))
    assert not too_many(bounds(values, pilot, 0.5, 0.001) < mean, 0.001)
    assert too_many(bounds(np.concatenate([values, values]), pilot, 0.5, 0.001) < mean, 0.001)


def upper_at(values, k, term):
    wagers = Wagers.placed(np.full(RUNS, 0.25), np.full(RUNS, 0.06), 0.5, 400, term)
    return upper(
        MeanEstimate.from_wagers(
            capital_of(values, wagers), wagers, variance=np.full(RUNS, 0.06), draws=k, rounding=0.0
        ),
        term,
    )


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_wagers_on_units_and_sticks_follow_their_own_values(rate):
    """What is left of each capital, against sums in double precision: |q - rate|, the sticks, the largest q."""
    rng = np.random.default_rng(3)
    worlds = draw_worlds(9, 24, rng, rate)
    points = worlds.masks() @ rng.standard_normal((9, 2))
    source, cuts = Sampled(points, 300, np.random.SeedSequence(1)), thresholds(rate)
    placed = UnitWagers.placed(observe_units(source, worlds, cuts), rate, 300, 10.0)
    seen = observe_units(source, worlds, cuts, wagers=placed)
    posterior = np.concatenate([source.view(block).posterior for block in range(source.blocks)]).astype(float)
    q = posterior @ worlds.masks()
    values = np.array([np.abs(q - rate), *(np.maximum(q - t, 0) for t in cuts)])
    base, stake = placed.units.base.astype(float)[:, None], placed.units.stake.astype(float)[:, None]
    exact = np.log(base - stake * values).sum(axis=1)
    left = np.concatenate([seen.balanced.capital[None], seen.sticks.capital]) + 300 * placed.units.slip
    assert left == pytest.approx(exact, abs=1e-2)
    naming = np.log(float(placed.naming.base[0]) - float(placed.naming.stake[0]) * q.max(axis=1)).sum()
    assert seen.naming.capital[0] == pytest.approx(naming, abs=1e-2)
    # Planted: sticks the other way round.
    turned = base[1:] - stake[1:] * np.array([np.maximum(t - q, 0) for t in cuts])
    wrong = np.log(np.maximum(turned, 1e-3)).sum(axis=1)
    assert np.abs(left[1:] - wrong).max() > 1
