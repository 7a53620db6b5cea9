"""Worlds are balanced by construction and uniform in law.

Every statistical test is a chi-square test with a false-alarm rate of 1e-6, on a fixed generator, and is shown to
reject a planted fault.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from leakcap.errors import InputError
from leakcap.noise import OperatingSystem
from leakcap.worlds import Units, Worlds, draw, draw_worlds, given_worlds, independent_worlds
from leakcap.worlds.draw import as_share

FALSE_ALARM = 1e-6
patient = settings(deadline=None, max_examples=60)


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


def sets(worlds: Worlds, every: int = 1) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(mask)) for mask in worlds.masks()[::every]]


def first_of_pairs(worlds: Worlds) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(mask)) for mask in worlds.masks()[: worlds.m // 2]]


# Balance


shares = st.sampled_from(
    [Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(1, 4), Fraction(3, 4), Fraction(1, 10)]
)


@patient
@given(shares, st.integers(0, 70), st.integers(1, 6), st.integers(0, 2**32), st.booleans())
def test_every_unit_is_in_exactly_its_share_of_the_worlds(
    share: Fraction, extra: int, rounds: int, seed: int, stratified: bool
) -> None:
    k = share.denominator
    n, m = 2 * k + extra, k * rounds
    strata = np.arange(n) % 2 if stratified else None
    worlds = draw_worlds(n, m, generator(seed), float(share), strata)
    masks = worlds.masks()
    assert masks.shape == (m, n)
    assert worlds.share == share
    assert (masks.sum(axis=0) == m * share).all()
    sizes = masks.sum(axis=1)
    assert sizes.min() >= math.floor(n * share)
    assert sizes.max() <= math.ceil(n * share)
    if strata is not None:
        for stratum in (0, 1):
            inside = masks[:, strata == stratum].sum(axis=1)
            members = int((strata == stratum).sum())
            spare = 0 if k == 2 else 1  # remainders of several strata are dealt out together
            assert inside.min() >= math.floor(members * share) - spare
            assert inside.max() <= math.ceil(members * share) + spare


@patient
@given(st.integers(4, 70), st.integers(1, 20), st.integers(0, 2**32))
def test_halves_come_in_complementary_pairs(n: int, pairs: int, seed: int) -> None:
    worlds = draw_worlds(n, 2 * pairs, generator(seed))
    masks = worlds.masks()
    assert worlds.paired
    assert (masks[:pairs] ^ masks[pairs:]).all()
    assert worlds.rate == 0.5


@pytest.mark.parametrize(("rate", "k"), [(1 / 3, 3), (1 / 4, 4), (0.1, 10)])
def test_parts_of_a_partition_share_nobody_and_miss_nobody(rate: float, k: int) -> None:
    worlds = draw_worlds(31, 5 * k, generator(), rate)
    assert not worlds.paired
    assert (worlds.masks().reshape(5, k, 31).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("rate", "k"), [(2 / 3, 3), (3 / 4, 4), (0.9, 10)])
def test_large_rates_are_complements_of_parts(rate: float, k: int) -> None:
    worlds = draw_worlds(31, 5 * k, generator(), rate)
    assert ((~worlds.masks()).reshape(5, k, 31).sum(axis=1) == 1).all()
    assert worlds.rate == pytest.approx(rate)


@pytest.mark.parametrize("n", [5, 9, 23])
def test_odd_pools_split_into_sizes_that_differ_by_one(n: int) -> None:
    sizes = draw_worlds(n, 200, generator()).masks().sum(axis=1)
    assert set(sizes) == {n // 2, n // 2 + 1}
    assert (sizes == n // 2).sum() == 100, "complements make both sizes equally frequent"


def test_odd_strata_do_not_add_up() -> None:
    """Three strata of odd size: each is split as evenly as can be, and so is the whole."""
    strata = np.repeat([0, 1, 2], [5, 7, 3])
    masks = draw_worlds(15, 400, generator(), strata=strata).masks()
    assert set(masks.sum(axis=1)) == {7, 8}
    for stratum, size in enumerate((5, 7, 3)):
        assert set(masks[:, strata == stratum].sum(axis=1)) == {size // 2, size // 2 + 1}


def test_strata_need_not_be_numbered_without_gaps_in_size() -> None:
    strata = Units.of(12, None).strata(["z"] * 2 + ["a"] * 8 + ["m"] * 2)
    masks = draw_worlds(12, 50, generator(), strata=strata).masks()
    assert (masks[:, :2].sum(axis=1) == 1).all()
    assert (masks[:, 10:].sum(axis=1) == 1).all()
    assert (masks[:, 2:10].sum(axis=1) == 4).all()


# Uniformity


def test_halves_of_six_are_uniform_over_all_twenty() -> None:
    assert is_uniform(first_of_pairs(draw_worlds(6, 40_000, generator())), math.comb(6, 3))


def lowest_first(row: np.ndarray, n: int, inside: bool, k: int, rng: Any) -> np.ndarray:
    """A planted fault: the surplus is taken from the front instead of at random."""
    bits = np.unpackbits(row, count=n)
    return np.flatnonzero(bits == inside)[:k]


def slightly_favoured(row: np.ndarray, n: int, inside: bool, k: int, rng: Any) -> np.ndarray:
    """A subtler planted fault: every other single surplus unit is the first candidate instead of a random one."""
    candidates = np.flatnonzero(np.unpackbits(row, count=n) == inside)
    moved = rng.permutation(candidates)[:k]
    if k == 1 and rng.integers(0, 2) == 0:
        moved = candidates[:1]
    return moved


@pytest.mark.parametrize("fault", [lowest_first, slightly_favoured])
def test_a_planted_bias_in_the_fix_up_is_rejected(fault: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(draw, "_some_units", fault)
    assert not is_uniform(first_of_pairs(draw_worlds(6, 40_000, generator())), math.comb(6, 3))


def test_halves_of_five_are_uniform_over_both_sizes() -> None:
    """Odd pools: ten sets of two and ten of three, all twenty equally likely."""
    assert is_uniform(first_of_pairs(draw_worlds(5, 40_000, generator(2))), 20)


def test_an_unfair_coin_between_the_two_sizes_is_rejected(monkeypatch: Any) -> None:
    class Unfair:
        def __init__(self) -> None:
            self.rng = generator(2)

        def integers(self, low: int, high: int, size: Any = None, dtype: Any = np.int64) -> np.ndarray:
            if (low, high) == (0, 2):
                return (self.rng.random(size) < 0.55).astype(np.int64)
            return self.rng.integers(low, high, size=size, dtype=dtype)

    assert not is_uniform(first_of_pairs(draw_worlds(5, 40_000, Unfair())), 20)


def test_stratified_halves_are_uniform_over_all_even_splits(monkeypatch: Any) -> None:
    strata = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    found = first_of_pairs(draw_worlds(8, 20_000, generator(3), strata=strata))
    assert is_uniform(found, math.comb(4, 2) ** 2)
    monkeypatch.setattr(draw, "_some_units", lowest_first)
    biased = first_of_pairs(draw_worlds(8, 20_000, generator(3), strata=strata))
    assert not is_uniform(biased, math.comb(4, 2) ** 2)


def test_stratified_halves_with_odd_strata_are_uniform_over_all_of_least_difference() -> None:
    """Two strata of three: one gives one and the other two, in 2 * 3 * 3 equally likely ways."""
    found = first_of_pairs(draw_worlds(6, 20_000, generator(4), strata=np.array([0, 0, 0, 1, 1, 1])))
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
    ("n", "rate", "possible"),
    [(6, 1 / 3, 90), (8, 1 / 4, 2520), (7, 1 / 3, 630)],  # ordered partitions: 6!/2!^3, 8!/2!^4, 3 * 7!/(3! 2!^2)
)
def test_partitions_are_uniform(n: int, rate: float, possible: int) -> None:
    k = round(1 / rate)
    draws = 25 * possible

    def partitions(rng: Any) -> list[bytes]:
        masks = draw_worlds(n, draws * k, rng, rate).masks()
        return [part.tobytes() for part in masks.reshape(draws, k, n)]

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
    worlds = independent_worlds(6, 20_000, generator(7))
    assert not worlds.paired
    assert is_uniform(sets(worlds), 20)
    third = independent_worlds(6, 10_000, generator(8), 1 / 3)
    assert is_uniform(sets(third), math.comb(6, 2))
    two_thirds = independent_worlds(6, 10_000, generator(9), 2 / 3)
    assert is_uniform(sets(two_thirds), math.comb(6, 4))
    pairs = zip(sets(worlds)[::2], sets(worlds)[1::2], strict=True)
    assert is_uniform(pairs, 400), "neighbours are independent"


@pytest.mark.parametrize("strata", [None, np.array([0, 0, 1, 1, 0, 1])], ids=["plain", "stratified"])
def test_secret_worlds_from_system_bits_are_uniform(strata: Any, monkeypatch: Any) -> None:
    """The generator that reads the operating system, here fed with fixed bytes."""
    monkeypatch.setattr(os, "urandom", generator(10).bytes)
    bits = OperatingSystem().bits()
    found = [sets(independent_worlds(6, 1, bits, strata=strata))[0] for _ in range(2500)]
    assert is_uniform(found, 20 if strata is None else 18)


def test_worlds_differ_from_plan_to_plan_and_repeat_with_the_generator() -> None:
    first, second, again = (draw_worlds(40, 64, generator(seed)).packed for seed in (1, 2, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


# Packed and dense


@patient
@given(st.integers(4, 90), st.integers(1, 8), st.integers(0, 2**32), st.data())
def test_packed_and_dense_views_agree(n: int, pairs: int, seed: int, data: Any) -> None:
    worlds = draw_worlds(n, 2 * pairs, generator(seed))
    masks = worlds.masks()
    assert masks.dtype == np.bool_
    assert np.array_equal(np.packbits(masks, axis=1), worlds.packed), "no stray bits past the last unit"
    assert all(np.array_equal(worlds.mask(w), masks[w]) for w in range(worlds.m))
    start, stop = sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))
    assert np.array_equal(worlds.columns(slice(start, stop)), masks[:, start:stop])
    some = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=9)))
    assert np.array_equal(worlds.columns(some), masks[:, some])
    rows = data.draw(st.integers(1, worlds.m))
    assert np.array_equal(worlds.columns(some, rows), masks[:rows, some])
    assert np.array_equal(worlds.columns(slice(None), rows), masks[:rows])


def test_columns_with_a_step_are_refused() -> None:
    with pytest.raises(InputError):
        draw_worlds(8, 4, generator()).columns(slice(0, 8, 2))


def test_a_mask_can_be_changed_without_changing_the_worlds() -> None:
    worlds = draw_worlds(20, 4, generator())
    before = worlds.packed.copy()
    worlds.mask(0)[:] = True
    worlds.masks()[:] = True
    assert np.array_equal(worlds.packed, before)


def test_the_short_form_does_not_show_masks() -> None:
    text = repr(draw_worlds(20, 4, generator()))
    assert text == "Worlds(m=4, n=20, rate=1/2, design='random halves')"


@pytest.mark.parametrize(
    ("rate", "strata", "design"),
    [
        (0.5, None, "random halves"),
        (0.5, np.arange(20) % 2, "random halves, stratified"),
        (0.25, None, "random partitions into 4 parts"),
    ],
)
def test_the_design_is_named(rate: float, strata: Any, design: str) -> None:
    assert draw_worlds(20, 8, generator(), rate, strata).design == design


# Rates and given worlds


@pytest.mark.parametrize(
    ("rate", "share"),
    [(0.5, "1/2"), (1 / 3, "1/3"), (2 / 3, "2/3"), (0.25, "1/4"), (0.9, "9/10"), (0.02, "1/50"), (1e-4, "1/10000")],
)
def test_rates_of_the_form_one_in_k_are_exact_fractions(rate: float, share: str) -> None:
    assert as_share(rate) == Fraction(share)


@pytest.mark.parametrize("rate", [0.4, 0.3, 0.333, 0.6667, 1.0, 0.0, -0.5, 1e-5, float("nan")])
def test_other_rates_are_refused(rate: float) -> None:
    with pytest.raises(InputError):
        as_share(rate)


def all_halves(n: int) -> np.ndarray:
    table = np.zeros((math.comb(n, n // 2), n), dtype=bool)
    for row, chosen in zip(table, itertools.combinations(range(n), n // 2), strict=True):
        row[list(chosen)] = True
    return table


def test_given_worlds_are_kept_as_they_are() -> None:
    table = all_halves(6)
    worlds = given_worlds(table, 6)
    assert np.array_equal(worlds.masks(), table)
    assert worlds.share == Fraction(1, 2)
    assert worlds.design == "given by the custodian"
    assert given_worlds(table.tolist(), 6).m == 20


def test_pairs_among_given_worlds_are_found_only_when_they_are_in_place() -> None:
    table = all_halves(6)[:10]  # each complement is missing
    assert given_worlds(np.vstack([table, ~table]), 6).paired
    assert not given_worlds(np.vstack([table, ~table[::-1]]), 6).paired
    assert not given_worlds(np.eye(3, dtype=bool), 3).paired


def test_given_worlds_may_have_any_common_share() -> None:
    worlds = given_worlds(np.eye(7, dtype=bool) | np.roll(np.eye(7, dtype=bool), 1, axis=1), 7)
    assert worlds.share == Fraction(2, 7)
    assert not worlds.paired


@pytest.mark.parametrize(
    "table",
    [
        np.eye(4, dtype=bool)[:3],
        np.ones((4, 4), dtype=bool),
        np.zeros((4, 4), dtype=bool),
        np.eye(4),
        np.eye(5, dtype=bool),
        np.ones(4, dtype=bool),
        np.ones((1, 4), dtype=bool),
        "auto",
        None,
    ],
    ids=["unbalanced", "all", "none", "floats", "other units", "one dimension", "one world", "text", "nothing"],
)
def test_given_worlds_that_hide_nothing_or_favour_somebody_are_refused(table: Any) -> None:
    with pytest.raises(InputError):
        given_worlds(table, 4)


# Units


def test_rows_of_a_unit_go_together() -> None:
    units = Units.of(6, ["b", "a", "b", "c", "a", "b"])
    assert units.count == 3
    assert units.rows_in(np.array([True, False, False])).tolist() == [1, 4]
    assert units.rows_in(np.array([False, True, True])).tolist() == [0, 2, 3, 5]
    assert Units.of(3, None).rows_in(np.array([True, False, True])).tolist() == [0, 2]


@pytest.mark.slow
def test_a_million_units_are_balanced_and_of_equal_size() -> None:
    worlds = draw_worlds(1_000_000, 1024, generator(11))
    sizes = np.bitwise_count(worlds.packed).sum(axis=1, dtype=np.int64)
    assert (sizes == 500_000).all()
    assert (worlds.columns(np.arange(0, 1_000_000, 997)).sum(axis=0, dtype=np.int64) == 512).all()
