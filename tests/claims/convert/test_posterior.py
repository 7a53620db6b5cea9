"""Success from information and back: never below the truth, hardly above, and no round trip gains privacy."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcap import convert
from leakcap.convert import _arithmetic
from tests.claims.convert.channels import ceil_to, exact_kl, patient

priors = st.one_of(st.floats(1e-300, 1.0), st.floats(1e-3, 1 - 1e-6))
nats = st.one_of(st.just(0.0), st.floats(1e-14, 1e-6), st.floats(1e-6, 3.0), st.floats(3.0, 800.0))


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
    computed = float(_arithmetic.bernoulli(np.float64(a - p), np.float64(p), np.float64(1 - p)))
    exact = exact_kl(a, p)
    assert abs(Decimal(computed) - exact) <= exact * Decimal(_arithmetic.SLACK / 2) + Decimal(_arithmetic.FLOOR)


@patient
@given(st.floats(-1e-3, 1e-3), st.floats(1e-3, 1 - 2e-3))
def test_computed_divergence_is_accurate_next_to_the_prior(step: float, p: float) -> None:
    a = p * (1 + step)
    computed = float(_arithmetic.bernoulli(np.float64(a - p), np.float64(p), np.float64(1 - p)))
    exact = exact_kl(a, p)
    assert abs(Decimal(computed) - exact) <= exact * Decimal(_arithmetic.SLACK / 2) + Decimal(_arithmetic.FLOOR)


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
