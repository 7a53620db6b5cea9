"""Draws have exactly the probabilities they claim: checked word by word, not by sampling."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest
from scipy.stats import chisquare

from leakcap.labels.mechanisms import integer_law as chances
from leakcap.labels.mechanisms.integer_law import ONE, Chances, below, count_up

TABLES = [
    [ONE // 2, ONE // 2],
    [ONE - 1, 1],
    [1, ONE - 1],
    [ONE, 0],
    [3 << 48, (5 << 48) + 7, 1, 1, ONE - (8 << 48) - 9],
    [ONE // 3, ONE // 3, ONE - 2 * (ONE // 3)],
]


def feed(monkeypatch, numbers):
    """Let the operating system give these 64-bit numbers: first their first 16 bits, then the rest when asked."""
    state = {"rest": None}

    def words(dtype, size):
        if dtype is np.uint16:
            firsts = np.array([number >> 48 for number in numbers], dtype=np.uint16)
            assert size == len(firsts)
            return firsts
        # the rest is asked for those draws that the first bits leave open, in order
        assert dtype is np.uint64
        return np.array([(numbers[i] << 16) % ONE for i in state["open"][:size]], dtype=np.uint64)

    monkeypatch.setattr(chances, "system_words", words)
    return state


@pytest.mark.parametrize("weights", TABLES)
def test_every_64_bit_number_falls_to_the_outcome_that_owns_it(monkeypatch, weights):
    sums = list(accumulate(weights))
    rng = np.random.default_rng(1)
    near = [edge + step for edge in [0, *sums] for step in (-2, -1, 0, 1)]
    near += [(cell << 48) + step for cell in (0, 1, 3, 8, 21845, 65535) for step in (-1, 0, 1)]
    numbers = [n for n in near if 0 <= n < ONE] + [int(n) for n in rng.integers(0, ONE, 2000, dtype=np.uint64)]
    expected = [bisect_right(sums, number) for number in numbers]
    state = feed(monkeypatch, numbers)
    settled = {}
    for i, number in enumerate(numbers):
        cell = number >> 48
        low, high = bisect_right(sums, cell << 48), bisect_right(sums, ((cell + 1) << 48) - 1)
        settled[i] = low == high
    state["open"] = [i for i in range(len(numbers)) if not settled[i]]
    assert Chances(weights).draw(len(numbers)).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, 9, 99, 255, 256])
def test_bounded_numbers_are_exactly_even(monkeypatch, n):
    everything = np.arange(1 << 16, dtype=np.uint16)
    kept = (1 << 16) // n * n
    monkeypatch.setattr(chances, "system_words", lambda dtype, size: everything[:size].astype(dtype))
    counts = np.bincount(below(n, kept), minlength=n)
    assert (counts == kept // n).all()


@pytest.mark.parametrize(("n", "words"), [(256, np.uint16), (257, np.uint32), (65_536, np.uint32), (65_537, np.uint64)])
def test_wider_ranges_draw_wider_words(monkeypatch, n, words):
    asked = []

    def recording(dtype, size):
        asked.append(dtype)
        return np.full(size, np.iinfo(dtype).max // n * n - 1, dtype=dtype)  # the last number that is kept

    monkeypatch.setattr(chances, "system_words", recording)
    assert below(n, 3).tolist() == [n - 1] * 3
    assert set(asked) == {words}


def test_draws_in_blocks_are_all_there(monkeypatch):
    monkeypatch.setattr(chances, "_AT_ONCE", 7)
    drawn = Chances([ONE // 2, ONE // 2]).draw(1003)
    assert drawn.shape == (1003,) and set(drawn.tolist()) == {0, 1}
    assert 380 < drawn.sum() < 620 and drawn[-3:].max() <= 1
    assert np.bincount(below(3, 1000)).min() > 250


def test_numbers_of_the_incomplete_last_round_are_thrown_away(monkeypatch):
    limit = (1 << 16) // 3 * 3
    given = iter([np.array([limit, 5], dtype=np.uint16), np.array([7], dtype=np.uint16)])
    monkeypatch.setattr(chances, "system_words", lambda dtype, size: next(given))
    assert below(3, 2).tolist() == [2, 1]


def test_weights_are_whole_numbers_that_sum_to_one():
    for wrong in ([ONE // 2, ONE // 2 - 1], [-1, ONE + 1]):
        with pytest.raises(AssertionError):
            Chances(wrong)


def test_rounding_never_takes_from_the_noise():
    for p in (1e-30, 1e-19, 0.1, 1 / 3, 0.4999999):
        assert count_up(p) / ONE >= p
        assert count_up(p) - p * ONE <= 1 + p * ONE * 2**-47


def test_real_draws_follow_the_weights_and_a_planted_table_does_not():
    weights = [ONE // 2, ONE // 3, ONE - ONE // 2 - ONE // 3]
    shares = np.array(weights, dtype=float) / ONE
    drawn = np.bincount(Chances(weights).draw(300_000), minlength=3)
    assert chisquare(drawn, shares * drawn.sum()).pvalue > 1e-7
    planted = np.bincount(Chances([weights[0] - ONE // 50, weights[1] + ONE // 50, weights[2]]).draw(300_000))
    assert chisquare(planted, shares * planted.sum()).pvalue < 1e-12
