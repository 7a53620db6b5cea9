"""What the conversions promise. Oracles: closed forms, exact fractions, 60-digit decimals, brute force."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from leakcap import _kl, convert, proofs
from leakcap.errors import InputError

PAGE = "currency"
patient = settings(deadline=None, max_examples=150)

priors = st.one_of(st.floats(1e-300, 1.0), st.floats(1e-3, 1 - 1e-6))
rates = st.floats(1e-6, 1 - 1e-6)
nats = st.one_of(st.just(0.0), st.floats(1e-14, 1e-6), st.floats(1e-6, 3.0), st.floats(3.0, 800.0))


def exact_kl(a: float | Decimal, p: float | Decimal) -> Decimal:
    """KL(Bern(a) || Bern(p)) with the textbook formula and digits to spare."""
    a, p = Decimal(a), Decimal(p)
    with localcontext() as context:
        context.prec = 50 - 2 * min(x.adjusted() for x in (a, p) if x > 0)
        return sum((x * (x / y).ln() for x, y in ((a, p), (1 - a, 1 - p)) if x > 0), Decimal(0))


def plain_information(joint: np.ndarray) -> float:
    """Mutual information of a table of probabilities."""
    joint = np.asarray(joint, dtype=float)
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / product[seen])).sum())


def binary_channel(rate: float, tpr: float, fpr: float) -> np.ndarray:
    return np.array([[rate * tpr, rate * (1 - tpr)], [(1 - rate) * fpr, (1 - rate) * (1 - fpr)]])


def entropy(q: float) -> float:
    return -q * math.log(q) - (1 - q) * math.log(1 - q)


def ceil_to(value: float, digits: int) -> float:
    return math.ceil(value * 10**digits) / 10**digits


# posterior and mutual_information


@pytest.mark.parametrize(
    ("mi", "prior", "percent"),
    [
        (1 / 128, 0.5, 56.242),
        (1 / 64, 0.5, 58.816),
        (1 / 16, 0.5, 67.491),
        (1 / 4, 0.5, 83.790),
        (1 / 2, 0.5, 95.182),
        (1, 0.01, 35.730),
        (2, 0.01, 58.104),
        (4, 0.01, 92.583),
    ],
)
def test_posterior_gives_the_known_values_rounded_up(mi: float, prior: float, percent: float) -> None:
    assert ceil_to(100 * convert.posterior(mi, prior), 3) == percent


def test_published_table_is_the_same_root_rounded_down() -> None:
    """Table 1 of PAC-Private Algorithms truncates: it prints successes an attacker exceeds (and 6.200 for 6.199)."""
    mi = [1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4]
    half = [56.241, 58.815, 62.434, 67.490, 74.464, 83.789, 95.181, 100, 100, 100]
    percent = [2.477, 3.213, 4.364, 6.199, 9.171, 14.057, 22.177, 35.729, 58.103, 92.582]
    assert np.array_equal(np.floor(1e5 * convert.posterior(mi, 0.5)) / 1e3, half)
    assert np.array_equal(np.floor(1e5 * convert.posterior(mi, 0.01)) / 1e3, percent)


def test_example_1_of_pac_privacy_uses_the_kl_root_at_every_count() -> None:
    """Success at naming x_i among 100 values with MI 1: Theorem 1 for any n, Theorem 2 for n = 10 and 50.

    The paper prints .36, .17 and .06; .17 is what Fano's inequality gives.
    """

    def at_least(n: int) -> list[float]:
        chance = [Fraction(math.comb(n, hits) * 99 ** (n - hits), 100**n) for hits in range(n + 1)]
        return [float(sum(chance[j:])) for j in range(1, n + 1)]

    assert ceil_to(convert.posterior(1, 0.01), 5) == 0.35730
    assert ceil_to(np.mean(convert.posterior(1, at_least(10))), 5) == 0.14893
    assert ceil_to(np.mean(convert.posterior(1, at_least(50))), 5) == 0.06791
    fano = np.mean([min(1, (1 + math.log(2)) / -math.log(prior)) for prior in at_least(10)])
    assert round(fano, 2) == 0.17


@patient
@given(nats, priors)
def test_posterior_is_never_below_the_true_root_and_hardly_above(mi: float, prior: float) -> None:
    success = convert.posterior(mi, prior)
    assert prior <= success <= 1
    if mi == 0:
        assert success == prior
        return
    if success < 1:
        assert exact_kl(success, prior) >= Decimal(mi)
    below = math.nextafter(success, 0)
    if below > prior:
        assert exact_kl(below, prior) < Decimal(mi) * (1 + Decimal("1e-13")) + Decimal("2e-300")


@patient
@given(st.floats(0, 1), st.floats(0, 1))
def test_computed_divergence_is_accurate_to_half_the_slack(a: float, p: float) -> None:
    p = max(p, 1e-290)
    if p == 1:
        return
    computed = float(_kl.bernoulli(np.float64(a - p), np.float64(p), np.float64(1 - p)))
    exact = exact_kl(a, p)
    assert abs(Decimal(computed) - exact) <= exact * Decimal(_kl.SLACK / 2) + Decimal(_kl.FLOOR)


@patient
@given(st.floats(-1e-3, 1e-3), st.floats(1e-3, 1 - 2e-3))
def test_computed_divergence_is_accurate_next_to_the_prior(step: float, p: float) -> None:
    a = p * (1 + step)
    computed = float(_kl.bernoulli(np.float64(a - p), np.float64(p), np.float64(1 - p)))
    exact = exact_kl(a, p)
    assert abs(Decimal(computed) - exact) <= exact * Decimal(_kl.SLACK / 2) + Decimal(_kl.FLOOR)


def test_posterior_is_accurate_for_tiny_information() -> None:
    # KL(1/2 + x || 1/2) = 2 x^2 + 4 x^4/3 + ...
    assert convert.posterior(1e-12, 0.5) - 0.5 == pytest.approx(math.sqrt(0.5e-12), rel=1e-9)
    assert convert.posterior(1e-30, 1e-10) - 1e-10 == pytest.approx(math.sqrt(2e-40), rel=1e-5)


def test_posterior_is_accurate_for_tiny_priors() -> None:
    success = convert.posterior(1.0, 1e-300)
    # a (log a + 300 log 10) + (1-a) log(1-a) = 1
    assert success * (math.log(success) + 300 * math.log(10)) + (1 - success) * math.log1p(-success) == pytest.approx(1)
    assert convert.posterior(1e-12, 1e-300) >= 1e-300
    assert 0 < convert.posterior(1.0, 5e-324) < 0.01


def test_posterior_is_one_from_log_of_one_over_the_prior_on() -> None:
    assert convert.posterior(math.log(2) + 1e-15, 0.5) == 1.0
    assert convert.posterior(math.log(100) + 1e-14, 0.01) == 1.0
    assert convert.posterior(math.log(100) - 1e-9, 0.01) < 1.0
    assert convert.posterior(0.3, 1.0) == 1.0


@patient
@given(st.floats(0, 1), priors)
def test_round_trip_never_gains_privacy(share: float, prior: float) -> None:
    success = min(1.0, prior + share * (1 - prior))
    back = convert.posterior(convert.mutual_information(success, prior), prior)
    assert prior <= back <= success
    assert back == pytest.approx(success, abs=1e-9)


@patient
@given(st.integers(0, 40), st.floats(5e-324, 1.0))
def test_round_trip_never_gains_privacy_a_few_steps_above_the_prior(steps: int, prior: float) -> None:
    success = prior
    for _ in range(steps):
        success = math.nextafter(success, 1.0)
    assert prior <= convert.posterior(convert.mutual_information(success, prior), prior) <= success


@patient
@given(st.floats(0, 1), priors)
def test_mutual_information_is_the_divergence_rounded_down(share: float, prior: float) -> None:
    success = min(1.0, prior + share * (1 - prior))
    budget = convert.mutual_information(success, prior)
    exact = exact_kl(success, prior) if prior < 1 else Decimal(0)
    assert Decimal(budget) <= exact
    assert Decimal(budget) >= exact * (1 - Decimal("1e-12")) - Decimal("1e-299")


@patient
@given(nats, nats, priors, priors)
def test_posterior_grows_with_information_and_prior(mi1: float, mi2: float, p1: float, p2: float) -> None:
    (mi1, mi2), (p1, p2) = sorted((mi1, mi2)), sorted((p1, p2))
    assert convert.posterior(mi1, p1) <= convert.posterior(mi2, p1) * (1 + 1e-12)
    assert convert.posterior(mi1, p1) <= convert.posterior(mi1, p2) * (1 + 1e-12)


def test_fractions_count_as_numbers() -> None:
    assert convert.posterior(Fraction(1, 4), Fraction(1, 2)) == convert.posterior(0.25, 0.5)


# One person: membership, precision, true positive rate


def random_channels(count: int, inputs: int, outputs: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.dirichlet(np.full(inputs * outputs, 0.3)).reshape(inputs, outputs) for _ in range(count)]


@pytest.mark.parametrize("joint", random_channels(40, 2, 5))
def test_no_attacker_on_one_bit_beats_membership_precision_or_true_positive_rate(joint: np.ndarray) -> None:
    rate, mi = float(joint[0].sum()), plain_information(joint) + 1e-15  # row 0: the person took part
    assert joint.max(0).sum() <= convert.membership(mi, rate) + 1e-12
    rules = np.array(list(itertools.product((0, 1), repeat=joint.shape[1])))[1:]  # every way to claim, bar never
    right, wrong = rules @ joint[0], rules @ joint[1]
    tpr, fpr, claims = right / rate, np.minimum(1, wrong / (1 - rate)), np.minimum(1, right + wrong)
    assert (tpr <= convert.true_positive_rate(mi, fpr, rate) + 1e-9).all()
    assert (right / (right + wrong) <= convert.precision(mi, claims, rate) + 1e-9).all()
    assert (right / (right + wrong) <= convert.precision(mi, 0.7 * claims, rate) + 1e-9).all()


def test_membership_prior_is_the_better_blind_guess() -> None:
    assert convert.membership(0.25) == convert.posterior(0.25, 0.5)
    assert convert.membership(0.01, 0.98) == convert.posterior(0.01, 0.98)
    assert convert.membership(0.01, 0.02) == pytest.approx(convert.posterior(0.01, 0.98), rel=1e-14)
    for rate in (0.1, 0.02, 1e-17, 0.3):
        assert Fraction(convert.membership(0.0, rate)) >= 1 - Fraction(rate)


def test_membership_is_attained_by_a_symmetric_channel() -> None:
    for success in (0.55, 0.7, 0.95):
        mi = plain_information(binary_channel(0.5, success, 1 - success))
        assert convert.membership(mi) == pytest.approx(success, abs=1e-9)


def test_naive_identification_bound_would_certify_a_full_reveal() -> None:
    """At rate .02 a release that reveals membership carries only .098 nats about it."""
    reveal = entropy(0.02)
    assert round(reveal, 3) == 0.098
    assert round(convert.posterior(reveal, 0.02), 3) == 0.108  # "at most 10.8 %", while the attacker is always right
    assert convert.precision(reveal, 0.02, 0.02) == 1.0
    assert convert.precision(reveal, 0.01, 0.02) == 1.0


@patient
@given(st.floats(1e-6, 1.0), st.floats(1e-3, 1.0), st.floats(0.01, 0.99))
def test_precision_solves_the_information_of_the_claim_exactly(mi: float, claims: float, rate: float) -> None:
    right = convert.precision(mi, claims, rate)
    assert rate <= right <= 1
    assert claims * right <= rate * (1 + 1e-12) or right == rate
    tpr, fpr = min(1, claims * right / rate), claims * (1 - right) / (1 - rate)
    information = plain_information(binary_channel(rate, tpr, fpr))
    at_the_end = right == 1 or claims * right >= rate * (1 - 1e-12) or claims == 1
    assert information <= mi + 1e-9
    assert at_the_end or information == pytest.approx(mi, abs=1e-9)


@patient
@given(st.floats(1e-6, 1.0), st.floats(1e-3, 1.0), st.floats(1e-3, 1.0), st.floats(0.01, 0.99))
def test_precision_falls_with_the_frequency_of_claims(mi: float, c1: float, c2: float, rate: float) -> None:
    rare, often = sorted((c1, c2))
    assert convert.precision(mi, rare, rate) >= convert.precision(mi, often, rate) * (1 - 1e-12)


def test_precision_is_sharper_than_counting_the_claims_alone() -> None:
    mi, claims, rate = 0.05, 0.3, 0.5
    simple = convert.posterior(mi / claims, rate)  # claims * KL(a || rate) <= mi
    assert convert.precision(mi, claims, rate) < simple - 0.03


def brute_true_positive_rate(mi: float, fpr: float, rate: float) -> float:
    """The best tpr over smaller false positive rates too, each by plain bisection on the textbook formula."""
    best = 0.0
    for smaller in np.linspace(0, fpr, 9):
        low, high = smaller, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if plain_information(binary_channel(rate, middle, smaller)) <= mi else (low, middle)
            )
        best = max(best, low)
    return best


@patient
@given(st.floats(1e-12, 1.0), st.floats(0, 1), rates)
def test_true_positive_rate_is_never_below_the_true_root(mi: float, fpr: float, rate: float) -> None:
    bound = convert.true_positive_rate(mi, fpr, rate)
    with localcontext() as context:
        context.prec = 700
        q, f, t = Decimal(rate), Decimal(fpr), Decimal(bound)
        positive = q * t + (1 - q) * f
        information = None if bound == 1 else q * exact_kl(t, positive) + (1 - q) * exact_kl(f, positive)
    assert bound == 1 or information >= Decimal(mi)


@patient
@given(st.floats(1e-12, 1.0), st.floats(1e-3, 1 - 1e-9), rates)
def test_precision_is_never_below_the_true_root(mi: float, claims: float, rate: float) -> None:
    bound = convert.precision(mi, claims, rate)
    with localcontext() as context:
        context.prec = 100
        c, a, q = Decimal(claims), Decimal(bound), Decimal(rate)
        rest = (q - c * a) / (1 - c)  # share of participants among the releases without a claim
        if bound == 1 or rest <= 0:
            return  # as high as precision goes
        information = c * exact_kl(a, q) + (1 - c) * exact_kl(rest, q)
    assert information >= Decimal(mi)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.8])
@pytest.mark.parametrize("fpr", [0.0, 0.001, 0.01, 0.3, 0.99])
@pytest.mark.parametrize("mi", [1e-4, 0.01, 0.2, 0.6])
def test_true_positive_rate_agrees_with_brute_force(mi: float, fpr: float, rate: float) -> None:
    bound = convert.true_positive_rate(mi, fpr, rate)
    assert bound == pytest.approx(brute_true_positive_rate(mi, fpr, rate), abs=1e-9)


def test_nothing_released_leaves_the_blind_rates() -> None:
    assert convert.true_positive_rate(0, 0.01) == 0.01
    assert convert.true_positive_rate(0, 0) == 0
    assert convert.precision(0, 0.1, 0.3) == 0.3
    assert convert.name_a_member(0, 0.3) == 0.3
    assert convert.generalisation(0) == 0


# Any task: the divergence bounds hold on random releases


def f_divergence(joint: np.ndarray, f) -> float:
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return float((product * f(joint / product)).sum())


GENERATORS = {
    "kl": lambda t: np.where(t > 0, t * np.log(np.maximum(t, 1e-300)), 0.0),
    "tv": lambda t: np.abs(t - 1) / 2,
    "chi2": lambda t: (t - 1) ** 2,
    "hellinger": lambda t: (np.sqrt(t) - 1) ** 2 / 2,
}


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("joint", random_channels(10, 6, 4))
def test_no_task_beats_any_divergence_bound(name: str, joint: np.ndarray) -> None:
    f = GENERATORS[name]
    divergence = f_divergence(joint, f) + 1e-14
    rng = np.random.default_rng(3)
    for _ in range(10):
        wins = rng.random((joint.shape[0], 3)) < 0.4  # which guess wins for which secret
        prior = float((joint.sum(1) @ wins).max())
        success = float((joint.T @ wins).max(1).sum())
        if 0 < prior <= 1:
            assert success <= convert.posterior_f(divergence, prior, name) + 1e-12
            assert success <= convert.posterior_f(divergence, prior, f) + 1e-12


@patient
@given(st.floats(1e-6, 2.0), st.floats(1e-6, 1 - 1e-6), st.sampled_from(sorted(GENERATORS)))
def test_named_divergences_and_their_functions_agree(divergence: float, prior: float, name: str) -> None:
    named, own = convert.posterior_f(divergence, prior, name), convert.posterior_f(divergence, prior, GENERATORS[name])
    assert own == pytest.approx(named, rel=1e-6)


@patient
@given(st.floats(0, 2.0), st.floats(1e-12, 1.0))
def test_total_variation_and_chi2_are_rounded_up_exactly(divergence: float, prior: float) -> None:
    limit, p = Fraction(divergence), Fraction(prior)
    tv, chi2 = convert.posterior_f(divergence, prior, "tv"), convert.posterior_f(divergence, prior, "chi2")
    assert tv == 1 or Fraction(tv) - p >= limit
    assert chi2 == 1 or (Fraction(chi2) - p) ** 2 >= limit * p * (1 - p)


@patient
@given(st.floats(1e-9, 1.0), st.floats(1e-12, 1 - 1e-9))
def test_hellinger_is_rounded_up(divergence: float, prior: float) -> None:
    success = convert.posterior_f(divergence, prior, "hellinger")
    with localcontext() as context:
        context.prec = 80
        a, p = Decimal(success), Decimal(prior)
        assert success == 1 or 1 - (a * p).sqrt() - ((1 - a) * (1 - p)).sqrt() >= Decimal(divergence)


def test_a_function_that_is_no_divergence_is_refused() -> None:
    for f in (
        lambda t: -np.abs(t - 1),
        lambda t: t**2,
        lambda t: 0.0,
        lambda t: np.full_like(t, np.nan),
        "renyi",
        None,
    ):
        with pytest.raises(InputError):
            convert.posterior_f(0.1, 0.5, f)


def test_an_overflowing_divergence_proves_nothing() -> None:
    assert convert.posterior_f(1e250, 1e-200, lambda t: (t - 1) ** 2) == 1.0


# Differential privacy


def test_randomised_response_attains_the_dp_bound() -> None:
    assert ceil_to(convert.from_dp(1), 3) == 0.732
    assert convert.from_dp(0) == 0.5
    for epsilon in (0.1, 1.0, 5.0):
        assert convert.from_dp(epsilon) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)), rel=1e-13)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.9])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.1), (0.0, 0.3), (3.0, 0.01), (1.0, 1.0)]
)
def test_dp_bound_is_the_best_test_that_dp_allows(epsilon: float, delta: float, rate: float) -> None:
    fpr = np.linspace(0, 1, 100_001)
    tpr = np.minimum(np.minimum(np.exp(epsilon) * fpr + delta, 1 - (1 - fpr - delta) / np.exp(epsilon)), 1)
    best = (rate * tpr + (1 - rate) * (1 - fpr)).max()
    bound = convert.from_dp(epsilon, delta, rate=rate)
    assert best - 1e-15 <= bound <= best + 2e-5


def laplace_success(distance: float) -> float:
    """Success at telling two Laplace(1) laws apart, by quadrature."""
    best = lambda y: 0.5 * max(0.5 * math.exp(-abs(y)), 0.5 * math.exp(-abs(y - distance)))  # noqa: E731
    pieces = [quad(best, a, b)[0] for a, b in itertools.pairwise([-40, 0, distance / 2, distance, distance + 40])]
    return sum(pieces)


def test_add_remove_dp_with_fixed_size_needs_twice_epsilon() -> None:
    """Sum of records in [-1, 1] with Laplace(1) noise is 1-DP under add/remove; a swap moves it by 2."""
    truth = laplace_success(2.0)
    assert round(truth, 3) == 0.816
    assert convert.from_dp(1) < truth  # .731, what equation (2) of PAC-Private Algorithms would say
    assert truth < convert.from_dp(1, relation="add_remove", sampling="fixed_size")
    assert round(convert.from_dp(1, relation="add_remove"), 4) == 0.8808
    assert laplace_success(1.0) < convert.from_dp(1, relation="add_remove", sampling="poisson") == convert.from_dp(1)


def test_two_steps_of_add_remove_dp_multiply_delta() -> None:
    """P <= e^eps R + delta and R <= e^eps Q + delta give P <= e^2eps Q + (1 + e^eps) delta."""
    epsilon, delta = 0.5, 0.01
    group = convert.from_dp(2 * epsilon, (1 + math.exp(epsilon)) * delta)
    assert convert.from_dp(epsilon, delta, relation="add_remove") == pytest.approx(group, rel=1e-13)
    assert convert.from_dp(800, 1e-9, relation="add_remove") == 1.0
    assert convert.from_dp(1e308, 0, relation="add_remove") == 1.0


def test_replace_one_dp_with_poisson_sampling_is_refused() -> None:
    """Publishing the number of participants is 0-DP under replace-one and reveals the only person of a pool of one."""
    count_given_in, count_given_out = {1: 1.0}, {0: 1.0}
    success = 0.5 * sum(max(count_given_in.get(n, 0), count_given_out.get(n, 0)) for n in (0, 1))
    assert success == 1.0 > convert.from_dp(2 * 0.0)
    for call in (convert.from_dp, lambda *a, **k: convert.dp_identification_failure(*a, rate=0.5, **k)):
        with pytest.raises(InputError, match="different sizes"):
            call(1, relation="replace_one", sampling="poisson")


def test_dp_bound_does_not_cover_a_short_list_of_known_worlds() -> None:
    """One complementary pair of six: the worlds differ in three records, so 1-DP allows more than .731 (docstring)."""
    assert laplace_success(3.0) > convert.from_dp(1)


def test_identification_failure_is_attained_by_randomised_response() -> None:
    for epsilon, rate in ((1.0, 0.02), (0.3, 0.5), (4.0, 0.9)):
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        failure = (1 - rate) * (1 - keep) / (rate * keep + (1 - rate) * (1 - keep))
        bound = convert.dp_identification_failure(epsilon, rate)
        assert bound == pytest.approx(failure, rel=1e-12)
        exact = (1 - Fraction(rate)) / (1 - Fraction(rate) + Fraction(rate) * Fraction(Decimal(epsilon).exp()))
        assert Fraction(bound) <= exact
    assert convert.dp_identification_failure(1, 0.1, relation="add_remove") == convert.dp_identification_failure(2, 0.1)
    assert convert.dp_identification_failure(1e4, 0.1) == 0


@patient
@given(st.floats(0, 50), st.integers(1, 50))
def test_dp_information_is_never_above_the_papers(epsilon: float, n: int) -> None:
    bound = convert.dp_mutual_information(epsilon, n)
    total = n * epsilon
    assert bound <= total * total / 8 * (1 + 1e-12) + 5e-324  # the paper: total^2 / 2
    assert bound <= total * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
def test_dp_information_is_attained_by_subset_selection(epsilon: float) -> None:
    """Of 2,000 values report a set of w; sets with the true value are e^eps times as likely as the others."""
    values, gain = 2000, math.exp(epsilon)
    bound = convert.dp_mutual_information(epsilon, 1)
    best = 0.0
    for w in range(1, values):
        share = w / values
        scale = 1 / (share * gain + 1 - share)  # likelihood ratio of a set without the true value, against the marginal
        best = max(best, share * gain * scale * math.log(gain * scale) + (1 - share) * scale * math.log(scale))
    assert best <= bound
    assert best == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("sigma", [0.7, 2.0, 10.0])
def test_zcdp_information_holds_for_independent_signs(n: int, sigma: float) -> None:
    """Sum of n fair signs with Gaussian noise: replacing one moves it by 2, so xi = 2/sigma^2."""
    weights = {2 * ups - n: math.comb(n, ups) / 2**n for ups in range(n + 1)}
    law = lambda y, centre: math.exp(-((y - centre) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))  # noqa: E731

    def density(y: float) -> float:
        total = sum(w * law(y, c) for c, w in weights.items())
        return sum(w * law(y, c) * math.log(law(y, c) / total) for c, w in weights.items())

    mi = quad(density, -n - 12 * sigma, n + 12 * sigma, limit=400)[0]
    assert 0 < mi <= convert.zcdp_mutual_information(2 / sigma**2, n)


def test_zcdp_information_may_reach_half_the_bound() -> None:
    """One of 4,000 orthogonal unit vectors in standard Gaussian noise: xi = 1, and about half a nat gets through.

    Mean of 400 draws less a control of mean 0; six standard errors, false alarms below 1e-8.
    """
    rng, values = np.random.default_rng(2), 4000
    noise = rng.standard_normal((400, values))
    seen = noise + np.eye(1, values)  # the first vector was sent
    draws = seen[:, 0] - np.log(np.exp(seen).mean(1)) - noise[:, 0]
    error = 6 * draws.std() / math.sqrt(len(draws))
    assert 0.4 < draws.mean() - error < draws.mean() + error < convert.zcdp_mutual_information(1.0, 1)


def test_renyi_reconstruction_holds_for_gaussian_noise_and_pure_dp() -> None:
    normal = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))  # noqa: E731
    for sigma in (0.5, 1.0, 3.0):
        orders = np.array([1.01, 1.5, 2.0, 4.0, 32.0])
        bounds = convert.rdp_reconstruction(0.5, orders / (2 * sigma**2), orders)  # two values at distance 1
        assert (normal(1 / (2 * sigma)) <= bounds).all()
    assert convert.rdp_reconstruction(0.01, 1.0, math.inf) == pytest.approx(0.01 * math.e, rel=1e-13)
    assert convert.rdp_reconstruction(0.5, 1.0, math.inf) == 1.0
    assert convert.rdp_reconstruction(1e-300, 0.0, math.inf) >= 1e-300
    assert convert.rdp_reconstruction(0.04, 0.0, 2.0) == pytest.approx(0.2, rel=1e-13)


# Generalisation


@pytest.mark.parametrize("joint", random_channels(20, 5, 5))
def test_generalisation_gap_is_bounded_by_information(joint: np.ndarray) -> None:
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    gap = np.maximum(product - joint, 0).sum()  # the worst loss is 1 where fresh data are likelier
    assert gap <= convert.generalisation(plain_information(joint)) + 1e-12


def test_identification_success_does_not_bound_generalisation() -> None:
    """PAC Privacy, Theorem 10, fails: one bit of X among 1,000 values hardly helps to name X but has gap 1/2."""
    values = 1000
    identification = convert.mutual_information(2 / values, 1 / values)  # one bit doubles the best guess
    gap = 0.5  # loss 1 where the published bit is not the data's
    assert math.sqrt(identification / 2) < 0.02
    assert gap <= convert.generalisation(math.log(2))


# Counting bits


@cache
def halves(n: int) -> list[int]:
    sizes = {n // 2, (n + 1) // 2}
    return [sum(1 << i for i in members) for size in sizes for members in itertools.combinations(range(n), size)]


def brute_prior(worlds: list[int], n: int, k: int) -> Fraction:
    """The best of all 2^n guesses."""
    wins = max(sum(n - (world ^ guess).bit_count() >= k for world in worlds) for guess in range(2**n))
    return Fraction(wins, len(worlds))


@pytest.mark.parametrize("n", range(1, 11))
def test_half_prior_is_that_of_the_best_guess_of_any_size(n: int) -> None:
    for k in range(n + 1):
        exact = brute_prior(halves(n), n, k)
        assert exact <= Fraction(convert.bits_right(n, k, "half")) <= exact * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("n", range(1, 9))
def test_independent_prior_is_that_of_the_best_guess(n: int) -> None:
    for k in range(n + 1):
        exact = brute_prior(list(range(2**n)), n, k)
        assert exact <= Fraction(convert.bits_right(n, k)) <= exact * (1 + Fraction(1, 10**11))


def test_a_guess_of_half_the_pool_is_not_always_the_best() -> None:
    """Three of four right: a half-size guess wins in 1/6 of the halves, a single person in 1/2."""
    half_size = max(Fraction(sum(4 - (w ^ g).bit_count() >= 3 for w in halves(4)), 6) for g in halves(4))
    assert half_size == Fraction(1, 6) < Fraction(1, 2) <= Fraction(convert.bits_right(4, 3, "half"))


@pytest.mark.parametrize(("n", "k"), [(100, 70), (1000, 500), (1000, 640), (5000, 2600)])
def test_bit_priors_are_rounded_up_for_large_pools(n: int, k: int) -> None:
    coins = Fraction(sum(math.comb(n, hits) for hits in range(k, n + 1)), 2**n)
    half = Fraction(sum(math.comb(n // 2, o) ** 2 for o in range((k + 1) // 2, n // 2 + 1)), math.comb(n, n // 2))
    assert coins <= Fraction(convert.bits_right(n, k)) <= coins * (1 + Fraction(1, 10**8))
    bound = Fraction(convert.bits_right(n, k, "half"))
    assert half <= bound  # even k: a guess of half the pool is best
    assert bound <= half * (1 + Fraction(1, 10**8)) or k <= n // 2


def test_seventy_of_a_hundred_bits_after_one_nat() -> None:
    assert ceil_to(100 * convert.posterior(1, convert.bits_right(100, 70)), 2) == 13.82


def test_bit_priors_never_underflow_to_zero() -> None:
    assert 0 < convert.bits_right(5000, 5000) < 1e-300
    assert convert.posterior(1.0, convert.bits_right(5000, 5000)) > 0


def test_agreement_prior_is_never_below_the_best_guess() -> None:
    rng = np.random.default_rng(11)
    for n in (3, 6, 8):
        masks = rng.random((12, n)) < 0.5
        masks = np.vstack([masks, ~masks])
        worlds = [int(sum(1 << i for i in np.flatnonzero(row))) for row in masks]
        for k in range(n + 1):
            bound = convert.agreement_prior(masks, k)
            assert brute_prior(worlds, n, k) <= Fraction(bound)
            agreement = (masks[:, None] == masks[None]).sum(2)
            assert bound == pytest.approx((agreement >= 2 * k - n).sum(1).max() / len(masks), rel=1e-15)


def test_agreement_prior_is_at_least_one_world_and_counts_repeats() -> None:
    masks = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 0]])
    assert convert.agreement_prior(masks[1:], 3) == 0.5
    assert Fraction(2, 3) <= Fraction(convert.agreement_prior(masks, 3)) < Fraction(2, 3) + Fraction(1, 10**15)


def test_agreement_prior_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = np.random.default_rng(5).random((30, 47)) < 0.5
    whole = convert.agreement_prior(masks, np.arange(48))
    monkeypatch.setattr(convert, "_CELLS", 7 * 30)
    assert np.array_equal(convert.agreement_prior(masks, np.arange(48)), whole)
    assert whole[0] == 1
    assert whole[-1] == pytest.approx(1 / 30)


# Manners


VECTORISED = [
    (convert.posterior, ([0.0, 1e-9, 0.3, 2.0], [[0.5], [0.01]])),
    (convert.mutual_information, ([0.6, 0.9, 1.0], [[0.5], [0.01]])),
    (convert.membership, ([0.0, 0.1, 0.5], [[0.5], [0.1]])),
    (convert.name_a_member, ([0.0, 0.1, 0.5], [[0.5], [0.1]])),
    (convert.precision, ([0.0, 0.1, 0.5], [[1.0], [0.3], [0.001]], 0.2)),
    (convert.true_positive_rate, ([0.0, 0.1, 0.5], [[0.0], [0.01], [1.0]], 0.2)),
    (convert.from_dp, ([0.0, 1.0, 9.0], [[0.0], [0.1]])),
    (convert.dp_identification_failure, ([0.0, 1.0, 9.0], [[0.5], [0.1]])),
    (convert.dp_mutual_information, ([0.0, 1e-9, 1.0, 9.0], [[1], [100]])),
    (convert.zcdp_mutual_information, ([0.0, 1.0, 9.0], [[1], [100]])),
    (convert.rdp_reconstruction, ([1e-9, 0.5, 1.0], [[0.0], [1.0]], 2.0)),
    (convert.generalisation, ([0.0, 0.1, 5.0],)),
    (convert.bits_right, ([5, 8], [[0], [4], [5]])),
]


@pytest.mark.parametrize(("function", "arguments"), VECTORISED, ids=lambda part: getattr(part, "__name__", ""))
def test_arrays_give_what_their_elements_give(function, arguments) -> None:
    whole = function(*arguments)
    broadcast = np.broadcast_arrays(*arguments)
    assert isinstance(whole, np.ndarray)
    assert whole.shape == broadcast[0].shape
    for place in np.ndindex(whole.shape):
        one = function(*(each[place] for each in broadcast))
        assert type(one) is float
        assert one == whole[place]


@pytest.mark.parametrize("f", [*GENERATORS, GENERATORS["chi2"]])
def test_divergence_bounds_work_on_arrays(f) -> None:
    whole = convert.posterior_f([0.0, 0.1, 0.5], [[0.5], [0.1], [1.0]], f)
    assert whole.shape == (3, 3)
    assert whole[1, 2] == convert.posterior_f(0.5, 0.1, f)
    assert (whole[2] == 1).all()
    assert (whole[:, 0] == [0.5, 0.1, 1.0]).all()


BAD_CALLS = [
    lambda: convert.posterior(-0.1, 0.5),
    lambda: convert.posterior(math.nan, 0.5),
    lambda: convert.posterior(math.inf, 0.5),
    lambda: convert.posterior(0.1, 0.0),
    lambda: convert.posterior(0.1, 1.1),
    lambda: convert.posterior([0.1, -0.1], 0.5),
    lambda: convert.posterior("0.1", 0.5),
    lambda: convert.posterior(True, 0.5),
    lambda: convert.posterior(None, 0.5),
    lambda: convert.posterior(0.1j, 0.5),
    lambda: convert.mutual_information(0.4, 0.5),
    lambda: convert.mutual_information(1.2, 0.5),
    lambda: convert.membership(0.1, 0.0),
    lambda: convert.membership(0.1, 1.0),
    lambda: convert.name_a_member(0.1, 1.0),
    lambda: convert.precision(0.1, 0.0, 0.5),
    lambda: convert.true_positive_rate(0.1, 1.5),
    lambda: convert.true_positive_rate(0.1, 0.1, 0.0),
    lambda: convert.from_dp(-1),
    lambda: convert.from_dp(1, 2),
    lambda: convert.from_dp(1, relation="bounded"),
    lambda: convert.from_dp(1, sampling="shuffle"),
    lambda: convert.dp_mutual_information(1, 0),
    lambda: convert.dp_mutual_information(1, 1.5),
    lambda: convert.zcdp_mutual_information(1, True),
    lambda: convert.rdp_reconstruction(0.1, 1, 1.0),
    lambda: convert.generalisation(-1),
    lambda: convert.bits_right(4, 5),
    lambda: convert.bits_right(4, 2, "quarter"),
    lambda: convert.bits_right(4, -1),
    lambda: convert.agreement_prior([[0, 2]], 1),
    lambda: convert.agreement_prior([0, 1], 1),
    lambda: convert.agreement_prior([[0, 1]], 3),
    lambda: convert.agreement_prior([["a", "b"]], 1),
]


@pytest.mark.parametrize("call", BAD_CALLS)
def test_senseless_arguments_are_refused(call) -> None:
    with pytest.raises(InputError):
        call()


def test_every_public_function_claims_and_names_its_proof() -> None:
    assert convert.__all__ == sorted(convert.__all__)
    for name in convert.__all__:
        function = getattr(convert, name)
        assert "Guarantee:" in function.__doc__, name
        assert ">>>" in function.__doc__, name
        assert f"leakcap.convert.{name}" in proofs.claims()[PAGE]


def test_importing_convert_stays_light() -> None:
    """Convert and what it imports, without the package's other modules."""
    code = f"""
import sys, types
sys.modules["leakcap"] = package = types.ModuleType("leakcap")
package.__path__ = [{str(Path(convert.__file__).parent)!r}]
import leakcap.convert
assert not {{"scipy.stats", "scipy.optimize", "scipy.integrate", "sklearn", "pandas"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
