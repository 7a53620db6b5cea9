"""Bounds from differential privacy."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from leakcap import convert
from leakcap.errors import InputError
from tests.claims.convert.channels import ceil_to, patient


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


def told_apart(first: np.ndarray, second: np.ndarray) -> float:
    """Success of the best guess between two laws that are as likely."""
    return float(np.maximum(first, second).sum() / 2)


def larger_divergence(first: np.ndarray, second: np.ndarray) -> float:
    return float(max((first * np.log(first / second)).sum(), (second * np.log(second / first)).sum()))


def test_no_two_laws_within_rho_are_told_apart_beyond_the_zcdp_bound() -> None:
    """zCDP bounds both divergences of order 1 by rho: here they are rho, whatever the higher orders."""
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(2000):
        first, second = rng.dirichlet(np.full(rng.integers(2, 6), rng.choice([0.3, 1, 5])), size=2) + 1e-9
        first, second = first / first.sum(), second / second.sum()
        seen.append((told_apart(first, second), larger_divergence(first, second)))
    success, rho = np.array(seen).T
    assert (success <= convert.from_zcdp(rho)).all()


def test_zcdp_bound_is_attained_by_a_symmetric_bit_and_half_of_rho_is_caught() -> None:
    for success in (0.5001, 0.55, 0.8, 0.999):
        laws = np.array([[success, 1 - success], [1 - success, success]])
        rho = (2 * success - 1) * math.log(success / (1 - success))
        assert larger_divergence(*laws) == pytest.approx(rho, rel=1e-6)
        assert success <= convert.from_zcdp(rho) <= success * (1 + 1e-9)
        assert convert.from_zcdp(rho / 2) < told_apart(*laws)


def test_zcdp_bound_holds_for_normal_noise_and_is_below_pinskers() -> None:
    for mu in (1e-6, 0.01, 0.3, 1.0, 5.0, 20.0):
        rho = mu**2 / 2
        assert norm.cdf(mu / 2) <= convert.from_zcdp(rho) <= 0.5 + np.sqrt(rho / 8) + 1e-12
        # Two steps of add/remove: the distance doubles.
        assert norm.cdf(mu) <= convert.from_zcdp(rho, relation="add_remove")
    assert convert.from_zcdp(0) == 0.5
    assert convert.from_zcdp(0.02, "add_remove", "poisson") == convert.from_zcdp(0.02)


def test_replace_one_zcdp_with_poisson_sampling_is_refused() -> None:
    with pytest.raises(InputError, match="Poisson"):
        convert.from_zcdp(0.1, "replace_one", "poisson")
