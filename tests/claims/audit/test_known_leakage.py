"""All statistics at once, on mechanisms whose leakage is known."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from leakcap.audit import statistics as st
from tests.claims.audit.chances import gaussian_curve, highest_roc, wald


def too_often(refutations, repeats, rate):
    """Whether so many false refutations are out of the question at the nominal rate (false alarm 1e-6)."""
    return stats.binom.sf(refutations - 1, repeats, rate) < 1e-6


def scores_of(mechanism, member, rng):
    """What the mechanism says of a member and of somebody else: shifted by one, in its own noise."""
    name, size = mechanism
    if name == "gaussian":
        return member * size + rng.standard_normal(member.shape)
    if name == "laplace":
        return member + rng.laplace(scale=1 / size, size=member.shape)
    return np.where(rng.random(member.shape) < 1 / (1 + math.exp(size)), ~member, member) * 1.0


def true_rates(mechanism, cut):
    name, size = mechanism
    if name == "gaussian":
        return stats.norm.sf(cut - size), stats.norm.sf(cut)
    if name == "laplace":
        return stats.laplace.sf(cut, 1, 1 / size), stats.laplace.sf(cut, 0, 1 / size)
    return math.exp(size) / (1 + math.exp(size)), 1 / (1 + math.exp(size))


MECHANISMS = [("gaussian", 1.0), ("gaussian", 0.0), ("laplace", 1.0), ("response", 1.0), ("response", 3.0)]
ALPHA = 0.2  # large, so that false refutations happen and can be counted


@cache
def mean_low_of_coins(right, trials):
    return st.mean_interval(np.repeat([1.0, 0.0], [right, trials - right]), ALPHA)[0]


def false_refutations(mechanism, repeats, trials=150):
    """How often each statistic says more than the truth, with the threshold fixed before."""
    rng = np.random.default_rng(6)
    wrong = dict.fromkeys(("success", "balanced", "roc", "epsilon", "one run", "mean"), 0)
    tpr, fpr = true_rates(mechanism, 0.5)
    truth, curve = (tpr + 1 - fpr) / 2, None
    if mechanism[0] == "gaussian":
        curve = gaussian_curve(mechanism[1])
        epsilon, delta = 0.5, max(0.0, tpr - math.exp(0.5) * fpr, (1 - fpr) - math.exp(0.5) * (1 - tpr))
    else:
        epsilon, delta = mechanism[1], 0.0
        curve = highest_roc(epsilon, 0.0)
    for _ in range(repeats):
        member = rng.random(trials) < 0.5
        says = scores_of(mechanism, member, rng) > 0.5
        right = says == member
        counts = int((says & member).sum()), int(member.sum()), int((says & ~member).sum()), int((~member).sum())
        balanced = st.Balanced(counts[0], counts[1], counts[3] - counts[2], counts[3])
        wrong["success"] += st.interval(int(right.sum()), trials, ALPHA)[0] > truth
        wrong["balanced"] += balanced.p_value(truth) <= ALPHA / 2
        wrong["roc"] += st.true_positive_rate(*counts, ALPHA).refutes(curve)
        wrong["epsilon"] += st.epsilon_p_value(*counts, epsilon, delta) <= ALPHA / 2
        wrong["mean"] += mean_low_of_coins(int(right.sum()), trials) > truth
        if delta == 0:
            wrong["one run"] += st.one_run(int(right.sum()), trials, epsilon) <= ALPHA / 2
    return wrong


def assert_no_wolf(mechanism, repeats):
    for name, count in false_refutations(mechanism, repeats).items():
        assert not too_often(count, repeats, ALPHA / 2), name


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms_of_known_leakage_are_not_refuted(mechanism):
    assert_no_wolf(mechanism, 200)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms_of_known_leakage_are_not_refuted_in_2000_repeats(mechanism):
    assert_no_wolf(mechanism, 2000)


def test_a_threshold_chosen_after_seeing_the_scores_is_caught():
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(200):
        member = rng.random(150) < 0.5
        scores = scores_of(("gaussian", 0.0), member, rng)
        best = max(int(((scores > cut) == member).sum()) for cut in scores)
        wrong += st.interval(best, 150, ALPHA)[0] > 0.5
    assert too_often(wrong, 200, ALPHA / 2)


def test_normal_intervals_cry_wolf_at_high_success():
    rng = np.random.default_rng(8)
    wins = rng.binomial(60, 0.99, size=200)
    assert too_often(sum(wald(k, 60, ALPHA)[0] > 0.99 for k in wins), 200, ALPHA / 2)
    assert not too_often(sum(st.interval(int(k), 60, ALPHA)[0] > 0.99 for k in wins), 200, ALPHA / 2)


@pytest.mark.parametrize("mechanism", MECHANISMS[:1] + MECHANISMS[2:])
def test_enough_trials_come_within_a_tenth_of_the_truth(mechanism):
    rng, trials, alpha = np.random.default_rng(9), 200_000, 1e-6
    member = rng.random(trials) < 0.5
    scores = scores_of(mechanism, member, rng)
    right = int(((scores > 0.5) == member).sum())
    tpr, fpr = true_rates(mechanism, 0.5)
    truth = (tpr + 1 - fpr) / 2
    advantage = 2 * st.interval(right, trials, alpha)[0] - 1
    assert 0.9 * (2 * truth - 1) < advantage < 2 * truth - 1
    if mechanism[0] == "gaussian":
        assert truth == pytest.approx(stats.norm.cdf(0.5))
        return
    says = scores > (0.99 if mechanism[0] == "laplace" else 0.5)  # beyond its centre a Laplace ratio is e^epsilon
    counts = int((says & member).sum()), int(member.sum()), int((says & ~member).sum()), int((~member).sum())
    assert 0.9 * mechanism[1] < st.epsilon_lower(*counts, 0.0, alpha) < mechanism[1]
    if mechanism[0] == "response":
        assert 0.9 * mechanism[1] < st.one_run_epsilon(right, trials, alpha) < mechanism[1]


def test_half_the_noise_is_refuted_beyond_doubt():
    rng = np.random.default_rng(10)
    member = rng.random(4000) < 0.5
    right = int(((scores_of(("gaussian", 1.0), member, rng) > 0.5) == member).sum())
    assert st.p_value(right, 4000, stats.norm.cdf(0.25)) < 1e-6 < st.p_value(right, 4000, stats.norm.cdf(0.5))
