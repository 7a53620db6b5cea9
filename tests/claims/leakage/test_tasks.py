"""Tasks, the leakage curve and the information, against brute force over tasks and arithmetic with many digits."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from leakcap.leakage.certify import entropy_slack
from leakcap.leakage.confidence import log_term, upper
from leakcap.leakage.posterior import Cells, Sampled, View, softmax
from leakcap.leakage.tasks import as_fraction, default_priors, observe_worlds, task_prior

STEP = 2.0**-6


def masses(points):
    """Joint law of world and grid point, `(points, worlds)`, by scipy's distribution function."""
    grid = np.arange(np.floor((points.min() - 9) / STEP), np.ceil((points.max() + 9) / STEP) + 1) * STEP
    high, low = grid[:, None] + STEP / 2 - points, grid[:, None] - STEP / 2 - points
    return np.where(low > 0, norm.sf(low) - norm.sf(high), norm.cdf(high) - norm.cdf(low)) / len(points)


def success(joint, wins):
    """The best attacker's success on a task."""
    return float((joint @ wins).max(axis=1).sum())


def attaining(m, prior):
    """The task of the proof: guess a set of whole worlds and one more that counts in part."""
    k, rest = divmod(prior * m, 1)
    columns = []
    for chosen in itertools.combinations(range(m), int(k)):
        for further in set(range(m)) - set(chosen):
            column = np.zeros(m)
            column[list(chosen)] = 1
            column[further] = float(rest)
            columns.append(column)
    return np.array(columns).T


def random_task(rng, m, prior, guesses=40):
    """Winning probabilities of all kinds, scaled so that no guess has more than the prior."""
    power = rng.choice([0.2, 1.0, 5.0, 30.0])
    wins = rng.random((m, guesses)) ** power
    wins[:, ::2] = wins[:, ::2] > np.quantile(wins[:, ::2], 1 - prior, axis=0)
    return np.minimum(1, wins * np.minimum(1, prior / np.maximum(wins.mean(axis=0), 1e-12)))


PRIORS = [Fraction(1, 7), Fraction(1, 4), Fraction(2, 5), Fraction(1, 2), Fraction(77, 100)]


@pytest.mark.parametrize("spread", [0.2, 1.0, 4.0])
def test_no_task_beats_the_curve_and_one_attains_it(spread):
    rng = np.random.default_rng(3)
    points = spread * rng.standard_normal(7)
    joint = masses(points)
    seen = observe_worlds(Cells(points, STEP), PRIORS)
    curve = seen.curve.estimate
    for prior, bound in zip(PRIORS, curve, strict=True):
        best = attaining(7, prior)
        assert task_prior(best) == pytest.approx(float(prior))
        assert success(joint, best) == pytest.approx(bound, abs=1e-9)
        assert float(prior) <= bound <= 1 + 1e-9
        for _ in range(60):
            task = random_task(rng, 7, float(prior))
            assert task_prior(task) <= float(prior) + 1e-12
            assert success(joint, task) <= bound + 1e-9
            # A task of smaller prior is covered as well.
            assert success(joint, task * 0.7) <= bound + 1e-9
    slopes = np.diff(np.concatenate([[0], curve, [1]])) / np.diff([0, *map(float, PRIORS), 1])
    assert (np.diff(slopes) <= 1e-9).all()  # concave


def test_a_planted_curve_without_its_last_world_is_beaten():
    """Only whole worlds counted: the task of the proof succeeds more often."""
    points = np.random.default_rng(3).standard_normal(7)
    joint = masses(points)
    prior = Fraction(2, 5)
    whole = float(np.sort(joint, axis=1)[:, -int(prior * 7) :].sum())
    assert success(joint, attaining(7, prior)) > whole + 1e-3


def test_whole_worlds_are_counted_in_integers():
    m = 100
    points = 1.3 * np.random.default_rng(4).standard_normal(m)
    ordered = np.sort(masses(points), axis=1)[:, ::-1].sum(axis=0)
    reached = np.concatenate([[0.0], np.cumsum(ordered)])
    priors = [as_fraction(a / 100) for a in range(1, 100)] + [as_fraction(0.575), as_fraction(0.0025)]
    assert priors[56] == Fraction(57, 100)
    curve = observe_worlds(Cells(points, STEP), priors).curve.estimate
    assert np.allclose(curve[:99], reached[1:100], atol=1e-9)
    assert curve[99] == pytest.approx((reached[57] + reached[58]) / 2, abs=1e-9)
    assert curve[100] == pytest.approx(0.25 * reached[1], abs=1e-9)
    # The planted fault: the integer part taken in floating point loses a whole world at 0.29, 0.57 and 0.58.
    naive = np.array([reached[int(a / 100 * 100)] for a in range(1, 100)])
    lost = np.flatnonzero(naive < reached[1:100] - 1e-4) + 1
    assert {29, 57, 58} <= set(lost.tolist())


@pytest.mark.parametrize("m", [2, 3, 10, 252, 1024, 10**6])
def test_the_grid_of_priors_starts_at_one_world_and_stays_below_one(m):
    priors = default_priors(m)
    assert priors[0] == Fraction(1, m)
    assert list(priors) == sorted(set(priors))
    assert priors[-1] < 1


# ---- a task below its prior ---------------------------------------------------------------------------------------

HALF = np.array([[1.0], [1.0], [0.0], [0.0]])  # one guess, which wins in the first two of four worlds
APART = np.array([[0.0], [0.4], [9.0], [9.4]])


