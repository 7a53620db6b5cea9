"""Worlds drawn without permutations follow the laws that docs/proofs/uniform-halves.md proves.

Counts of every possible set are compared with the exact law by chi-square tests; each fixes its generator and rejects
a true hypothesis with probability 1e-5 or less. Planted faults must be rejected by the same tests.
"""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from leakcap.noise import entropy
from leakcap.worlds import draw, draw_worlds, independent_worlds
from tests.claims.worlds.laws import halves, stratified_halves, thirds

FALSE_ALARM = 1e-5


def codes(packed, n):
    """Every world as one number: bit i says whether unit i is in."""
    return np.unpackbits(packed, axis=-1, count=n).astype(np.int64) @ (1 << np.arange(n, dtype=np.int64))


def follows(found, law):
    """Whether observed codes agree with a law (code -> probability); a code the law excludes never does."""
    values, counts = np.unique(found, return_counts=True)
    if not set(values.tolist()) <= set(law):
        return False
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    expected = np.array(list(law.values())) * len(found)
    assert expected.min() > 5, "too few draws for a chi-square test"
    statistic = ((np.array([seen.get(code, 0) for code in law]) - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, len(law) - 1) > FALSE_ALARM


def neighbours_independent(found, law):
    """Whether consecutive worlds, as pairs, follow the product law."""
    order = {code: i for i, code in enumerate(law)}
    pairs = [order[a] * len(law) + order[b] for a, b in found.reshape(-1, 2).tolist()]
    product = {i * len(law) + j: p * q for i, p in enumerate(law.values()) for j, q in enumerate(law.values())}
    return follows(np.array(pairs), product)


# ---- uniform halves -----------------------------------------------------------------------------------------------

LAWS = {n: halves(n) for n in (5, 6, 8, 9)}


@pytest.mark.parametrize("n", LAWS)
def test_halves_are_uniform_over_all_subsets_of_the_size(n):
    found = codes(draw._halves(n, 10_000, np.random.default_rng(n)), n)
    assert len(LAWS[n]) == (2 * comb(n, n // 2) if n % 2 else comb(n, n // 2))
    assert follows(found, LAWS[n])


def test_consecutive_halves_are_independent():
    found = codes(draw._halves(6, 10_000, np.random.default_rng(1)), 6)
    assert neighbours_independent(found, LAWS[6])


def lowest_first(mask, inside, k, rng):
    return np.flatnonzero(mask == inside)[:k]


def with_repeats(mask, inside, k, rng):
    """A stream without the removal of repeats: a unit drawn twice moves once, and somebody else does not."""
    return rng.choice(np.flatnonzero(mask == inside), size=k)


def sorted_hits(mask, inside, k, rng):
    """Repeats dropped by sorting, so that low numbers come first."""
    tries = rng.integers(0, len(mask), size=3 * k + 8)
    found = np.unique(tries[mask[tries] == inside])
    return found[:k] if len(found) >= k else sorted_hits(mask, inside, k, rng)


@pytest.mark.parametrize("fault", [lowest_first, with_repeats, sorted_hits])
def test_a_planted_fault_in_the_choice_of_who_moves_is_rejected(fault, monkeypatch):
    monkeypatch.setattr(draw, "_some_units", fault)
    found = codes(draw._halves(6, 10_000, np.random.default_rng(6)), 6)
    assert not follows(found, LAWS[6])


class Skewed:
    """A generator whose coin between the two sizes of an odd pool shows one side in 55 % of cases."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def integers(self, low, high, size=None, dtype=np.int64):
        if high == 2:
            return (self.rng.random(size) < 0.55).astype(np.int64)
        return self.rng.integers(low, high, size=size, dtype=dtype)


def test_a_planted_unfair_coin_between_two_sizes_is_rejected():
    assert not follows(codes(draw._halves(5, 10_000, Skewed(5)), 5), LAWS[5])


def test_a_planted_repeat_of_rows_is_rejected():
    """Every world followed by its complement: each one uniform, neighbours not independent."""
    first = codes(draw._halves(6, 10_000, np.random.default_rng(6)), 6)
    paired = np.stack([first, 63 - first], axis=1).ravel()
    assert follows(paired, LAWS[6])
    assert not neighbours_independent(paired, LAWS[6])


# ---- balance ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_every_unit_is_in_equally_many_worlds(data):
    k = data.draw(st.integers(2, 6), label="k")
    numerator = data.draw(st.sampled_from([1, k - 1]), label="numerator")
    rounds = data.draw(st.integers(1, 6), label="rounds")
    sizes = data.draw(st.lists(st.integers(k, 3 * k + 2), min_size=2, max_size=4), label="strata")
    stratified = data.draw(st.booleans(), label="stratified")
    strata = np.random.default_rng(sum(sizes)).permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(strata)
    worlds = draw_worlds(n, k * rounds, np.random.default_rng(3), numerator / k, strata if stratified else None)
    masks = worlds.masks()
    assert masks.shape == (k * rounds, n)
    assert (masks.sum(axis=0) == numerator * rounds).all()
    assert np.ptp(masks.sum(axis=1)) <= 1
    if k == 2:
        assert (masks[:rounds] != masks[rounds:]).all()
    else:
        parts = (masks if numerator == 1 else ~masks).reshape(rounds, k, n)
        assert (parts.sum(axis=1) == 1).all()


def test_planted_independent_halves_are_not_balanced():
    masks = np.unpackbits(draw._halves(12, 10, np.random.default_rng(0)), axis=1, count=12)
    assert np.ptp(masks.sum(axis=0)) > 0


# ---- partitions ---------------------------------------------------------------------------------------------------

STRATA = {
    "three strata, remainders of all kinds": (np.repeat([0, 1, 2], [5, 4, 9]), 3),
    "one stratum": (np.zeros(8, dtype=int), 3),
    "two parts, odd strata": (np.repeat([0, 1, 2], [3, 5, 5]), 2),
    "four parts": (np.repeat([0, 1], [7, 6]), 4),
}


def parts_of(strata, k, partitions, rng):
    """`(partitions, n)`: the part of every unit."""
    packed = draw._stratified(strata, partitions, k, rng)
    inside = np.unpackbits(packed, axis=2, count=len(strata))
    assert (inside.sum(axis=1) == 1).all()
    return inside.argmax(axis=1)


def all_parts_equally_often(part, k):
    """A chi-square test for every unit; the smallest of their p-values is corrected for the number of units."""
    counts = np.stack([(part == j).sum(axis=0) for j in range(k)])
    expected = len(part) / k
    p = chi2.sf(((counts - expected) ** 2 / expected).sum(axis=0), k - 1)
    return p.min() * part.shape[1] > FALSE_ALARM


@pytest.mark.parametrize("name", STRATA)
def test_partitions_give_every_unit_every_part_equally_often(name):
    strata, k = STRATA[name]
    part = parts_of(strata, k, 5_000, np.random.default_rng(len(name)))
    assert all_parts_equally_often(part, k)
    sizes = np.stack([(part == j).sum(axis=1) for j in range(k)])
    assert (np.ptp(sizes, axis=0) <= 1).all()
    if k == 2:
        for stratum in range(strata.max() + 1):
            ones = part[:, strata == stratum].sum(axis=1)
            assert (np.abs(2 * ones - (strata == stratum).sum()) <= 1).all()


class Ordered:
    """A generator that never shuffles arrays, or never shuffles the parts of the short round."""

    def __init__(self, what, seed):
        self.what, self.rng = what, np.random.default_rng(seed)

    def permutation(self, x):
        arrays = not isinstance(x, int)
        if arrays == (self.what == "units"):
            return np.arange(x) if isinstance(x, int) else np.asarray(x)
        return self.rng.permutation(x)


@pytest.mark.parametrize("what", ["units", "parts"])
def test_a_planted_missing_shuffle_is_rejected(what):
    strata, k = STRATA["one stratum"]
    assert not all_parts_equally_often(parts_of(strata, k, 5_000, Ordered(what, 2)), k)


@pytest.mark.parametrize("n", [6, 7])
def test_a_part_is_uniform_among_the_sets_of_its_size(n):
    """Rate 1/3. Of seven units one part has three, each part equally often; within a size all sets are alike."""
    law = thirds(n)
    packed = draw._stratified(np.zeros(n, dtype=int), 5_000, 3, np.random.default_rng(n))
    for j in range(3):
        assert follows(codes(packed[:, j], n), law)


# ---- one world at a time ------------------------------------------------------------------------------------------


DESIGNS = {
    "even": (6, 1 / 2, None, halves(6)),
    "odd": (7, 1 / 2, None, halves(7)),
    "strata": (6, 1 / 2, [0, 0, 0, 1, 1, 1], stratified_halves([0, 0, 0, 1, 1, 1])),
    "mixed strata": (7, 1 / 2, [0, 1, 0, 1, 1, 0, 0], stratified_halves([0, 1, 0, 1, 1, 0, 0])),
    "three odd strata": (9, 1 / 2, [0, 1, 2] * 3, stratified_halves([0, 1, 2] * 3)),
    "thirds": (7, 1 / 3, None, thirds(7)),
    "two thirds": (7, 2 / 3, None, {127 - code: p for code, p in thirds(7).items()}),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_independent_worlds_follow_the_law_of_a_single_world(name):
    n, rate, strata, law = DESIGNS[name]
    strata = None if strata is None else np.array(strata)
    found = codes(independent_worlds(n, 5_000, np.random.default_rng(17), rate, strata).packed, n)
    assert follows(found, law)
    # The same law as any single world of a balanced design, first, middle or last.
    k = round(1 / min(rate, 1 - rate))
    rng = np.random.default_rng(18)
    rounds = codes(np.array([draw_worlds(n, 2 * k, rng, rate, strata).packed for _ in range(1_200)]), n)
    for position in (0, k, 2 * k - 1):
        assert follows(rounds[:, position], law)


@pytest.mark.parametrize("name", ["even", "strata"])
def test_independent_worlds_are_independent(name):
    n, rate, strata, law = DESIGNS[name]
    strata = None if strata is None else np.array(strata)
    found = codes(independent_worlds(n, 9_000, np.random.default_rng(19), rate, strata).packed, n)
    assert neighbours_independent(found, law)
    # Nor is the second half of the list made from the first.
    assert neighbours_independent(found.reshape(2, -1).T.ravel(), law)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_secret_world_has_that_law_too(name, monkeypatch):
    """Bits of the operating system, replaced by a generator so that the test repeats."""
    n, rate, strata, law = DESIGNS[name]
    monkeypatch.setattr(entropy.os, "urandom", np.random.default_rng(20).bytes)
    strata = None if strata is None else np.array(strata)
    bits = entropy.OperatingSystem().bits()
    assert follows(codes(independent_worlds(n, 3_000, bits, rate, strata).packed, n), law)


def test_planted_worlds_of_one_balanced_set_are_not_independent():
    """Neighbours of a balanced design in its own order of pairs: complements follow one another."""
    worlds = draw_worlds(6, 9_000, np.random.default_rng(21)).packed
    both = codes(np.stack([worlds[:4_500], worlds[4_500:]], axis=1).reshape(9_000, -1), 6)
    assert follows(both, LAWS[6])
    assert not neighbours_independent(both, LAWS[6])


def test_a_planted_secret_from_another_law_is_rejected():
    """Strata ignored for the secret: halves that no simulated world could be."""
    _, _, _, law = DESIGNS["mixed strata"]
    assert not follows(codes(independent_worlds(7, 8_000, np.random.default_rng(22)).packed, 7), law)
