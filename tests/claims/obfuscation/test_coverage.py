"""Certified bounds hold as often as they say, in many repeats, on pools whose every draw is listed.

Draws are taken from the list, by the law of the library's own, which takes seconds where drawing takes minutes.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binom

from leakcap.leakage.confidence import upper
from leakcap.obfuscation import one_unit, whole
from leakcap.obfuscation.chi_squares import pair_table, told_apart
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements, UnitEffort, certify_units
from leakcap.obfuscation.pairs import AddedNoise, products, swap_factors
from leakcap.obfuscation.sampled import MixedDraw
from leakcap.obfuscation.whole import certify_whole, relative_covariances
from tests.claims.obfuscation.brute_force import every_swap, mixings, samples, truth
from tests.claims.obfuscation.cases import CASES
from tests.later import others_later

FEW, GAMMA = 200, 0.25
REPEATS = others_later([600, 2000], 600)
NOISE = 0.2


def allowed(repeats):
    """More failures than this have a chance below 1e-4."""
    return binom.isf(1e-4, repeats, GAMMA)


@pytest.fixture(scope="module")
def unit_bank():
    """`(draws, units, partners)`: what every swap of every unit tells, in every sample and mixing; padded in turn."""
    pool, law = CASES["two classes, one row"]
    found = []
    for rows in samples(law):
        inside = np.isin(np.arange(len(pool)), rows)
        for table in mixings(law):
            mixed = MixedDraw(rows, sparse.csr_matrix(table))
            parts = products(pool, mixed, AddedNoise(NOISE**2, law.columns))
            found.append([swaps_of(pool, law, mixed, parts, unit, inside) for unit in range(len(pool))])
    return pool, law, np.array(found)


def swaps_of(pool, law, mixed, parts, unit, inside):
    """Every partner of a unit: outsiders of its class if it is in the sample, everybody sampled of it if not."""
    mates = law.labels == law.labels[unit]
    if inside[unit]:
        joins = np.flatnonzero(mates & ~inside)
        places = np.full(len(joins), np.flatnonzero(mixed.rows == unit)[0])
    else:
        places = np.flatnonzero(mates[mixed.rows])
        joins = np.full(len(places), unit)
    factors = swap_factors(pool, mixed, parts, places=places, joins=joins, columns=law.columns)
    factors = factors.turned(np.full(len(joins), not inside[unit]))
    return pair_table(law.columns, 1.0)(factors.wider, factors.narrower)


@pytest.fixture
def listed_draws(unit_bank, monkeypatch):
    """The library draws from the list; what is returned is the release and the exact mean of every unit."""
    pool, law, bank = unit_bank
    everybody, partners = np.arange(len(pool)), bank.shape[2]

    def of_draw(statements, rng, *, swaps, units=None):
        assert swaps == 1 and units is None and statements.weights == (1.0,)
        told = bank[rng.integers(len(bank)), everybody, rng.integers(partners, size=len(pool))]
        return np.minimum(told, statements.most)

    monkeypatch.setattr(Statements, "of_draw", of_draw)
    return Obfuscated(pool, law, NOISE), bank.mean(axis=(0, 2))


def failures(release, exact, repeats):
    """In how many repeats the bound of some unit lies below its exact mean."""
    rng, effort = np.random.default_rng(21), UnitEffort(pilot=4, draws=40)
    bounds = (certify_units(release, effort=effort, gamma=GAMMA, rng=rng, alarms=()) for _ in range(repeats))
    return sum(bool((2 * bound.success - 1 < exact).any()) for bound in bounds)


def test_listed_draws_have_the_law_of_the_librarys_own(unit_bank):
    """Means of the list beside every swap of a unit, and beside the library's draws: within six of their errors."""
    pool, law, bank = unit_bank
    mean = bank.mean(axis=(0, 2))
    for unit in (0, 5):
        swaps = every_swap(pool, law, NOISE, unit)
        assert mean[unit] == pytest.approx(told_apart(swaps.wider, swaps.narrower, 1, cells=1024).mean(), abs=2e-3)
    statements, rng = Statements(Obfuscated(pool, law, NOISE)), np.random.default_rng(22)
    drawn = np.array([statements.of_draw(rng, swaps=1)[0] for _ in range(600)])
    assert (abs(drawn.mean(axis=0) - mean) < 6 * drawn.std(axis=0) / np.sqrt(600)).all()
    assert (mean >= truth(pool, law, NOISE).tv).all()


@pytest.mark.parametrize("repeats", REPEATS)
def test_coverage_of_all_units_over_many_repeats(listed_draws, repeats):
    """False alarm: below 1e-4."""
    assert failures(*listed_draws, repeats) <= allowed(repeats)


def test_planted_bounds_without_a_margin_are_caught(listed_draws, monkeypatch):
    monkeypatch.setattr(one_unit, "upper", lambda estimate, term: upper(estimate, 0.0))
    assert failures(*listed_draws, FEW) > allowed(FEW)


@pytest.fixture
def whole_list(monkeypatch):
    """The release, its exact Type I and II, relative covariances of all draws; the library draws from their list."""
    pool, law = CASES["two classes, two rows"]
    release = Obfuscated(pool, law, 0.5)
    draws = [MixedDraw(rows, sparse.csr_matrix(table)) for rows in samples(law) for table in mixings(law)]
    assert len(mixings(law)) == 1  # so that any two samples are mixed alike
    monkeypatch.setattr(whole, "draw_mixed", lambda law, rng: draws[rng.integers(len(draws))])
    every = [relative_covariances(release, [draw.weights @ pool[draw.rows]], [0.25])[0] for draw in draws]
    trace = np.mean([np.trace(np.linalg.solve(a, b)) - len(a) for a in every for b in every]) / 2
    det = (np.linalg.slogdet(np.mean(every, axis=0))[1] - np.mean(np.linalg.slogdet(every)[1])) / 2
    return release, (trace, det), np.array(every)


def whole_failures(release, exact, repeats):
    rng = np.random.default_rng(23)
    bounds = (certify_whole(release, draws=10, gamma=GAMMA, rng=rng, pilot=4) for _ in range(repeats))
    return sum(bound.trace_nats < exact[0] or bound.log_det_nats < exact[1] for bound in bounds)


@pytest.mark.parametrize("repeats", REPEATS)
def test_coverage_of_the_whole_sample_and_a_plug_in_that_is_too_small(whole_list, repeats):
    """Ours fails no more often than allowed; the plug-in of as many draws fails more often, and on average."""
    release, (trace, det), every = whole_list
    assert whole_failures(release, (trace, det), repeats) <= allowed(repeats)
    assert min(trace, det) >= truth(release.pool, release.law, 0.5).whole - 1e-6
    rng = np.random.default_rng(24)
    some = every[rng.integers(len(every), size=(repeats, 10))]
    plugged = (np.linalg.slogdet(some.mean(axis=1))[1] - np.linalg.slogdet(some)[1].mean(axis=1)) / 2
    assert (plugged < det).sum() > allowed(repeats)
    assert plugged.mean() < det - 6 * plugged.std() / np.sqrt(repeats)


def test_planted_whole_bounds_without_a_margin_are_caught(whole_list, monkeypatch):
    monkeypatch.setattr(whole, "upper", lambda estimate, term: upper(estimate, 0.0))
    assert whole_failures(*whole_list[:2], FEW) > allowed(FEW)
