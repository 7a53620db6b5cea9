"""Membership on a device: the sums of a plain f64 product, within the stated rounding."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.errors import NumericalError
from leakcap.kernels.gpu import leakage, unit_sums
from leakcap.leakage import Sampled, observe_units
from leakcap.worlds import Worlds, draw_worlds

CUTS = np.array([0.2, 0.5, 0.6, 0.9])


def drawn(m: int, n: int, spread: float, draws: int, rate: float = 0.5) -> tuple[Worlds, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([m, n, draws])
    points = spread * rng.standard_normal((m, 3))
    return draw_worlds(n, m, rng, rate), points, points[rng.integers(m, size=draws)] + rng.standard_normal((draws, 3))


def chances(worlds: Worlds, points: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """How likely each unit took part, given each release."""
    logits = -((seen[:, None] - points) ** 2).sum(axis=2) / 2
    posterior = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (posterior / posterior.sum(axis=1, keepdims=True)) @ worlds.masks()


@pytest.mark.parametrize("rate", [0.5, 1 / 3, 0.75])
@pytest.mark.parametrize("spread", [0.0, 0.1, 3.0, 1e3], ids=["one point", "flat", "peaked", "certain"])
def test_sums_lie_within_the_stated_rounding(rate: float, spread: float, device: str) -> None:
    worlds, points, seen = drawn(24, 300, spread, 200, rate)
    found = unit_sums([seen[:77], seen[77:]], points, worlds, CUTS, device=device)
    q = chances(worlds, points, seen)
    over = np.maximum(q - CUTS[:, None, None], 0)
    assert found.draws == 200
    assert found.rounding < 3e-5
    for sums, values in (
        (found.total, np.abs(q - rate)),
        (found.squares, (q - rate) ** 2),
        (found.stick_total, over),
        (found.stick_squares, over**2),
    ):
        # Squares of numbers up to 1 move by at most twice their error.
        assert np.abs(sums - values.sum(axis=-2)).max() <= 200 * 2 * found.rounding
    best = q.max(axis=1)
    assert np.abs(found.naming - [best.sum(), (best**2).sum()]).max() <= 200 * 2 * found.rounding


def test_one_wrong_bit_is_more_than_rounding(device: str) -> None:
    """The planted twin of the test above."""
    worlds, points, seen = drawn(24, 300, 0.1, 200)
    found = unit_sums([seen], points, worlds, device=device)
    flipped = worlds.packed.copy()
    flipped[0, 0] ^= 128
    flipped[12, 0] ^= 128
    other = unit_sums([seen], points, Worlds(flipped, 300, worlds.share, True, "x"), device=device)
    assert abs(found.total[0] - other.total[0]) > 200 * 2 * found.rounding
    assert np.array_equal(found.total[1:], other.total[1:])


@pytest.mark.parametrize("rate", [0.5, 0.25])
def test_it_is_what_the_cpu_observes(rate: float, device: str) -> None:
    worlds, points, _ = drawn(32, 500, 0.5, 1, rate)
    source = Sampled(points, 300, np.random.SeedSequence(4))
    expected = observe_units(source, worlds, CUTS)
    child = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0,)))
    world = np.arange(300) % 32
    world[288:] = child.integers(32, size=12)
    seen = points[world] + child.standard_normal((300, 3))
    found = unit_sums([seen], points, worlds, CUTS, device=device)
    success = 0.5 + found.total / 300 * 0.25 / (rate * (1 - rate))
    assert np.abs(success - expected.balanced.estimate).max() < expected.balanced.rounding + found.rounding
    assert np.abs(found.stick_total / 300 - expected.sticks.estimate).max() < expected.sticks.rounding
    assert abs(found.naming[0] / 300 - expected.naming.estimate[0]) < expected.naming.rounding


def test_chosen_units_are_the_same_as_among_all(device: str) -> None:
    worlds, points, seen = drawn(24, 300, 1.0, 150)
    chosen = np.array([299, 0, 8, 7, 131])
    every = unit_sums([seen], points, worlds, CUTS, device=device)
    some = unit_sums([seen], points, worlds, CUTS, chosen, device=device)
    assert np.allclose(some.total, every.total[chosen], rtol=1e-6)
    assert np.allclose(some.stick_squares, every.stick_squares[:, chosen], rtol=1e-5, atol=1e-6)
    assert some.naming[0] < every.naming[0]


def test_blocks_and_repeats_change_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds, points, seen = drawn(40, 300, 1.0, 400)
    whole = unit_sums([seen], points, worlds, device=device)
    assert np.array_equal(whole.total, unit_sums([seen], points, worlds, device=device).total)
    monkeypatch.setattr(leakage, "tile_bytes", lambda _: 2**15)
    assert np.allclose(unit_sums([seen], points, worlds, device=device).total, whole.total, rtol=1e-6)


@pytest.mark.parametrize("worst", ["flat", "single", "ramp"])
def test_digits_rebuild_every_number_and_sums_stay_below_32_bits(worst: str, device: str) -> None:
    import torch

    k = 2**14
    row = {"flat": np.full(k, 0.5 / k), "single": np.eye(1, k)[0] / 2, "ramp": np.linspace(-1, 1, k) / k}[worst]
    limbs, unscale, lost = leakage._digits(torch.tensor(np.stack([row, -row, row / 3]), device=device), k)
    digits = limbs.cpu().numpy().astype(np.int64).reshape(-1, 3, k)[:3]
    whole = digits[:, 0] * 2**16 + digits[:, 1] * 2**8 + digits[:, 2]
    rebuilt = whole * unscale.cpu().numpy()[:3, None].astype(float)
    assert np.abs(rebuilt - [row, -row, row / 3]).sum(axis=1).max() <= lost + 2.0**-24
    assert (
        np.abs(digits[:, 0]).sum(axis=1).max() * 2**16 + np.abs(digits[:, 1]).sum(axis=1).max() * 2**8 < 2**31 - 2**22
    )
    assert lost < 2.0**-11, "the worst: a row whose largest number leaves the others few digits"


def test_outputs_too_far_apart_are_refused(device: str) -> None:
    worlds, points, seen = drawn(24, 300, 1e8, 10)
    with pytest.raises(NumericalError, match="too far apart"):
        unit_sums([seen], points, worlds, device=device)
