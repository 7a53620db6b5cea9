"""Worlds are uniform in law.

Every statistical test is a chi-square test with a false-alarm rate of 1e-6, on a fixed generator, and is shown to
reject a planted fault. With 12,000 halves it tells a coin of 55 % from a fair one, all but once in 10,000 times.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from leakcap.noise import OperatingSystem
from leakcap.worlds import Worlds, draw, draw_worlds, independent_worlds

FALSE_ALARM = 1e-6


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def is_uniform(outcomes: Any, possible: int) -> bool:
    """Chi-square test of equal frequencies over `possible` outcomes."""
    seen = Counter(outcomes)
    assert len(seen) <= possible
    expected = sum(seen.values()) / possible
    assert expected >= 20, "enough draws for the chi-square law to hold"
    statistic = sum((count - expected) ** 2 for count in seen.values()) / expected
    statistic += (possible - len(seen)) * expected
    return statistic <= chi2.isf(FALSE_ALARM, possible - 1)


def sets(worlds: Worlds, every: int = 1) -> list[bytes]:
    return [mask.tobytes() for mask in worlds.masks()[::every]]


def first_of_pairs(worlds: Worlds) -> list[bytes]:
    return [mask.tobytes() for mask in worlds.masks()[: worlds.m // 2]]


def test_halves_of_six_are_uniform_over_all_twenty() -> None:
    assert is_uniform(first_of_pairs(draw_worlds(6, 24_000, generator())), math.comb(6, 3))


def lowest_first(mask: np.ndarray, inside: bool, k: int, rng: Any) -> np.ndarray:
    """A planted fault: the surplus is taken from the front instead of at random."""
    return np.flatnonzero(mask == inside)[:k]


def slightly_favoured(mask: np.ndarray, inside: bool, k: int, rng: Any) -> np.ndarray:
    """A subtler planted fault: every other single surplus unit is the first candidate instead of a random one."""
    candidates = np.flatnonzero(mask == inside)
    moved = rng.permutation(candidates)[:k]
    if k == 1 and rng.integers(0, 2) == 0:
        moved = candidates[:1]
    return moved


@pytest.mark.parametrize("fault", [lowest_first, slightly_favoured])
def test_a_planted_bias_in_the_fix_up_is_rejected(fault: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(draw, "_some_units", fault)
    assert not is_uniform(first_of_pairs(draw_worlds(6, 24_000, generator())), math.comb(6, 3))


def test_halves_of_five_are_uniform_over_both_sizes() -> None:
    """Odd pools: ten sets of two and ten of three, all twenty equally likely."""
    assert is_uniform(first_of_pairs(draw_worlds(5, 24_000, generator(2))), 20)


def test_an_unfair_coin_between_the_two_sizes_is_rejected(monkeypatch: Any) -> None:
    class Unfair:
        def __init__(self) -> None:
            self.rng = generator(2)

        def integers(self, low: int, high: int, size: Any = None, dtype: Any = np.int64) -> np.ndarray:
            if (low, high) == (0, 2):
                return (self.rng.random(size) < 0.55).astype(np.int64)
            return self.rng.integers(low, high, size=size, dtype=dtype)

    assert not is_uniform(first_of_pairs(draw_worlds(5, 24_000, Unfair())), 20)


def test_stratified_halves_are_uniform_over_all_even_splits(monkeypatch: Any) -> None:
    strata = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    found = first_of_pairs(draw_worlds(8, 12_000, generator(3), strata=strata))
    assert is_uniform(found, math.comb(4, 2) ** 2)
    monkeypatch.setattr(draw, "_some_units", lowest_first)
    biased = first_of_pairs(draw_worlds(8, 12_000, generator(3), strata=strata))
    assert not is_uniform(biased, math.comb(4, 2) ** 2)


def test_stratified_halves_with_odd_strata_are_uniform_over_all_of_least_difference() -> None:
    """Two strata of three: one gives one and the other two, in 2 * 3 * 3 equally likely ways."""
    found = first_of_pairs(draw_worlds(6, 12_000, generator(4), strata=np.array([0, 0, 0, 1, 1, 1])))
    assert is_uniform(found, 18)


class Sorted:
    """A planted fault: a generator whose permutations are right half of the time and leave the order else."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.integers = rng.integers

    def permutation(self, x: Any) -> np.ndarray:
        items = np.arange(x) if isinstance(x, int) else np.asarray(x)
        return self.rng.permutation(items) if self.rng.random() < 0.5 else items


