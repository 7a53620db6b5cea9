"""Information about the whole sample beside the truth, with confidence; the plug-in is too small."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from leakcap.convert import posterior
from leakcap.errors import InputError
from leakcap.obfuscation.meaning import (
    average_membership,
    claim_precision,
    name_any_member,
    overlap_priors,
    reconstruction,
)
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.whole import Tangent, certify_whole
from tests.claims.obfuscation.brute_force import mixtures_of, relative, samples, truth, whole_bounds
from tests.claims.obfuscation.cases import CASES, NOISES, SMALL, law


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("case", SMALL)
def test_no_bound_about_the_sample_lies_below_the_truth(case, noise):
    pool, rules = CASES[case]
    whole = truth(pool, rules, noise).whole
    assert min(whole_bounds(Obfuscated(pool, rules, noise))) >= whole - 1e-6


def test_a_planted_half_is_caught():
    """Forgetting that both laws are mixtures: columns/4 in the place of columns/2."""
    pool, rules = CASES["two units, one row"]
    assert whole_bounds(Obfuscated(pool, rules, 0.1))[1] / 2 < truth(pool, rules, 0.1).whole


@pytest.fixture(scope="module")
def two_rows():
    pool, rules = CASES["two classes, two rows"]
    obfuscated = Obfuscated(pool, rules, 0.5)
    return obfuscated, whole_bounds(obfuscated)


def coverage(two_rows, repeats):
    obfuscated, (trace, det) = two_rows
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(repeats):
        bounds = certify_whole(obfuscated, draws=30, gamma=0.25, rng=rng)
        wrong += bool(bounds.trace_nats < trace or bounds.log_det_nats < det)
    return wrong


def test_bounds_hold_as_often_as_they_say(two_rows):
    """False alarm: below 1e-4."""
    assert coverage(two_rows, 60) <= binom.isf(1e-4, 60, 0.25)


@pytest.mark.slow
def test_coverage_of_the_whole_over_two_thousand_repeats(two_rows):
    assert coverage(two_rows, 2000) <= binom.isf(1e-4, 2000, 0.25)


def relatives(obfuscated, number, rng):
    mixtures = [mixture for some in mixtures_of(obfuscated) for mixture in some]
    return [relative(obfuscated, mixtures[rng.integers(len(mixtures))]) for _ in range(number)]


def test_the_plug_in_is_too_small_and_the_tangent_of_other_draws_is_not(two_rows):
    """Means over 400 repeats of 4 draws; their errors are a fifth of the distances asserted, or less."""
    obfuscated, (_, det) = two_rows
    rng, plugged, tangent, planted = np.random.default_rng(4), [], [], []
    for _ in range(400):
        first, second = relatives(obfuscated, 4, rng), relatives(obfuscated, 4, rng)
        logs = np.linalg.slogdet(second)[1].mean()
        plugged.append((np.linalg.slogdet(np.mean(second, axis=0))[1] - logs) / 2)
        tangent.append(tangent_value(Tangent.at(np.mean(first, axis=0)), second))
        planted.append(tangent_value(Tangent.at(np.mean(second, axis=0)), second))  # the same draws for C and its mean
    assert np.mean(plugged) < 0.85 * det
    assert np.mean(tangent) > 1.05 * det
    assert np.mean(planted) < 0.85 * det  # planted: caught


def tangent_value(tangent, some):
    return (tangent.level + np.mean([tangent.value(one) for one in some])) / 2


def test_overlaps_of_a_blind_guess_are_counted_right():
    """Against listing all samples beside one guess."""
    rules = law([4, 5], 2, 1, [[0, 1]])
    everyone = samples(rules)
    shared = np.array([len(np.intersect1d(everyone[0], rows)) for rows in everyone])
    assert overlap_priors(rules) == pytest.approx([(shared >= j).mean() for j in range(1, 5)], rel=1e-8)


def test_conversions_go_through_the_currency():
    rules = law([4, 4], 1, 1, [[0, 1]])
    assert reconstruction(0.1, 0.2) == posterior(0.1, 0.2)
    assert name_any_member(0.1, rules) == posterior(0.1, 0.25)
    assert claim_precision(0.01, 0.1, 0.25) > 0.25
    priors = overlap_priors(rules)
    assert average_membership(0.0, rules) == pytest.approx(priors.mean(), rel=1e-6)
    assert average_membership(0.0, rules) == pytest.approx(0.25, rel=1e-6)
    assert average_membership(0.0, rules) < average_membership(0.2, rules) < average_membership(9.0, rules) <= 1
    with pytest.raises(InputError):
        average_membership(float("nan"), rules)


def spectral(table):
    return float(np.linalg.norm(table, 2))


def test_norms_and_determinants_of_theorem_six_are_put_right():
    """(32) and (34) of the paper are broken by identical rows and by a diagonal table; ours are attained, and hold."""
    identical = np.ones((4, 1))
    gram = identical @ identical.T
    assert spectral(gram) == pytest.approx(4 * np.abs(gram).max())  # m
    assert spectral(gram) > np.sqrt(4) * np.abs(gram).max()  # (32) says: at most that
    before, change = 2 * np.eye(3), np.eye(3)
    moved = abs(np.linalg.det(before) - np.linalg.det(before + change))
    assert moved == pytest.approx(19) and moved > 3 * 3 * 1  # (34) says: at most that
    assert moved <= 3 * 3**2 * 1
    near = abs(np.linalg.det(before) - np.linalg.det(before + 1e-6 * change))
    assert near == pytest.approx(3 * 2**2 * 1e-6, rel=1e-5)
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows_, tables = rng.normal(size=(5, 3)), rng.normal(size=(2, 4, 4)) * rng.choice([0.1, 1.0, 10.0], (2, 1, 1))
        assert spectral(rows_ @ rows_.T) <= 5 * np.abs(rows_ @ rows_.T).max()
        moved = abs(np.linalg.det(tables[0]) - np.linalg.det(tables.sum(axis=0)))
        largest = max(spectral(tables[0]), spectral(tables.sum(axis=0)))
        assert moved <= 4 * largest**3 * spectral(tables[1]) * (1 + 1e-9)


@pytest.mark.parametrize("variance", [0.01, 1.0, 4.0])
def test_the_range_of_nine_needs_the_diagonal_alone(variance):
    """Traces of (9): never above what rows of length 1 have on the diagonal, identical rows among them, which near it.

    And the tangent in the place of (34): never below the log-determinant of the mean.
    """
    rng, covariances = np.random.default_rng(1), []
    for width in (1, 2, 6):
        rows_ = rng.normal(size=(5, width))
        rows_ /= np.linalg.norm(rows_, axis=1)[:, None]
        covariances.append(rows_ @ rows_.T + variance * np.eye(5))
    traces = [np.trace(np.linalg.solve(a, b)) for a in covariances for b in covariances]
    assert max(traces) <= 5 * (1 + 1 / variance)
    tables = np.array(covariances) / variance
    mean, seen = tables.mean(axis=0), tables[:2].mean(axis=0)
    exact, found = (np.linalg.slogdet(one)[1] for one in (mean, seen))
    assert exact - found <= 5 * spectral(mean - seen)
