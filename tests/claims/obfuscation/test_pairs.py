"""Bounds by swaps beside the truth on pools that can be listed, and faults that must show."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.stats import chi2

from leakcap.errors import NumericalError
from leakcap.obfuscation import pairs
from leakcap.obfuscation.chi_squares import MANY_TERMS, NOTHING_BEYOND, PairTable, beyond, told_apart
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.pairs import AddedNoise, SwapFactors, products, swap_factors
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs, draw_mixed, draw_swaps
from tests.claims.obfuscation.brute_force import every_outside_swap, every_swap, nats_of, truth
from tests.claims.obfuscation.cases import CASES, NOISES, one_swap

GRID = 3e-6  # what the truth may be off: kinks of |p - q| between grid points


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("case", CASES)
def test_no_bound_about_one_unit_lies_below_the_truth(case, noise):
    pool, law = CASES[case]
    found = truth(pool, law, noise, (3.0,))
    for unit in (0, len(pool) - 1):
        swaps = every_swap(pool, law, noise, unit)
        log_det, trace = nats_of(swaps, law.rates[unit])
        assert told_apart(swaps.wider, swaps.narrower, 1).mean() >= found.tv[unit] - GRID
        assert told_apart(swaps.wider, swaps.narrower, 1, weight=3.0).mean() >= found.sticks[3.0][unit] - GRID
        assert trace >= log_det >= found.nats[unit] - GRID


def test_the_bound_is_attained_where_there_is_one_swap():
    pool, law = one_swap()
    swaps = every_swap(pool, law, 0.3, 0)
    assert min(swaps.wider.min(), swaps.narrower.min()) > 0.01  # both factors matter
    assert told_apart(swaps.wider, swaps.narrower, 1, cells=2048).mean() == pytest.approx(
        truth(pool, law, 0.3).tv[0], abs=2e-4
    )


@pytest.mark.parametrize("columns", [1, 2, 5, 20, 65, MANY_TERMS - 1, MANY_TERMS, MANY_TERMS + 1])
def test_what_lies_beyond_a_place_is_right_to_fourteen_digits(columns):
    """Beside fifty digits, from 0 to where nothing lies beyond; the twin is off by a millionth of a degree."""
    near = columns * np.random.default_rng(columns).uniform(0.2, 3, 40)
    places = np.array([*near, 0.0, 1e-9, 2 * NOTHING_BEYOND * (1 - 1e-9), 2 * NOTHING_BEYOND, 1e5, 1e300])
    with mpmath.workdps(50):
        exact, planted = (
            np.array([float(mpmath.gammainc(degrees / 2, mpmath.mpf(place) / 2, regularized=True)) for place in places])
            for degrees in (mpmath.mpf(columns), columns + mpmath.mpf(10) ** -6)
        )
    found = beyond(columns, places)
    assert np.abs(found - exact).max() < 1e-14
    assert np.abs(found - planted).max() > 1e-9
    assert beyond(columns, np.array([np.inf])) < 1e-140


@pytest.mark.parametrize("kept", ["wider", "narrower"])
def test_a_planted_bound_that_forgets_one_factor_is_caught(kept):
    pool, law = one_swap()
    swaps = every_swap(pool, law, 0.3, 0)
    none = np.zeros_like(swaps.wider)
    planted = (swaps.wider, none) if kept == "wider" else (none, swaps.narrower)
    assert told_apart(*planted, 1).mean() < truth(pool, law, 0.3).tv[0] - 0.005


def test_planted_partners_that_are_near_are_caught():
    """Another coupling than with a uniform outsider: bounds nothing."""
    pool, law = CASES["two classes, one row"]
    pool = pool.copy()
    pool[1] = pool[0] * 0.999
    planted = every_swap(pool, law, 0.1, 0, outsiders=lambda rows: nearest(pool, law, rows))
    assert told_apart(planted.wider, planted.narrower, 1).mean() < truth(pool, law, 0.1).tv[0] - 0.01


def nearest(pool, law, rows):
    others = np.setdiff1d(np.flatnonzero(law.labels == law.labels[0]), rows)
    return others[[np.argmin(np.linalg.norm(pool[others] - pool[0], axis=1))]]


def test_planted_partners_of_another_class_are_caught():
    """The other class holds a twin of the unit: swapped with it, nothing changes."""
    pool, law = CASES["two classes, one row"]
    pool = pool.copy()
    pool[4:] = pool[0]
    planted = every_swap(pool, law, 0.1, 0, outsiders=lambda rows: np.array([4]))
    assert told_apart(planted.wider, planted.narrower, 1).mean() < truth(pool, law, 0.1).tv[0] - 0.01


def test_planted_half_of_the_nats_is_caught():
    pool, law = CASES["two units, one row"]
    log_det, _ = nats_of(every_swap(pool, law, 0.1, 0), 0.5)
    assert log_det / 2 < truth(pool, law, 0.1).nats[0] - 1e-4


def test_the_printed_type_two_says_nothing_leaks_from_a_pool_of_two():
    """Theorem 5 of the paper, Type II: 0 where one of two rows is released. The truth is not."""
    pool, law = CASES["two units, one row"]
    inside, outside = (np.array([[row @ row + 0.1**2]]) for row in pool)
    printed = 0.5 * (0.5 * logdet(inside) + 0.5 * logdet(outside) - (logdet(inside) + logdet(outside)) / 2)
    assert printed == 0
    assert truth(pool, law, 0.1).nats[0] > 0.001


def logdet(matrix):
    return np.linalg.slogdet(matrix)[1]


@pytest.mark.parametrize("case", CASES)
def test_swaps_of_insiders_and_of_outsiders_have_one_law(case):
    pool, law = CASES[case]
    for weight in (1.0, 1.3):
        means = [
            told_apart(swaps.wider, swaps.narrower, 1, weight=weight).mean()
            for swaps in (every_swap(pool, law, 0.3, 0), every_outside_swap(pool, law, 0.3, 0))
        ]
        assert means[0] == pytest.approx(means[1], rel=1e-6)


def test_planted_outsiders_that_are_not_turned_round_are_caught():
    pool, law = CASES["classes of unequal size"]
    swaps, outside = every_swap(pool, law, 0.3, 0), every_outside_swap(pool, law, 0.3, 0)
    planted = outside.turned(np.ones(len(outside.wider), dtype=bool))
    means = [told_apart(some.wider, some.narrower, 1, weight=1.3).mean() for some in (swaps, planted)]
    assert abs(means[0] - means[1]) > 1e-4


@pytest.mark.parametrize("columns", [1, 3, 40, 500])
def test_one_factor_is_the_closed_form(columns):
    factor = np.exp(0.7 / np.sqrt(columns))
    border = columns * np.log(factor) / (1 - 1 / factor)
    exact = chi2.cdf(border, columns) - chi2.cdf(border / factor, columns)
    bound = told_apart(np.array(np.log(factor)), np.array(0.0), columns)
    assert exact <= bound <= exact + 1e-8
    assert told_apart(np.array(0.0), np.array(np.log(factor)), columns) == pytest.approx(exact, abs=1e-8)
    half = chi2.cdf(border, columns // 2 + 1) - chi2.cdf(border / factor, columns // 2 + 1)
    assert columns == 1 or half < exact - 0.01  # planted: half of the columns forgotten


@pytest.mark.parametrize(("columns", "wider", "narrower"), [(500, 0.03, 0.025), (1, 3.0, 2.0), (7, 0.05, 0.9)])
@pytest.mark.parametrize("weight", [0.5, 1.0, 4.0])
def test_two_factors_beside_a_plain_double_sum(columns, wider, narrower, weight):
    """An oracle that knows nothing of borders: the positive part of a difference of densities on a fine grid."""
    places = [np.linspace(*chi2.ppf([1e-8, 1 - 1e-8], columns), 4001) if columns > 1 else fine(columns)] * 2
    dense = [chi2.pdf(place, columns) * np.gradient(place) for place in places]
    other = [
        chi2.pdf(place * np.exp(-log), columns) * np.exp(-log) * np.gradient(place)
        for place, log in zip(places, (wider, -narrower), strict=True)
    ]
    exact = np.maximum(np.outer(*dense) - weight * np.outer(*other), 0).sum()
    bounds = [
        float(told_apart(np.array(wider), np.array(narrower), columns, weight=weight, cells=c)) for c in (64, 1024)
    ]
    assert exact - 2e-3 <= bounds[1] <= bounds[0]
    assert bounds[1] <= exact + 2e-3


def fine(columns):
    return np.linspace(1e-5, chi2.ppf(1 - 1e-8, columns) ** 0.25, 4001) ** 4


def test_fewer_cells_never_lower_the_bound():
    rng = np.random.default_rng(7)
    wider, narrower = rng.exponential(0.05, 200), rng.exponential(0.05, 200)
    close = told_apart(wider, narrower, 100, cells=2048)
    for cells in (8, 32, 128):
        assert (told_apart(wider, narrower, 100, cells=cells) >= close - 1e-9).all()


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_the_table_is_never_below_what_it_stands_for_and_near(weight):
    rng = np.random.default_rng(8)
    wider, narrower = rng.exponential(0.04, (2, 300))
    exact, table = told_apart(wider, narrower, 300, weight=weight), PairTable(300, weight)(wider, narrower)
    assert (table >= exact).all()
    assert (table - exact).max() < 0.01


def test_a_planted_table_that_rounds_to_the_nearest_is_caught():
    rng = np.random.default_rng(8)
    wider, narrower = rng.exponential(0.04, (2, 300))
    down = [np.exp(np.floor(np.log(logs) / 0.01) * 0.01) for logs in (wider, narrower)]
    assert (told_apart(*down, 300) < told_apart(wider, narrower, 300)).mean() > 0.9


def test_a_factor_farther_from_one_tells_more():
    logs = np.linspace(0.0, 0.3, 13)
    for weight in (1.0, 3.0):
        table = told_apart(logs[:, None] + np.zeros(13), logs[None, :] + np.zeros((13, 1)), 20, weight=weight)
        assert (np.diff(table, axis=0) >= -2e-4).all() and (np.diff(table, axis=1) >= -2e-4).all()


@pytest.mark.parametrize(("width", "rows", "columns"), [(30, 2, 10), (5, 7, 50), (12, 2, 3)])
def test_factors_are_the_generalised_eigenvalues(width, rows, columns):
    pool, law = some_pool(width, rows, columns)
    rng = np.random.default_rng(3)
    mixed = draw_mixed(law, rng)
    swaps = draw_swaps(law, mixed.rows, 1, rng)
    found = products(pool, mixed, AddedNoise(0.01, columns))
    factors = swap_factors(pool, mixed, found, places=swaps.places[0], joins=swaps.joins[0], columns=columns)
    for unit in range(0, len(pool), 5):
        before, after = pool[mixed.rows], pool[mixed.rows]
        after[swaps.places[0, unit]] = pool[swaps.joins[0, unit]]
        covariances = [covariance(mixed, rows, columns) for rows in (before, after)]
        logs = np.log(eigh(covariances[1], covariances[0], eigvals_only=True))
        assert np.abs(logs[1:-1]).max() < 1e-9
        assert [factors.narrower[unit], factors.wider[unit]] == pytest.approx([-logs[0], logs[-1]], abs=1e-6)
        assert factors.wider[unit] >= logs[-1] and factors.narrower[unit] >= -logs[0]


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-5])
def test_few_columns_are_factored_alike_with_and_without_the_whole_covariance(noise, monkeypatch):
    pool, law = some_pool(6, 5, 40)
    mixed = draw_mixed(law, np.random.default_rng(4))
    narrow = products(pool, mixed, AddedNoise(noise, 40))
    monkeypatch.setattr(pairs, "NARROW", 1000)
    whole = products(pool, mixed, AddedNoise(noise, 40))
    for name in ("across", "weight"):
        assert getattr(narrow, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-10 / noise)
    assert narrow.turn @ narrow.turn.T == pytest.approx(whole.turn @ whole.turn.T, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("width", [5, 40])
def test_a_covariance_that_cannot_be_solved_is_refused(width):
    pool, law = some_pool(width, 5, 40)
    with pytest.raises(NumericalError, match="noise"):
        products(pool, draw_mixed(law, np.random.default_rng(4)), AddedNoise(1e-14, 40))


def covariance(mixed, rows, columns):
    mixture = mixed.weights @ rows
    return mixture @ mixture.T / columns + 0.01 * np.eye(len(mixture))


def some_pool(width, rows, columns):
    rng = np.random.default_rng(2)
    pool = rng.normal(size=(60, width))
    pool /= np.linalg.norm(pool, axis=1)[:, None]
    return pool, MixingLaw(np.repeat(np.arange(3), 20), 9, 4, all_class_pairs(3, rows), columns)


def test_more_noise_tells_less():
    pool, law = some_pool(10, 2, 20)
    levels = [
        Obfuscated(pool, law, noise).draw_factors(np.random.default_rng(1), swaps=2) for noise in (0.05, 0.1, 0.3)
    ]
    told = [told_apart(level.wider[..., 0], level.narrower[..., 0], 20, cells=512) for level in levels]
    assert (told[0] > told[1]).all() and (told[1] > told[2]).all()


def test_turning_exchanges_the_two_laws():
    one = SwapFactors(np.array([0.2, 0.2]), np.array([0.1, 0.1]))
    turned = one.turned(np.array([True, False]))
    assert turned.wider.tolist() == [0.1, 0.2] and turned.narrower.tolist() == [0.2, 0.1]
