"""Audit statistics against exact enumeration, 50-digit arithmetic and linear programs that share no code with them.

Every check of validity has a twin: a popular wrong way, planted, which the same check must catch.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import optimize, sparse, special, stats

from leakcap.audit import statistics as st
from leakcap.errors import InputError

GRID = np.unique(np.concatenate([np.linspace(0, 1, 41), [1e-6, 1e-3, 0.01, 0.99, 0.999, 1 - 1e-6]]))


def chances(n, p):
    """Binomial chances of 0 to n wins, from factorials."""
    k = np.arange(n + 1)
    return np.array([math.comb(n, int(one)) for one in k], dtype=float) * float(p) ** k * (1 - float(p)) ** (n - k)


def exact_tail(wins, trials, p):
    p = Fraction(p)
    return sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(wins, trials + 1))


# ---- one rate


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


def wald(k, n, alpha):
    """The twin: mean plus or minus normal errors."""
    half = stats.norm.isf(alpha / 2) * np.sqrt(k / n * (1 - k / n) / n)
    return k / n - half, k / n + half


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


def worst_excess(p_of, trials, bound):
    """How much likelier than a, at most, p-values up to a are, over all a, for rates up to the bound."""
    found = np.array([p_of(k) for k in range(trials + 1)])
    return max((chances(trials, rate)[found <= a].sum() - a) for a in np.unique(found) for rate in (bound, bound / 2))


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


# ---- how many trials


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


# ---- two rates


def joint_chances(members, others, tpr, fpr):
    return np.outer(chances(members, tpr), chances(others, fpr))


@cache
def balanced_tables(members, others, alpha):
    """Ends of the interval for all outcomes (right among members, right among others)."""
    return np.array(
        [[st.Balanced(a, members, b, others).interval(alpha) for b in range(others + 1)] for a in range(members + 1)]
    )


def test_the_balanced_interval_covers_exactly():
    for (members, others), alpha in itertools.product([(6, 5), (9, 2)], (0.5, 0.05)):
        ends = balanced_tables(members, others, alpha)
        for tpr, tnr in itertools.product(np.linspace(0, 1, 11), repeat=2):
            law, truth = joint_chances(members, others, tpr, tnr), (tpr + tnr) / 2
            assert law[ends[..., 0] > truth + 1e-12].sum() <= alpha / 2
            assert law[ends[..., 1] < truth - 1e-12].sum() <= alpha / 2


def excess_of_balanced(p_of, members, others, bound):
    """How much likelier than a, at most, p-values up to a are, over all splits of the bound into two rates."""
    found = np.array([[p_of(a, b) for b in range(others + 1)] for a in range(members + 1)])
    worst = -1.0
    for tpr in np.linspace(max(0, 2 * bound - 1), min(1, 2 * bound), 21):
        law = joint_chances(members, others, tpr, 2 * bound - tpr)
        order = np.argsort(found, axis=None)
        ranked, total = found.ravel()[order], np.cumsum(law.ravel()[order])
        last = np.append(ranked[1:] > ranked[:-1], True)
        worst = max(worst, float((total - ranked)[last].max()))
    return worst


@pytest.mark.parametrize("bound", [0.3, 0.5, 0.55, 0.8, 0.95])
def test_balanced_p_values_are_valid_for_every_split(bound):
    for members, others in [(8, 8), (15, 4)]:
        assert (
            excess_of_balanced(
                lambda a, b, m=members, o=others: st.Balanced(a, m, b, o).p_value(bound), members, others, bound
            )
            < 1e-12
        )


def test_wrong_balanced_p_values_are_caught():
    def pooled(a, b):  # counts all trials alike: always saying "member" wins where members are many
        return st.p_value(a + b, 19, 0.55)

    def bare_product(a, b):  # of the two p-values, as if it were one
        return st.p_value(a, 8, 0.55) * st.p_value(b, 8, 0.55)

    assert excess_of_balanced(pooled, 15, 4, 0.55) > 0.1
    assert excess_of_balanced(bare_product, 8, 8, 0.55) > 0.1


def test_balanced_is_exact_at_its_ends_and_beats_the_union_of_two_intervals():
    assert st.Balanced(9, 9, 7, 7).interval(0.05)[1] == 1 and st.Balanced(0, 9, 0, 7).interval(0.05)[0] == 0
    assert st.Balanced(9, 9, 7, 7).p_value(1.0) == 1 and st.Balanced(1, 9, 0, 7).p_value(0.0) < 1e-300
    assert st.Balanced(0, 9, 0, 7).p_value(0.0) == 1
    assert st.Balanced(0, 9, 7, 7).estimate == 0.5
    for alpha in (0.05, 1e-6):
        low, high = st.Balanced(550, 1000, 560, 1000).interval(alpha)
        one, other = st.interval(550, 1000, alpha / 2), st.interval(560, 1000, alpha / 2)
        assert low > (one[0] + other[0]) / 2 and high < (one[1] + other[1]) / 2


def test_a_share_of_nothing_leaves_the_other_share_its_say():
    """At balanced success .4 and TPR 0 the FPR is at least .2: no accusation in 50 trials speaks against it."""
    assert st.Balanced(0, 50, 50, 50).p_value(0.4) == pytest.approx(4 * 0.8**50, rel=0.02)


def gaussian_curve(distance):
    return lambda fpr: special.ndtr(special.ndtri(fpr) + distance)


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


# ---- epsilon


def highest_roc(epsilon, delta):
    """The ROC of the least private mechanism that is (epsilon, delta)-private."""
    e = math.exp(epsilon)
    return lambda fpr: np.clip(np.minimum(e * fpr + delta, 1 - (1 - fpr - delta) / e), 0.0, 1.0)


@cache
def epsilon_table(delta, alpha, members=8, others=12):
    return np.array(
        [[st.epsilon_lower(a, members, b, others, delta, alpha) for b in range(others + 1)] for a in range(members + 1)]
    )


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_epsilon_is_never_said_to_be_larger_than_it_is_too_often(epsilon, delta):
    for alpha in (0.3, 0.05):
        found = epsilon_table(delta, alpha)
        for fpr in (0.0, 1e-3, 0.02, 0.1, 1 / (1 + math.exp(epsilon)), 0.5, 0.9):
            law = joint_chances(8, 12, highest_roc(epsilon, delta)(fpr), fpr)
            assert law[found > epsilon].sum() <= alpha


def test_the_ratio_of_the_rates_that_were_seen_is_caught():
    seen = np.array([[math.log(max(a, 0.5) / 10 / (max(b, 0.5) / 16)) for b in range(17)] for a in range(11)])
    assert joint_chances(10, 16, highest_roc(1.0, 0.0)(0.1), 0.1)[seen > 1.0].sum() > 0.3


def test_epsilon_has_sound_ends():
    assert st.epsilon_lower(5, 10, 5, 10, 0.0, 0.05) == 0 and st.epsilon_lower(10, 10, 0, 10, 1.0, 0.05) == 0
    assert st.epsilon_p_value(5, 10, 5, 10, 0.0, 0.0) == 1
    assert 2.5 < st.epsilon_lower(100, 100, 0, 100, 0.0, 0.05) < math.log(100)
    at = st.epsilon_lower(80, 100, 20, 100, 0.01, 1e-3)
    assert st.epsilon_p_value(80, 100, 20, 100, at, 0.01) <= 1.02e-3
    assert st.epsilon_p_value(80, 100, 20, 100, at + 0.05, 0.01) > 1e-3
    assert st.epsilon_p_value(80, 100, 20, 100, 800.0, 0.01) == 1


# ---- one run


def largest_chance(coins, epsilon, delta, wins):
    """The most likely `wins(guess, coins)` can be, over all (epsilon, delta)-private mechanisms: a linear program.

    A mechanism is a law over guesses (one of 0, 1, abstain per coin) for every state of the coins.
    """
    states = list(itertools.product((0, 1), repeat=coins))
    guesses = list(itertools.product((0, 1, None), repeat=coins))
    size, slots = len(guesses), len(states) * coins
    law = {state: place * size for place, state in enumerate(states)}
    variables = len(states) * size + slots * size  # the laws, and how much each exceeds e^epsilon times its neighbour
    rows, columns, entries, limits = [], [], [], []
    for slot, (state, coin) in enumerate(itertools.product(states, range(coins))):
        other = tuple(1 - bit if place == coin else bit for place, bit in enumerate(state))
        excess = len(states) * size + slot * size
        for g in range(size):
            row = len(limits)
            rows += [row] * 3
            columns += [law[state] + g, law[other] + g, excess + g]
            entries += [1.0, -math.exp(epsilon), -1.0]
            limits.append(0.0)
        rows += [len(limits)] * size
        columns += range(excess, excess + size)
        entries += [1.0] * size
        limits.append(delta)
    whole = sparse.lil_matrix((len(states), variables))
    gain = np.zeros(variables)
    for place, state in enumerate(states):
        whole[place, law[state] : law[state] + size] = 1.0
        for g, guess in enumerate(guesses):
            gain[law[state] + g] = wins(guess, state) / len(states)
    bounds = sparse.csr_matrix((entries, (rows, columns)), shape=(len(limits), variables))
    found = optimize.linprog(-gain, bounds, limits, whole.tocsr(), np.ones(len(states)), bounds=(0, None))
    assert found.status == 0
    return -found.fun


def right_and_made(guess, state):
    made = [(g, s) for g, s in zip(guess, state, strict=True) if g is not None]
    return sum(g == s for g, s in made), len(made)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.01), (1.0, 0.05), (0.0, 0.02)])
def test_no_private_mechanism_beats_the_one_run_p_value(epsilon, delta):
    for guesses in (1, 2, 3):
        for right in range(1, guesses + 1):
            best = largest_chance(
                3, epsilon, delta, lambda g, s, v=right, r=guesses: right_and_made(g, s)[1] == r
                and right_and_made(g, s)[0] >= v
            )  # fmt: skip
            p = st.one_run(right, guesses, epsilon, delta, bits=3)
            assert best <= p + 1e-7
            assert best == pytest.approx(p, rel=1e-6)  # and some mechanism attains it
            if delta > 0:  # the twin that forgets delta
                assert best > st.one_run(right, guesses, epsilon) + 1e-3


def test_the_attacker_may_choose_how_many_to_guess_without_delta():
    for level in (0.1, 0.4, 0.6):
        best = largest_chance(
            3, 0.7, 0.0, lambda g, s, a=level: st.one_run(*right_and_made(g, s), 0.7) <= a
        )  # fmt: skip
        assert best <= level + 1e-9


def test_one_run_inverts_and_has_sound_ends():
    assert st.one_run(0, 0, 1.0) == 1 and st.one_run_epsilon(0, 0, 0.05) == 0
    assert st.one_run(3, 3, 0.0) == 0.125
    assert st.one_run_epsilon(10, 40, 0.05) == 0
    for right, guesses, delta in [(30, 35, 0.0), (40, 40, 0.0), (700, 1000, 1e-5), (1000, 1000, 1e-6)]:
        found = st.one_run_epsilon(right, guesses, 0.01, delta, bits=2000)
        assert found > 0.3
        assert st.one_run(right, guesses, found, delta, 2000) <= 0.01
        assert st.one_run(right, guesses, found + 1e-3, delta, 2000) > 0.01
    # All right: p^r = alpha.
    p = 0.01 ** (1 / 40)
    assert st.one_run_epsilon(40, 40, 0.01) == pytest.approx(math.log(p / (1 - p)), abs=1e-6)
    # Too small for doubles: the price of delta remains, at most delta * bits / right / (1 - fall).
    assert st.one_run(10_000, 10_000, 0.01, 1e-9, 10_000) == pytest.approx(1e-9, rel=1e-6)


def test_one_run_asks_for_what_it_needs():
    with pytest.raises(InputError, match="bits="):
        st.one_run(5, 6, 1.0, delta=1e-5)
    with pytest.raises(InputError, match="nobody guessed"):
        st.one_run(5, 6, 1.0, delta=1e-5, bits=5)
    with pytest.raises(InputError, match="right ones"):
        st.one_run(7, 6, 1.0)


# ---- means


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


# ---- whole audits of mechanisms whose leakage is known


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
