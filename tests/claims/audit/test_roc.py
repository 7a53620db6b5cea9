"""Pairs of rates against a curve: a true one is refuted no more often than said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from leakcap.audit import statistics as st
from leakcap.errors import InputError
from tests.claims.audit.chances import gaussian_curve, joint_chances


def excess_of_rates(p_of, curve, members=14, others=25):
    found = np.array([[p_of(a, b) for b in range(others + 1)] for a in range(members + 1)])
    worst = -1.0
    for fpr in (0.0, 0.005, 0.02, 0.05, 0.1, 0.3, 0.7, 1.0):
        law = joint_chances(members, others, curve(fpr), fpr)
        order = np.argsort(found, axis=None)
        ranked, total = found.ravel()[order], np.cumsum(law.ravel()[order])
        last = np.append(ranked[1:] > ranked[:-1], True)
        worst = max(worst, float((total - ranked)[last].max()))
    return worst


CURVES = [
    gaussian_curve(1.0),
    lambda fpr: np.minimum(1.0, 3 * fpr),
    lambda fpr: np.minimum(1.0, fpr + 0.2),
    lambda fpr: 0.5,
]


@pytest.mark.parametrize("curve", CURVES)
def test_a_true_roc_is_refuted_no_more_often_than_said(curve):
    assert excess_of_rates(lambda a, b: st.true_positive_rate(a, 14, b, 25, 0.1).p_value(curve), curve) < 1e-12


def test_using_the_false_alarms_that_were_seen_is_caught():
    curve = CURVES[1]
    assert excess_of_rates(lambda a, b: st.p_value(a, 14, curve(b / 25)), curve) > 0.1


def test_the_search_over_false_alarm_rates_finds_the_maximum_and_never_less():
    rates = np.linspace(0, 1, 50_001)
    for (a, b), (distance, n) in itertools.product([(40, 3), (100, 0), (70, 60), (3, 0)], [(0.5, 200), (2.0, 100)]):
        upper = stats.binom.sf(a - 1, n, stats.norm.cdf(stats.norm.ppf(rates) + distance))
        both = upper * stats.binom.cdf(b, n, rates)
        with np.errstate(divide="ignore", invalid="ignore"):
            product = np.where(both > 0, 2 * both * (1 - np.log(both)), 0)
        least = np.minimum(np.minimum(product, 4 * np.minimum(upper, stats.binom.cdf(b, n, rates))), 1).max()
        found = st.true_positive_rate(a, n, b, n, 0.1).p_value(gaussian_curve(distance))
        assert least * (1 - 1e-9) <= found <= 1.011 * least


def test_whatever_the_printed_ends_refute_is_refuted():
    seen = 0
    for a, b, curve, alpha in itertools.product((20, 60, 100), (0, 2, 20), CURVES, (0.05, 1e-4)):
        found = st.true_positive_rate(a, 100, b, 300, alpha)
        if found.tpr_low > curve(found.fpr_high):
            seen += 1
            assert found.refutes(curve)
        assert found.fpr_low <= found.fpr <= found.fpr_high and found.tpr_low <= found.tpr <= found.tpr_high
    assert seen > 10


def test_a_refutation_at_alpha_spends_one_side_of_it():
    found = st.true_positive_rate(30, 100, 20, 300, 0.05)
    p = found.p_value(CURVES[1])
    assert 1e-4 < p < 0.3
    assert st.true_positive_rate(30, 100, 20, 300, 2.05 * p).refutes(CURVES[1])
    assert not st.true_positive_rate(30, 100, 20, 300, 1.95 * p).refutes(CURVES[1])


def test_ends_are_found_and_checked_for_any_counts():
    rng = np.random.default_rng(3)
    n = np.floor(10 ** rng.uniform(0, 9, 4000)).astype(int)
    few = np.floor(n * 10 ** rng.uniform(-9, 0, 4000)).astype(int)
    k = np.where(rng.random(4000) < 0.5, few, n - few)
    for alpha in (0.5, 1e-6, 1e-12):
        low, high = st.interval(k, n, alpha)
        assert ((low >= 0) & (low <= k / n) & (k / n <= high) & (high <= 1)).all()


def test_a_curve_that_falls_is_refused():
    with pytest.raises(InputError, match="does not fall"):
        st.true_positive_rate(5, 10, 1, 10, 0.05).p_value(lambda fpr: 1 - fpr)