@pytest.mark.parametrize(
    ("n", "rate", "parts", "possible"),
    # Ordered partitions: 6!/2!^3, 3 * 7!/(3! 2!^2), 8!/2!^4; and two parts of the last, 8!/(2!^2 4!).
    [
        (6, 1 / 3, 3, 90),
        (7, 1 / 3, 3, 630),
        (8, 1 / 4, 2, 420),
        pytest.param(8, 1 / 4, 4, 2520, marks=pytest.mark.slow),
    ],
)
def test_partitions_are_uniform(n: int, rate: float, parts: int, possible: int) -> None:
    k = round(1 / rate)
    draws = 20 * possible  # as few as `is_uniform` takes

    def partitions(rng: Any) -> list[bytes]:
        masks = draw_worlds(n, draws * k, rng, rate).masks()
        return [some.tobytes() for some in masks.reshape(draws, k, n)[:, :parts]]

    assert is_uniform(partitions(generator(5)), possible)
    if possible < 1000:
        assert not is_uniform(partitions(Sorted(generator(5))), possible)


def test_every_pair_of_units_is_together_as_often_as_it_should_be() -> None:
    """At 64 units: together with probability (n/2 - 1)/(n - 1)/2, all 2,016 pairs within 6 standard errors.

    False alarms: 2,016 normal tails beyond 6, below 1e-5.
    """
    masks = draw_worlds(64, 8000, generator(6)).masks()[:4000].astype(float)
    together = (masks.T @ masks) / 4000
    expected = 31 / 63 / 2
    error = math.sqrt(expected * (1 - expected) / 4000)
    apart = np.abs(together - expected)[np.triu_indices(64, 1)]
    assert apart.max() < 6 * error
    blocks = masks[:, np.arange(64) // 2 * 2]  # planted fault: neighbours move together
    wrong = np.abs((blocks.T @ blocks) / 4000 - expected)[np.triu_indices(64, 1)]
    assert wrong.max() > 6 * error


def test_independent_worlds_follow_the_same_law_one_of_each_pair() -> None:
    worlds = independent_worlds(6, 16_000, generator(7))
    assert not worlds.paired
    assert is_uniform(sets(worlds), 20)
    third = independent_worlds(6, 6_000, generator(8), 1 / 3)
    assert is_uniform(sets(third), math.comb(6, 2))
    two_thirds = independent_worlds(6, 6_000, generator(9), 2 / 3)
    assert is_uniform(sets(two_thirds), math.comb(6, 4))
    pairs = zip(sets(worlds)[::2], sets(worlds)[1::2], strict=True)
    assert is_uniform(pairs, 400), "neighbours are independent"


@pytest.mark.parametrize("strata", [None, np.array([0, 0, 1, 1, 0, 1])], ids=["plain", "stratified"])
def test_secret_worlds_from_system_bits_are_uniform(strata: Any, monkeypatch: Any) -> None:
    """The generator that reads the operating system, here fed with fixed bytes."""
    monkeypatch.setattr(os, "urandom", generator(10).bytes)
    bits = OperatingSystem().bits()
    found = [sets(independent_worlds(6, 1, bits, strata=strata))[0] for _ in range(1500)]
    assert is_uniform(found, 20 if strata is None else 18)


def test_worlds_differ_from_plan_to_plan_and_repeat_with_the_generator() -> None:
    first, second, again = (draw_worlds(40, 64, generator(seed)).packed for seed in (1, 2, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
