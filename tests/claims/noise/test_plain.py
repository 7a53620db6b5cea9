"""Laplace noise for declared limits: epsilon found by trying all that a person can bring."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from leakcap.kernels.bounded import Extent
from leakcap.noise.plain import laplace, stretch

RNG = np.random.default_rng(2)
EXTENTS = {
    "all together": Extent.together(np.array([1.0, 3.0, 0.5]), np.array([1.0, 0.2, 7.0])),
    "one of each": Extent.one_of([3, 2], 2.0),
    "blocks": Extent(
        np.array([1.0, 1.0, 2.0, 2.0, 4.0]),
        np.array([0, 0, 0, 0, 1]),
        np.array([0, 0, 1, 1, 0]),
        np.array([1.0, 2.0, 3.0, 1.0, 1.0]),
    ),
}


def worst_ratio(extent: Extent, scales: np.ndarray) -> float:
    """The largest logarithm of a ratio of densities, over people at the corners of what is declared."""
    parts = {part: sorted(set(extent.block[extent.part == part])) for part in set(extent.part)}
    found = 0.0
    for chosen in itertools.product(*parts.values()):
        moves = np.zeros(len(extent.limits), dtype=bool)
        for part, block in zip(parts, chosen, strict=True):
            moves |= (extent.part == part) & (extent.block == block)
        person = np.where(moves, extent.limits, 0.0)
        seen = np.vstack([np.zeros(len(person)), person, 2 * person, RNG.normal(size=(50, len(person)))])
        density = [np.exp(-np.abs(seen - at) / scales).prod(axis=1) for at in (0.0, person)]
        found = max(found, float(np.abs(np.log(density[0] / density[1])).max()))
    return found


@pytest.mark.parametrize("name", EXTENTS)
def test_epsilon_is_the_largest_ratio_over_all_people(name: str) -> None:
    extent = EXTENTS[name]
    scales = RNG.uniform(1, 3, size=len(extent.limits))
    assert stretch(extent, scales) == pytest.approx(worst_ratio(extent, scales), rel=1e-9)
    assert stretch(extent, scales) >= worst_ratio(extent, scales) * (1 - 1e-13)


@pytest.mark.parametrize("name", EXTENTS)
def test_a_planted_limit_too_small_is_caught(name: str) -> None:
    extent = EXTENTS[name]
    fault = Extent(extent.limits * 0.9, extent.part, extent.block, extent.weights)
    scales = RNG.uniform(1, 3, size=len(extent.limits))
    assert stretch(fault, scales) < 0.95 * worst_ratio(extent, scales)


@pytest.mark.parametrize("name", EXTENTS)
def test_laplace_noise_has_the_least_weighted_variance_at_its_epsilon(name: str) -> None:
    extent = EXTENTS[name]
    made = laplace(extent, 0.6)
    epsilon = np.log(1.5)
    assert worst_ratio(extent, made.deviations / np.sqrt(2)) == pytest.approx(epsilon, rel=1e-6)
    least = (extent.weights * made.deviations**2).sum()
    for _ in range(200):
        other = made.deviations / np.sqrt(2) * np.exp(0.1 * RNG.normal(size=len(made.deviations)))
        other *= stretch(extent, other) / epsilon
        assert (extent.weights * 2 * other**2).sum() > least * (1 - 1e-6)