class Given:
    """A source of posteriors made by hand, with a stated rounding."""

    prior = None

    def __init__(self, posterior, rounding=0.0):
        self.posterior = np.asarray(posterior)
        self.draws, self.m = self.posterior.shape
        self.rows, self.blocks, self.rounding = self.draws, 1, rounding

    def view(self, block):
        return View(np.ones(self.draws), self.posterior, None, self.rounding)


def task_failures(gamma, runs, bound):
    """How often the bound on the task's success lies below the truth, which is 1/2: the guess is not a choice."""
    failed = 0
    for seed in range(runs):
        source = Sampled(APART, 101, np.random.SeedSequence(seed), stratified=False)
        (mean,) = observe_worlds(source, (), (HALF,)).tasks
        failed += bool(bound(mean)[0] < 0.5)
    return failed


def test_a_task_may_fall_below_its_prior_and_is_still_covered():
    """300 runs at gamma 0.1; a false alarm has probability below 1e-4."""
    assert task_prior(HALF) == 0.5
    worst = observe_worlds(Given(np.array([[0, 0, 1, 0], [0, 0, 0.5, 0.5]], dtype=np.float32)), (), (HALF,)).tasks[0]
    assert worst.estimate[0] == 0  # far below the prior
    best = observe_worlds(Given(np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0]], dtype=np.float32)), (), (HALF,)).tasks[0]
    assert best.estimate[0] == 1
    # The range of values that the bound assumes must hold both; [prior, 1] would not.
    assert worst.span >= best.estimate[0] - worst.estimate[0] > 1 - task_prior(HALF)
    term = log_term(0.1, 1)
    assert task_failures(0.1, 300, lambda mean: upper(mean, term)) <= binom.isf(1e-4, 300, 0.1)


def test_a_planted_bound_on_a_task_without_its_margin_is_caught():
    assert task_failures(0.1, 300, lambda mean: mean.estimate) > binom.isf(1e-4, 300, 0.1)


# ---- information --------------------------------------------------------------------------------------------------


def conditional_entropy(joint):
    """H(W|Y) of a joint law, `(values of Y, worlds)`."""
    total = np.broadcast_to(joint.sum(axis=1, keepdims=True), joint.shape)
    used = joint > 0
    return float(-(joint[used] * np.log(joint[used] / total[used])).sum())


def tables(m, values):
    return (
        st.lists(st.floats(0, 1).map(lambda x: x**6), min_size=m * values, max_size=m * values)
        .filter(lambda row: sum(row) > 1e-2)
        .map(lambda row: np.array(row).reshape(values, m) / sum(row))
    )


@settings(max_examples=150, derandomize=True)
@given(st.data(), st.integers(2, 6), st.integers(1, 4), st.floats(0, 0.5))
def test_entropy_moves_no_more_than_the_stated_continuity_bound(data, m, values, share):
    first = data.draw(tables(m, values))
    second = (1 - share) * first + share * data.draw(tables(m, values))
    distance = np.abs(first - second).sum() / 2
    assert distance <= 0.5 + 1e-12
    moved = abs(conditional_entropy(first) - conditional_entropy(second))
    assert moved <= entropy_slack(min(distance, 0.5), m) + 1e-9


def test_entropy_really_moves_that_much():
    """A certain world that becomes uncertain with probability d: the bound without h(d), planted, is beaten."""
    for d in (1e-12, 1e-6, 0.01, 0.3):
        m = 50
        unsure = np.full((1, m), d / (m - 1))
        unsure[0, 0] = 1 - d
        moved = conditional_entropy(unsure)
        assert d * np.log(m) < moved <= entropy_slack(d, m)
        assert moved > 0.9 * entropy_slack(d, m)


def test_the_slack_is_the_binary_entropy_and_a_share_of_the_worlds():
    for d in (1e-14, 1e-9, 0.2):
        for m in (2, 1024, 2**400):
            x = mpmath.mpf(d)
            exact = x * mpmath.log(m) - x * mpmath.log(x) - (1 - x) * mpmath.log(1 - x)
            assert entropy_slack(d, m) == pytest.approx(float(exact), rel=1e-12)
    assert entropy_slack(0.0, 1024) == 0


@pytest.mark.parametrize(("m", "spread"), [(2, 1.0), (64, 0.01), (64, 1.0), (300, 4.0), (64, 1000.0)])
def test_information_of_single_precision_posteriors_stays_within_its_rounding(m, spread):
    rng = np.random.default_rng(m)
    points = spread * rng.standard_normal((m, 2))
    seen = points[rng.integers(m, size=8)] + rng.standard_normal((8, 2))
    posterior, rounding = softmax(seen, points)
    mp = mpmath.mp.clone()
    mp.dps = 40
    for row, y in zip(posterior, seen.tolist(), strict=True):
        found = observe_worlds(Given(row[None], rounding)).information
        logs = [-mp.fsum((mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(y, z, strict=True)) / 2 for z in points.tolist()]
        total = mp.fsum(mp.exp(one) for one in logs)
        exact = mp.log(m) + mp.fsum(mp.exp(one) / total * (one - mp.log(total)) for one in logs)
        assert abs(found.estimate[0] - float(exact)) <= found.rounding
        assert found.rounding < 3e-4


def test_a_planted_base_two_logarithm_is_caught():
    """Nats, not bits: four worlds told apart for certain are log 4 of information."""
    certain = observe_worlds(Given(np.eye(4, dtype=np.float32))).information
    assert certain.estimate[0] == pytest.approx(np.log(4), abs=certain.rounding + 1e-9)
    assert certain.estimate[0] != pytest.approx(2, abs=0.1)
