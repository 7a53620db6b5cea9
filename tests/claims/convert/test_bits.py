"""Priors of guesses of many bits at once."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from leakcap import convert
from tests.claims.convert.channels import ceil_to


@cache
def halves(n: int) -> list[int]:
    sizes = {n // 2, (n + 1) // 2}
    return [sum(1 << i for i in members) for size in sizes for members in itertools.combinations(range(n), size)]


def brute_prior(worlds: list[int], n: int, k: int) -> Fraction:
    """The best of all 2^n guesses."""
    right = n - np.bitwise_count(np.array(worlds)[:, None] ^ np.arange(2**n)).astype(int)
    return Fraction(int((right >= k).sum(axis=0).max()), len(worlds))


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


def binomials(n: int) -> list[int]:
    """Row n of Pascal's triangle; each from the one before, which is far cheaper than `math.comb` for each."""
    return list(itertools.accumulate(range(n), lambda one, k: one * (n - k) // (k + 1), initial=1))


@pytest.mark.parametrize(("n", "k"), [(100, 70), (1000, 500), (1000, 640), (5000, 2600)])
def test_bit_priors_are_rounded_up_for_large_pools(n: int, k: int) -> None:
    coins = Fraction(sum(binomials(n)[k:]), 2**n)
    half = Fraction(sum(one**2 for one in binomials(n // 2)[(k + 1) // 2 :]), math.comb(n, n // 2))
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
    monkeypatch.setattr("leakcap.convert.priors.CELLS", 7 * 30)
    assert np.array_equal(convert.agreement_prior(masks, np.arange(48)), whole)
    assert whole[0] == 1
    assert whole[-1] == pytest.approx(1 / 30)
