"""The encoded set follows the law that is certified: the sample, the mixing, the mask, the noise, the grid."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from leakcap.noise.entropy import GRID, OperatingSystem, Seeded
from leakcap.obfuscation.design import MixingDesign
from leakcap.obfuscation.masking import STEP, encoding_distance, masked, masks, on_grid
from leakcap.obfuscation.mixing import choose, mixed_rows, pair_labels, pairs, sampled_rows

DESIGN = MixingDesign(classes=2, rows_sampled=6, rows_released=8, mix=2, mask_dim=3, blocks=1, columns=4)
FALSE_ALARM = 1e-6  # of each statistical test here


def even(counts: Any) -> bool:
    """Whether counts of outcomes that should be equally likely pass a chi-square test."""
    return bool(stats.chisquare(counts).pvalue > FALSE_ALARM)


def sets_counted(draw: Callable[[], Any], members: int, size: int) -> list[int]:
    names = {one: place for place, one in enumerate(combinations(range(members), size))}
    counts = [0] * len(names)
    for row in draw():
        counts[names[tuple(sorted(row))]] += 1
    return counts


def test_every_set_is_mixed_as_often_as_any_other() -> None:
    assert even(sets_counted(lambda: choose(6, 2, 6000, Seeded(1)).tolist(), 6, 2))


def test_a_planted_choice_with_a_favourite_is_rejected() -> None:
    def planted() -> Any:
        chosen = choose(6, 2, 6000, Seeded(1))
        chosen[:400] = [0, 1]
        return chosen.tolist()

    assert not even(sets_counted(planted, 6, 2))


def test_tied_keys_are_drawn_again() -> None:
    class Coarse(Seeded):
        """Two bits a key: ties are everywhere."""

        def bits(self) -> Any:
            rng = self._rng

            class Few:
                def integers(self, low: int, high: int, size: Any, dtype: Any) -> Any:
                    return rng.integers(low, 4, size=size).astype(dtype)

            return Few()

    assert even(sets_counted(lambda: choose(4, 2, 6000, Coarse(2)).tolist(), 4, 2))


def test_the_sample_is_even_in_each_class_and_without_repetition() -> None:
    codes = np.array([0, 1, 0, 1, 0, 1, 0, 1, 1])
    counts = np.zeros(9)
    randomness = Seeded(3)
    for _ in range(4000):
        first, second = sampled_rows(codes, DESIGN, randomness)
        assert len(set(first)) == len(set(second)) == 3 and (codes[first] == 0).all() and (codes[second] == 1).all()
        counts[first] += 1
        counts[second] += 1
    assert even(counts[codes == 0]) and even(counts[codes == 1])
    assert not even(counts), "the twin: rates differ where classes are of different sizes"


def test_released_rows_are_means_of_so_many_rows_of_their_two_classes() -> None:
    rows = np.eye(9)
    codes = np.arange(9) % 2
    halves = pairs(DESIGN)
    sample = sampled_rows(codes, DESIGN, Seeded(4))
    mixed = mixed_rows(rows, sample, halves, mix=2, randomness=Seeded(5))
    drawn = np.concatenate(sample)
    assert not mixed[:, np.setdiff1d(np.arange(9), drawn)].any(), "whoever was not drawn is in no mean"
    for row, first, second in zip(mixed, *halves, strict=True):
        shares = [row[codes == one].sum() for one in (0, 1)]
        assert np.allclose(shares, pair_labels(np.array([first]), np.array([second]), 2)[0])
        weights = set(np.round(row[row > 0], 12))
        assert weights <= ({0.25} if first != second else {0.25, 0.5}), "halves of one class are drawn apart"


@pytest.mark.parametrize("system", [OperatingSystem(), Seeded(6)])
def test_masks_have_the_stated_variance_and_planted_scales_do_not(system: Any) -> None:
    design = MixingDesign(2, 4, 4, 1, mask_dim=60, blocks=2, columns=100)
    drawn = masks((np.arange(50), np.arange(50, 100)), design, system)
    entries = np.concatenate([one.ravel() for one in drawn]) * np.sqrt(design.block_dim)
    assert entries.shape == (3000,) and not np.array_equal(drawn[0], drawn[1])
    assert stats.kstest(entries, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(entries * np.sqrt(2), "norm").pvalue < FALSE_ALARM, "as if by all columns, not the block's"


def test_noise_has_the_stated_deviation_and_planted_ones_do_not() -> None:
    released = on_grid(np.full((200, 50), 0.3), 0.01, OperatingSystem())
    steps = (released - 0.3) / 0.01 + np.random.default_rng(0).uniform(-STEP / 2, STEP / 2, released.shape)
    spread = np.sqrt(1 + STEP**2 / 6)
    assert stats.kstest(steps.ravel() / spread, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(steps.ravel() / spread / 1.1, "norm").pvalue < FALSE_ALARM


def test_released_numbers_are_whole_steps_whatever_was_mixed() -> None:
    noise = 0.0159
    for values in (np.full((400, 7), noise / 3), noise * np.random.default_rng(0).normal(size=(400, 7))):
        released = on_grid(values, noise, OperatingSystem())
        whole = np.rint(released / (STEP * noise))
        assert np.array_equal(released, whole * (STEP * noise)), "no digit but of the whole number"
        zeros = released[released == 0]
        assert len(zeros) and not np.signbit(zeros).any(), "nor a sign: of -0.0 it tells the side of the grid point"
    assert STEP > GRID


def wrong_cells(rounded_mask: bool) -> tuple[int, int, float]:
    """Cells that differ from exact arithmetic, all cells, and the expected number of wrong ones at most."""
    design = MixingDesign(2, 40, 400, 4, mask_dim=40, blocks=1, columns=50)
    noise, block = 4e-13, (np.arange(50),)
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(400, 50))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    mask = masks(block, design, Seeded(9))
    used = tuple(one.astype(np.float32).astype(np.float64) for one in mask) if rounded_mask else mask
    drawn = Seeded(10).normals(400 * 40).reshape(400, 40)
    computed = np.rint(on_grid(masked(rows, block, used), noise, Seeded(10)) / (STEP * noise))
    exact = (rows.astype(np.longdouble) @ mask[0].astype(np.longdouble)) / np.longdouble(noise) + drawn
    wrong = int((computed != np.rint(exact / np.longdouble(STEP)).astype(np.float64)).sum())
    return wrong, computed.size, encoding_distance(design, noise)


def test_the_distance_bounds_how_many_cells_arithmetic_gets_wrong() -> None:
    """Noise so small that the last digits matter. More than five deviations above: once in a million."""
    wrong, cells, distance = wrong_cells(rounded_mask=False)
    assert 0 < wrong <= distance + 5 * np.sqrt(distance), "and the case is one where something is wrong"
    assert distance < cells, "not an empty bound"


def test_a_mask_in_single_precision_exceeds_it() -> None:
    wrong, _, distance = wrong_cells(rounded_mask=True)
    assert wrong > distance + 5 * np.sqrt(distance)


def test_the_distance_grows_with_everything_that_makes_arithmetic_worse() -> None:
    design = MixingDesign(10, 40000, 2000, 200, mask_dim=500, blocks=1, columns=1280)
    here = encoding_distance(design, 0.0159)
    sums = 2000 * 500 * 1280**1.5 * 2.0**-53 / (np.sqrt(500) * 0.0159) / STEP  # the largest part, by the proof
    assert sums < here < 1.2 * sums
    assert here < 2e-4 < encoding_distance(design, 0.0159 / 8)
    assert encoding_distance(design, 0.0159, products=2) > 1.9 * here
