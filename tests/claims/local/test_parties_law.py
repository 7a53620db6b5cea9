"""Noise of coins that nobody knows keeps caps: its law is summed up exactly, and nothing is drawn."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import leakcap as lc
from leakcap.kernels.bounded import Extent
from leakcap.local.parties.certifying import certified
from leakcap.local.parties.law import CoinLaw, calibrated
from leakcap.modes.pool import exact_total, whole_steps
from tests.parties import small_question

LAW = CoinLaw(64, 256, 2)
PAIR = CoinLaw(16, 64, 1)  # small enough for two numbers at once
RNG = np.random.default_rng(4)


def exact_law(law):
    """Masses of the noise at whole finest steps."""
    cells = 1 << law.dither
    return np.repeat(law.masses(), cells) / cells


def told(law, first, second):
    """Success of the best guess between two answers: noise around one total, or around the other."""
    apart = np.asarray(second, dtype=np.int64) - np.asarray(first, dtype=np.int64)
    masses = exact_law(law)
    ones, others = [], []
    for by in np.abs(apart):  # the law is symmetric up to a step, numbers are independent
        ones.append(np.concatenate([masses, np.zeros(by)]))
        others.append(np.concatenate([np.zeros(by), masses]))
    one, other = ones[0], others[0]
    for a, b in zip(ones[1:], others[1:], strict=True):
        one, other = np.multiply.outer(one, a), np.multiply.outer(other, b)
    return 0.5 + 0.25 * float(np.abs(one - other).sum())


def holds(noise, deviations, rows):
    """Whether the best attacker, who knows all other rows, stays within what is certified, row by row."""
    made = replace(noise, deviations=deviations)
    steps = whole_steps(rows, made.steps)
    total = steps.sum(axis=0)
    return all(told(noise.law, total, total - own) <= noise.success + 1e-12 for own in steps)


def rows_at_their_limits(numbers):
    corner = np.array(list(itertools.product([-1.0, 1.0], repeat=numbers)))
    return np.vstack([corner, RNG.uniform(-1, 1, (4, numbers))])


@pytest.mark.parametrize(
    ("numbers", "law", "cap"), [(1, LAW, 0.55), (1, LAW, 0.6), (1, LAW, 0.75), (2, PAIR, 0.6), (2, PAIR, 0.75)]
)
def test_the_cap_holds_against_the_best_attacker_and_not_with_less_noise(cap, numbers, law):
    noise = calibrated(Extent.together(np.ones(numbers), np.ones(numbers)), (lc.pool_membership(cap),), law)
    assert noise.success <= cap
    rows = rows_at_their_limits(numbers)
    assert holds(noise, noise.deviations, rows)
    assert not holds(noise, noise.deviations / (1.1 if law is LAW else 1.6), rows)


def test_a_histogram_moves_one_number_of_each_part():
    extent = Extent.one_of([3], 1.0)
    noise = calibrated(extent, (lc.pool_membership(0.6),), LAW)
    steps = whole_steps(np.eye(3), noise.steps, noise.largest)
    assert all(told(noise.law, [0], [steps[i, i]]) <= noise.success for i in range(3))
    with pytest.raises(AssertionError):
        exact_total(np.ones((1, 3)), noise.steps, noise.largest)  # a row in three bins at once


@pytest.mark.parametrize("cap", [0.55, 0.6])
def test_coins_of_rows_tell_no_more_whoever_else_is_known(cap):
    noise = calibrated(Extent.together(np.ones(1), np.ones(1)), (lc.membership(cap),), LAW)
    others = whole_steps(RNG.uniform(-1, 1, (3, 1)), noise.steps)[:, 0]
    own = int(whole_steps(np.ones((1, 1)), noise.steps)[0, 0])
    masses = exact_law(LAW)
    size = len(masses) + own + int(np.abs(others).sum()) * 2
    middle = int(np.abs(others).sum())

    def law_at(total):
        found = np.zeros(size + 1)
        found[middle + total : middle + total + len(masses)] = masses
        return found

    sums = [int(np.dot(coins, others)) for coins in itertools.product([0, 1], repeat=3)]
    known = [0.5 + 0.25 * np.abs(law_at(one) - law_at(one + own)).sum() for one in sums]
    out = sum(law_at(one) for one in sums) / 8
    took_part = sum(law_at(one + own) for one in sums) / 8
    unknown = 0.5 + 0.25 * np.abs(out - took_part).sum()
    in_pool = 0.5 + 0.25 * np.abs((out + took_part) / 2 - out).sum()
    cert = certified(small_question(design="bits", rows=4, cap=cap), noise)
    assert max(known) <= cert.membership_success <= cap
    assert unknown <= cert.membership_success
    assert in_pool <= 0.5 + 0.25 * (2 * max(known) - 1) + 1e-12
    assert in_pool <= cert.pool_membership_success < cert.membership_success


def test_exchanging_a_person_and_recognising_people_are_bounded_too():
    noise = calibrated(Extent.together(np.ones(1), np.ones(1)), (lc.pool_membership(0.6),), LAW)
    own = int(whole_steps(np.ones((1, 1)), noise.steps)[0, 0])
    assert noise.success < told(LAW, [-own], [own]) <= noise.replaced
    cert = certified(small_question(), noise)
    masses = exact_law(LAW)
    out, into = np.concatenate([masses, np.zeros(own)]), np.concatenate([np.zeros(own), masses])
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(out > 0, into / out, np.where(into > 0, np.inf, 0.0)), kind="stable")
    alarms, right = np.cumsum(out[order]), np.cumsum(into[order])
    for fpr in (0.001, 0.01, 0.1, 0.4):
        best = float(np.interp(fpr, alarms, right))
        assert best <= cert.true_positive_rate(fpr)
        assert best > cert.true_positive_rate(fpr) - 0.05  # the bound says something


def test_the_stated_distance_is_that_of_the_law():
    from scipy.stats import binom, norm

    for law in (PAIR, LAW, CoinLaw(1024)):
        wide = binom.pmf(np.arange(law.coarse + 1), law.coarse, 0.5)
        spread = np.zeros(8 * law.coarse + 1)
        spread[::8] = wide
        masses = np.convolve(spread, binom.pmf(np.arange(law.filling + 1), law.filling, 0.5))
        assert np.abs(masses - law.masses()).max() < 1e-12
        at = np.arange(len(masses)) - (len(masses) - 1) / 2
        assert law.deviation == pytest.approx(np.sqrt(masses @ at**2))
        rounded = norm.cdf((at + 0.5) / law.deviation) - norm.cdf((at - 0.5) / law.deviation)
        exact = 0.5 * (np.abs(masses - rounded).sum() + 1 - rounded.sum())
        assert exact <= law.distance() <= exact + 1e-8


def test_many_coins_cost_hardly_more_noise_than_a_holder_would_add():
    from leakcap.modes.pool import least_noise_within

    for numbers, most in ((1, 1.001), (11, 1.002), (66, 1.02)):
        extent = Extent.together(np.ones(numbers), np.ones(numbers))
        held, _, _ = least_noise_within(extent, (lc.pool_membership(0.55),))
        assert 1 <= calibrated(extent, (lc.pool_membership(0.55),)).deviations[0] / held[0] <= most
