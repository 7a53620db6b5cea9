"""Worlds are balanced by construction, packed and given ones too."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakcap.errors import InputError
from leakcap.worlds import Units, draw_worlds, given_worlds
from leakcap.worlds.draw import as_share

patient = settings(max_examples=60)

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


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


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


def test_every_world_of_a_larger_pool_holds_half_of_it() -> None:
    """Among two thousand coins the surplus is some dozens: it is taken from the larger side."""
    for n in (2000, 2001):
        sizes = draw_worlds(n, 32, generator(5)).masks().sum(axis=1)
        assert set(sizes.tolist()) <= {n // 2, -(-n // 2)}


@pytest.mark.slow
def test_a_million_units_are_balanced_and_of_equal_size() -> None:
    worlds = draw_worlds(1_000_000, 1024, generator(11))
    sizes = np.bitwise_count(worlds.packed).sum(axis=1, dtype=np.int64)
    assert (sizes == 500_000).all()
    assert (worlds.columns(np.arange(0, 1_000_000, 997)).sum(axis=0, dtype=np.int64) == 512).all()
