"""Bounds of others, put in the same currency: never below the truth on what can be integrated; planted faults are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from reproductions.learnable_obfuscation.published import RECONSTRUCTION_PRIOR, TABLES
from scipy.integrate import quad

from leakcap import convert
from leakcap.errors import InputError
from leakcap.obfuscation.comparators import (
    ComparedBound,
    best_valid,
    compared,
    entropy_of_bit,
    identification_failure,
    printed_reconstruction,
    private_success,
    replaced_row_renyi,
    success_from_nats,
)
from leakcap.obfuscation.renyi import ORDERS, epsilon_for, fixed_size_renyi, poisson_renyi
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs
from tests.claims.obfuscation.brute_force import truth
from tests.claims.obfuscation.cases import CASES
from tests.later import others_later

GRID = np.linspace(-40, 40, 40_001)


def density(means, noise=1.0):
    """Of a uniform mixture of normal laws."""
    at = (GRID[:, None] - np.asarray(means, dtype=float)) / noise
    return np.exp(-(at**2) / 2).mean(axis=1) / (noise * math.sqrt(2 * math.pi)) + 1e-300


def renyi(first, second, order):
    return math.log(np.trapezoid(np.exp(order * np.log(first) - (order - 1) * np.log(second)), GRID)) / (order - 1)


@pytest.mark.parametrize(("rate", "distance"), [(0.1, 0.5), (0.01, 2.0), (0.5, 1.0)])
def test_poisson_drawing_is_an_integral(rate, distance):
    def mixed(x):
        return ((1 - rate) + rate * math.exp(distance * x - distance**2 / 2)) ** 3 * math.exp(-(x**2) / 2)

    expected = math.log(quad(mixed, -30, 30, epsabs=1e-13, limit=400)[0] / math.sqrt(2 * math.pi)) / 2
    found = poisson_renyi(rate, distance)[ORDERS.index(3)]
    assert found == pytest.approx(expected, rel=1e-6)
    assert found >= expected * (1 - 1e-9)


def sums(rows, drawn):
    return [sum(some) for some in itertools.combinations(rows, drawn)]


@pytest.mark.parametrize(("count", "drawn"), [(2, 1), (3, 1), (3, 2), (5, 2), (6, 1)])
def test_fixed_size_drawing_is_never_below_the_truth(count, drawn):
    """All orders to 4, sums of two to six rows in [-1, 1], the first replaced; with a rate forgotten it would be."""
    rng = np.random.default_rng(count)
    caught = False
    for noise in (0.7, 1.5, 4.0):
        for _ in range(6):
            rest = list(rng.choice([-1.0, 0.0, 1.0], size=count - 1))
            one, other = (density(sums([first, *rest], drawn), noise) for first in (1.0, -1.0))
            for place, order in enumerate((2, 3, 4)):
                exact = max(renyi(one, other, order), renyi(other, one, order))
                assert exact <= fixed_size_renyi(drawn / count, 2 / noise)[place] + 1e-9
                caught |= exact > fixed_size_renyi((drawn / count) ** 2, 2 / noise)[place] + 1e-9
    assert caught, "the rate squared was not caught"


@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
def test_a_row_of_one_class_twice_counts_twice(noise):
    """The mean of two rows drawn apart from two: one of them replaced."""
    for other in (-1.0, 0.0, 1.0):
        laws = [density([(a + b) / 2 for a in rows for b in rows], noise) for rows in ((1.0, other), (-1.0, other))]
        exact = max(renyi(*laws, 2), renyi(*laws[::-1], 2))
        assert exact <= 2 * fixed_size_renyi(0.5, math.sqrt(2) / noise)[0] + 1e-9
    if noise < 1:  # planted: the second side is forgotten
        assert exact > fixed_size_renyi(0.5, 1 / noise)[0]


def test_no_private_bound_lies_below_the_truth():
    """Encodings that can be listed; the stretch of a single column makes it loose, so noise is large too."""
    for pool, law in CASES.values():
        for noise in (0.3, 1.0, 20.0):
            bound = private_success(replaced_row_renyi(law, noise))
            assert (0.5 + 0.5 * truth(pool, law, noise).tv <= bound + 1e-9).all()
    assert private_success(replaced_row_renyi(law, 1e4)) < 0.51


@pytest.mark.parametrize("rate", others_later([0.02, 0.3, 0.5, 0.8], 0.02, 0.5))
def test_nats_bound_the_success_of_every_channel_and_some_attains_it(rate):
    rng = np.random.default_rng(3)
    closest, below_printed = 1.0, 0
    for _ in range(60):
        laws = rng.dirichlet(np.full(3, 0.3), size=2) if rng.random() < 0.5 else rng.dirichlet(np.ones(2), size=2)
        joint = np.array([rate, 1 - rate])[:, None] * laws
        ratio = np.where(joint > 0, laws / joint.sum(axis=0), 1.0)
        nats = float((joint * np.log(np.maximum(ratio, 1e-300))).sum())
        exact = 0.5 + 0.25 * np.abs(laws[0] - laws[1]).sum()
        bound = success_from_nats(max(nats, 0.0), rate)
        assert exact <= bound + 1e-9
        closest = min(closest, bound - exact)
        below_printed += exact > float(convert.posterior(max(nats, 0.0), rate)) + 1e-9
    assert closest < 0.03
    assert success_from_nats(entropy_of_bit(rate), rate) == 1.0
    if rate < 0.1:  # planted: the paper's conversion, with the sampling rate for a prior
        assert below_printed > 20


def test_claims_under_a_delta_are_bounded():
    """A channel that is (epsilon, delta)-private by construction: delta tells all, the rest is randomised response."""
    for epsilon, delta, rate in itertools.product((0.1, 1.0, 3.0), (0.0, 0.01, 0.2), (0.02, 0.5)):
        heads = math.exp(epsilon) / (1 + math.exp(epsilon))
        inside, outside = delta + (1 - delta) * heads, (1 - delta) * (1 - heads)
        claims = rate * inside + (1 - rate) * outside
        wrong = (1 - rate) * outside / claims
        bound = identification_failure(epsilon, delta, claims=claims, rate=rate)
        assert bound <= wrong + 1e-9
        if delta == 0:
            assert bound == pytest.approx(float(convert.dp_identification_failure(epsilon, rate)), rel=1e-9)
            assert bound == pytest.approx(wrong, rel=1e-9)
        else:  # planted: the delta forgotten
            assert identification_failure(epsilon, 0.0, claims=claims, rate=rate) > wrong
    with pytest.raises(InputError):
        identification_failure(1.0, 2.0, claims=0.5, rate=0.5)


def test_epsilon_of_a_normal_law_is_above_its_own():
    for distance in (0.1, 0.5, 2.0):
        divergences = np.array(ORDERS) * distance**2 / 2
        for delta in (1e-3, 1e-6):
            exact = convert.gaussian_epsilon(distance, delta)
            assert exact <= epsilon_for(divergences, delta) <= 1.5 * exact + 0.1


def test_the_papers_accounting_gives_its_table():
    """Table 1, second figures in brackets: within .06 in all 24 cells."""
    labels = np.repeat(np.arange(10), 5000)
    for (n, m, k), row in TABLES[1].items():
        law = MixingLaw(labels, n // 10, k, all_class_pairs(10, m // 100), 500)
        for noise, cell in row.items():
            if noise:
                found = 1 - printed_reconstruction(law, noise, RECONSTRUCTION_PRIOR)
                assert found == pytest.approx(cell.beside, abs=0.06)


def test_the_lowest_valid_bound_is_named():
    labels = np.repeat(np.arange(10), 5000)
    law = MixingLaw(labels, 4000, 200, all_class_pairs(10, 20), 500)
    bounds = compared(law, 0.0159, certified=0.6, log_det_nats=0.03, trace_nats=0.06)
    assert best_valid(bounds).name == "pairs"
    assert best_valid(bounds[1:]).name == "log-det"
    assert {bound.name for bound in bounds if not bound.valid} == {"as printed", "RDP printed", "DP-CDA"}
    assert all(0 <= bound.success <= 1 for bound in bounds)
    low = ComparedBound(name="low", of="balanced success", success=0.5, valid=False, words="holds for nothing")
    assert best_valid([low, *bounds]).name == "pairs"
    with pytest.raises(InputError):
        best_valid([low])
