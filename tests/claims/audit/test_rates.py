"""Intervals, p-values and numbers of trials of one share, against exact sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from leakcap.audit import statistics as st
from leakcap.audit.statistics import rates
from leakcap.audit.statistics.tails import high_end, low_end
from leakcap.errors import InputError, NumericalError
from tests.claims.audit.chances import GRID, chances, wald, worst_excess


def exact_tail(wins, trials, p):
    p = Fraction(p)
    return sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(wins, trials + 1))


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize(("wins", "trials"), [(1, 1), (1, 2), (6, 7), (3, 60), (30, 60), (59, 60), (110, 200), (1, 90)])
def test_ends_of_the_interval_have_the_chance_asked_for(wins, trials, alpha):
    low, high = st.interval(wins, trials, alpha)
    side = Fraction(alpha / 2)
    assert 1 - 1e-9 < exact_tail(wins, trials, low) / side <= 1
    if wins == trials:
        assert high == 1
        return
    # An end near 1 can be no more exact than the distance of doubles there: just below it the chance is too large.
    below = np.nextafter(np.nextafter(high - 1e-10 * (1 - high), 0), 0)
    assert 1 - exact_tail(wins + 1, trials, high) <= side <= 1 - exact_tail(wins + 1, trials, below)


def misses(ends, trials, p):
    """Chances that an interval lies above p, and below it, over all outcomes."""
    low, high = ends(np.arange(trials + 1), np.full(trials + 1, trials))
    law = chances(trials, p)
    return law[low > p].sum(), law[high < p].sum()


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3, 1e-6])
def test_the_interval_covers_every_rate(alpha):
    for trials in (1, 2, 3, 5, 10, 29, 60):
        for p in GRID:
            assert max(misses(lambda k, n: st.interval(k, n, alpha), trials, p)) <= alpha / 2 * (1 + 1e-9)


def test_normal_intervals_are_caught_at_no_errors():
    for alpha in (0.05, 1e-3):
        assert misses(lambda k, n, a=alpha: wald(k, n, a), 60, 0.99)[0] > 0.5  # all 60 right, and no width at all
        assert misses(lambda k, n, a=alpha: wald(k, n, a), 60, 0.01)[1] > 0.5


def test_nothing_and_everything_are_exact():
    assert st.interval(0, 50, 0.05) == (0.0, pytest.approx(1 - 0.025 ** (1 / 50), rel=1e-11))
    assert st.interval(50, 50, 1e-12) == (pytest.approx(5e-13 ** (1 / 50), rel=1e-11), 1.0)
    low, high = st.interval(np.array([0, 5, 10]), 10, 0.05)
    assert low[0] == 0 and high[-1] == 1 and (low <= [0, 0.5, 1]).all() and (high >= [0, 0.5, 1]).all()
    assert st.interval(1, 10**9, 1e-12)[0] == pytest.approx(5e-22, rel=1e-9)


@pytest.mark.parametrize("bound", [1e-9, 0.01, 0.5, 0.55, 0.99, 1 - 1e-9])
def test_p_values_are_exact_far_into_the_tail(bound):
    for wins, trials in [(1, 1), (3, 5), (20, 30), (60, 60), (150, 240), (400, 400)]:
        exact = exact_tail(wins, trials, bound)
        if exact > Fraction(10) ** -307:
            assert st.p_value(wins, trials, bound) == pytest.approx(float(exact), rel=1e-9)
        else:
            assert 0 < st.p_value(wins, trials, bound) < 1e-307


@pytest.mark.parametrize(
    ("wins", "trials", "bound"), [(552_000, 10**6, 0.55), (60_000, 10**5, 0.55), (40, 10**7, 1e-6)]
)
def test_p_values_are_exact_for_many_trials(wins, trials, bound):
    with mpmath.workdps(50):
        p, k = mpmath.mpf(bound), wins
        term = mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k)
        total = mpmath.mpf(0)
        while term > total * mpmath.mpf(10) ** -30:
            total += term
            term *= mpmath.mpf(trials - k) / (k + 1) * p / (1 - p)
            k += 1
        assert st.p_value(wins, trials, bound) == pytest.approx(float(total), rel=1e-8)


def test_p_values_are_defined_at_both_ends():
    assert st.p_value(0, 5, 0.0) == 1 and st.p_value(1, 5, 0.0) == 0
    assert st.p_value(5, 5, 1.0) == 1 and st.p_value(0, 5, 0.5) == 1
    assert 1e-302 < st.p_value(1000, 1000, 0.5) < 1e-300
    assert st.p_value(10**6, 10**6, 0.5) > 0
    np.testing.assert_array_equal(st.p_value(np.array([0, 1]), 2, 0.5), [1, 0.75])


@pytest.mark.parametrize("bound", [0.0, 0.1, 0.5, 0.55, 0.9, 1.0])
def test_p_values_are_valid_exactly(bound):
    for trials in (1, 7, 40):
        assert worst_excess(lambda k, n=trials: st.p_value(k, n, bound), trials, bound) < 1e-12


def test_a_normal_p_value_is_caught():
    def normal(k):
        return stats.norm.sf((k - 40 * 0.95) / math.sqrt(40 * 0.95 * 0.05))

    assert worst_excess(normal, 40, 0.95) > 0.005


def test_interval_and_p_value_tell_the_same():
    for wins, bound, alpha in itertools.product(range(41), (0.1, 0.5, 0.55, 0.8), (0.2, 0.05, 1e-4)):
        p = st.p_value(wins, 40, bound)
        if not math.isclose(p, alpha / 2, rel_tol=1e-6):
            assert (st.interval(wins, 40, alpha)[0] > bound) == (p < alpha / 2)


def test_no_trials_say_what_to_do():
    for call in (lambda: st.interval(0, 0, 0.05), lambda: st.p_value(0, 0, 0.5), lambda: st.mean_interval([], 0.05)):
        with pytest.raises(InputError, match="make more releases"):
            call()
    for call in (
        lambda: st.Balanced(0, 0, 3, 5),
        lambda: st.true_positive_rate(1, 5, 0, 0, 0.05),
        lambda: st.epsilon_lower(0, 0, 0, 5, 0.0, 0.05),
    ):
        with pytest.raises(InputError, match="judge more trials"):
            call()
    with pytest.raises(InputError, match="whole numbers"):
        st.interval(0.5, 3, 0.05)
    with pytest.raises(InputError, match="from 0 to trials"):
        st.p_value(4, 3, 0.5)


def decided(share, bound, alpha, slack, n):
    """By whole numbers of wins, on the careful side."""
    low = st.interval(math.floor(share * n + 1e-9), n, alpha)[0]
    high = st.interval(math.ceil(share * n - 1e-9), n, alpha)[1]
    return low > bound or high <= bound + slack


@pytest.mark.parametrize(
    ("share", "bound", "alpha", "slack"),
    [(0.6, 0.55, 0.05, 0.01), (0.5, 0.55, 1e-6, 0.01), (0.554, 0.55, 0.05, 0.02), (1.0, 0.55, 1e-6, 0.01),
     (0.0, 0.0, 0.05, 0.01), (0.9, 0.5, 1e-3, 0.0), (0.55, 0.55, 0.05, 0.05)],
)  # fmt: skip
def test_so_many_trials_decide_and_far_fewer_do_not(share, bound, alpha, slack):
    n = st.trials_to_decide(share, bound, alpha, slack)
    assert any(decided(share, bound, alpha, slack, m) for m in range(n, math.ceil(1.05 * n) + 5))
    assert not any(decided(share, bound, alpha, slack, m) for m in range(1, math.floor(0.95 * n)))


def test_no_number_decides_at_the_bound_itself_without_slack():
    assert st.trials_to_decide(0.55, 0.55, 0.05, slack=0.0) is None
    assert st.trials_to_decide(0.0, 0.0, 0.05, slack=0.0) is None
    assert st.trials_to_decide(0.55 + 1e-12, 0.55, 0.05, slack=0.0) is None
    assert st.trials_to_decide(0.3, 0.995, 0.05) == 1  # nothing lies above 1: it holds at once


def test_either_error_may_be_asked_for_separately():
    strict, mild = st.trials_to_decide(0.5, 0.55, 1e-6), st.trials_to_decide(0.5, 0.55, 0.05)
    assert st.trials_to_decide(0.5, 0.55, 1e-6, shown=0.05) == mild < strict
    assert st.trials_to_decide(0.6, 0.55, 1e-6, shown=0.05) == st.trials_to_decide(0.6, 0.55, 1e-6)


@pytest.mark.parametrize("bound", [1e-3, 0.0123, 0.6, 0.999])
@pytest.mark.parametrize("excess", [-1e-3, -1e-12, 1e-15, 1e-9, 1e-6, 9e-4])
def test_a_forecast_for_a_rare_event_or_a_share_near_its_bound_is_always_made(bound, excess):
    """A share of a thousandth is less than one win in few trials, whose lower end is too small for a double."""
    slack = min(0.01, 0.2 * bound)
    n = st.trials_to_decide(bound + excess, bound, 2e-8, slack, shown=0.05)
    assert n is not None and 1 <= n < 2**40


@pytest.mark.parametrize(("wins", "trials"), [(1e-3, 1), (0.02, 2), (0.3, 3), (0.98, 1)])
def test_ends_for_less_than_one_win_are_exact_or_nothing(wins, trials):
    low, high = float(low_end(wins, trials, 1e-6)), float(high_end(trials - wins, trials, 1e-6))

    def missed(log_rate):
        return mpmath.betainc(wins, trials - wins + 1, 0, mpmath.exp(log_rate), regularized=True) - 1e-6

    with mpmath.workdps(60):
        exact = mpmath.findroot(missed, mpmath.log(1e-6) / wins)
    assert low == (pytest.approx(float(mpmath.exp(exact)), rel=1e-9) if exact > -700 else 0.0)
    assert low >= 0 and 1 - low <= high <= 1


def test_a_forecast_that_cannot_be_computed_is_none(monkeypatch):
    def fails(*given):
        raise NumericalError("an interval could not be computed")

    whole = st.trials_to_decide(0.605, 0.6, 1e-6, 0.01, shown=0.05)
    monkeypatch.setattr(rates, "low_end", fails)
    assert st.trials_to_decide(0.605, 0.6, 1e-6, 0.01, shown=0.05) == whole  # the sooner one is "holds"
    assert st.trials_to_decide(0.7, 0.6, 1e-6, 0.01, shown=0.05) is None
    monkeypatch.setattr(rates, "high_end", fails)
    assert st.trials_to_decide(0.605, 0.6, 1e-6, 0.01, shown=0.05) is None
