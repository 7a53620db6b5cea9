"""Swaps of mixed rows by torch: the same numbers as by numpy, and mixings by the same law."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.errors import InputError, NumericalError
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.pairs import AddedNoise, factors, products, swap_factors
from leakcap.obfuscation.sampled import (
    MixedDraw,
    MixingLaw,
    all_class_pairs,
    draw_rows,
    draw_swaps,
    mixing_weights,
    starts_of,
)

torch = pytest.importorskip("torch")

from leakcap.kernels.gpu.mixed_rows import MixedRows  # noqa: E402


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(2)
    pool = rng.normal(size=(60, 7))
    pool /= np.linalg.norm(pool, axis=1)[:, None]
    return pool, MixingLaw(np.repeat(np.arange(3), 20), 9, 4, all_class_pairs(3, 2), 11)


def test_factors_equal_those_by_numpy(case):
    pool, law = case
    rng, there = np.random.default_rng(3), MixedRows(pool, device="cpu")
    sample = draw_rows(law, rng)
    swaps = draw_swaps(law, sample, 1, rng)
    picks = there.picks(starts_of(law), law.sampled, law.mix, seed=5)
    which = {"places": swaps.places[0], "joins": swaps.joins[0], "columns": law.columns}
    found = factors(*there.swap_products(sample, picks, noise=0.01, **which), columns=law.columns)
    mixed = MixedDraw(sample, mixing_weights(law, picks.numpy()))
    expected = swap_factors(pool, mixed, products(pool, mixed, AddedNoise(0.01, law.columns)), **which)
    assert found.wider == pytest.approx(expected.wider, rel=1e-6)
    assert found.narrower == pytest.approx(expected.narrower, rel=1e-6)


def test_picks_are_distinct_of_the_right_class_and_uniform(case):
    """False alarm: below 1e-6 for the counts of 36 x 2,000 draws of four of nine places."""
    pool, law = case
    there = MixedRows(pool, device="cpu")
    starts = np.repeat(starts_of(law), 2000, axis=0)
    picks = there.picks(starts, law.sampled, law.mix, seed=7).numpy().reshape(len(starts), 2, law.mix)
    local = picks - starts[:, :, None]
    assert local.min() == 0 and local.max() == law.sampled - 1
    assert (np.diff(np.sort(local, axis=2), axis=2) > 0).all()
    counts = np.bincount(local.ravel(), minlength=law.sampled)
    expected = local.size / law.sampled
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_draws_by_torch_have_the_same_mean(case):
    """Means of 300 draws of 60 units: they differ by less than six of their errors."""
    pool, law = case
    means = []
    for backend in (None, "torch:cpu"):
        one, rng = Obfuscated(pool, law, 0.2, backend=backend), np.random.default_rng(8)
        means.append(np.array([one.draw_factors(rng, swaps=1).wider.mean() for _ in range(300)]))
    error = np.hypot(*(mean.std() / np.sqrt(300) for mean in means))
    assert abs(means[0].mean() - means[1].mean()) < 6 * error


def test_what_cannot_be_solved_or_run_is_refused(case):
    pool, law = case
    with pytest.raises(InputError):
        Obfuscated(pool, law, 0.2, backend="cuda")
    sample = draw_rows(law, np.random.default_rng(1))
    there = MixedRows(pool, device="cpu")
    picks = there.picks(starts_of(law), law.sampled, law.mix, seed=1)
    with pytest.raises(NumericalError):
        there.swap_products(sample, picks, places=np.array([0]), joins=np.array([1]), columns=2, noise=1e-18)
