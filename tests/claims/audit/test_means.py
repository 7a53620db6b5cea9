"""Intervals and p-values of means, against exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from leakcap.audit import statistics as st
from leakcap.errors import InputError
from tests.claims.audit.chances import GRID, worst_excess


def excess_of_means(ends, n, alpha):
    """How much likelier than alpha / 2 the interval misses, over coins whose chances differ from draw to draw."""
    low, high = np.array([ends(np.repeat([1.0, 0.0], [k, n - k])) for k in range(n + 1)]).T
    worst = -1.0
    for p, tilt in itertools.product(GRID, (0.0, 0.3, 1.0)):
        each = np.clip(p + tilt * np.linspace(-0.5, 0.5, n), 0, 1)
        law = np.ones(1)
        for one in each:
            law = np.convolve(law, [1 - one, one])
        truth = each.mean()
        worst = max(worst, law[low > truth + 1e-12].sum() - alpha / 2, law[high < truth - 1e-12].sum() - alpha / 2)
    return worst


def normal_mean(x, alpha):
    half = stats.norm.isf(alpha / 2) * x.std(ddof=1) / math.sqrt(len(x))
    return x.mean() - half, x.mean() + half


@pytest.mark.parametrize("alpha", [0.5, 0.1, 1e-3])
def test_mean_intervals_cover_exactly_also_for_unequal_laws(alpha):
    for n in (2, 5, 25):
        assert excess_of_means(lambda x: st.mean_interval(x, alpha), n, alpha) <= 1e-12
    assert excess_of_means(lambda x: normal_mean(x, alpha), 25, alpha) > 0.05  # the twin is caught


@pytest.mark.parametrize("bound", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_p_values_of_means_are_valid_exactly_and_agree_with_the_interval(bound):
    def p_of(k, n):
        return st.mean_p_value(np.repeat([1.0, 0.0], [k, n - k]), bound)

    for n in (1, 7, 30):
        assert worst_excess(lambda k, n=n: p_of(k, n), n, bound) < 1e-12
    for k, alpha in itertools.product(range(31), (0.5, 0.01)):
        if abs(p_of(k, 30) - alpha / 2) > 1e-6:
            low = st.mean_interval(np.repeat([1.0, 0.0], [k, 30 - k]), alpha)[0]
            assert (low > bound) == (p_of(k, 30) < alpha / 2)
    assert 0 < st.mean_p_value(np.ones(5000), 0.5) < 1e-300


def test_mean_intervals_cover_three_values_exactly():
    n, alpha = 10, 0.2
    counts = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    ends = np.array([st.mean_interval(np.repeat([-1.0, 0.0, 3.0], one), alpha, -1.0, 3.0) for one in counts])
    for law in [(0.9, 0.05, 0.05), (0.05, 0.05, 0.9), (0.01, 0.98, 0.01), (0.3, 0.4, 0.3), (0.0, 0.97, 0.03)]:
        weight = np.array([stats.multinomial.pmf(one, n, law) for one in counts])
        truth = np.dot(law, [-1.0, 0.0, 3.0])
        assert weight[ends[:, 0] > truth].sum() <= alpha / 2 and weight[ends[:, 1] < truth].sum() <= alpha / 2


def test_mean_intervals_are_exact_at_the_bounds_and_narrow_where_values_agree():
    assert st.mean_interval(np.zeros(100), 0.05)[0] == 0 and st.mean_interval(np.ones(100), 0.05)[1] == 1
    assert st.mean_interval([2.0], 0.05, 2.0, 4.0)[0] == 2.0
    low, high = st.mean_interval(np.random.default_rng(1).normal(0.55, 0.01, 2000), 1e-6)
    assert 0.54 < low < 0.55 < high < 0.56
    x = np.random.default_rng(2).random(500)
    forth, back = st.mean_interval(x, 0.01), st.mean_interval(x[::-1], 0.01)
    assert forth == pytest.approx(back, abs=1e-7)  # no order is better than another
    with pytest.raises(InputError, match="from low to high"):
        st.mean_interval([0.5, 1.2], 0.05)
