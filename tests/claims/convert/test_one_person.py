"""Membership, precision and true positive rate of one person, from information."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcap import convert
from tests.claims.convert.channels import exact_kl, patient, plain_information, random_channels

rates = st.floats(1e-6, 1 - 1e-6)


def binary_channel(rate: float, tpr: float, fpr: float) -> np.ndarray:
    return np.array([[rate * tpr, rate * (1 - tpr)], [(1 - rate) * fpr, (1 - rate) * (1 - fpr)]])


def entropy(q: float) -> float:
    return -q * math.log(q) - (1 - q) * math.log(1 - q)


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
