"""Any task: the divergence bounds hold on random releases, and so does generalisation."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcap import convert
from leakcap.errors import InputError
from tests.claims.convert.channels import GENERATORS, patient, plain_information, random_channels

# Any task: the divergence bounds hold on random releases


def f_divergence(joint: np.ndarray, f) -> float:
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return float((product * f(joint / product)).sum())


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
