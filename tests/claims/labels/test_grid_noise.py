"""Rounded normals in whole numbers: the table holds their chances, and draws follow the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from leakcap.labels.mechanisms.integer_law import ONE
from leakcap.labels.statistics import grid_noise
from leakcap.labels.statistics.grid_noise import GridNoise

DEVIATIONS = (64.0, 84.4, 1000.0)


def cells(deviation: float, reach: int, kind: Any) -> Any:
    """Probabilities of the cells around -reach, ..., reach, by twelve nodes in this precision."""
    nodes, weights = (part.astype(kind) for part in np.polynomial.legendre.leggauss(12))
    middle = np.arange(-reach, reach + 1, dtype=kind)
    values = [
        w / 2 * np.exp(-((middle + x / 2) ** 2) / (2 * kind(deviation) ** 2))
        for x, w in zip(nodes, weights, strict=True)
    ]
    return sum(values) / (kind(deviation) * np.sqrt(2 * kind(np.pi)))


def total_variation(noise: GridNoise, law: Any) -> float:
    weights = noise.weights.astype(np.longdouble) / np.longdouble(ONE)
    return float(np.abs(weights - law).sum() / 2)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_chances_are_those_of_rounded_normals(deviation: float) -> None:
    noise = GridNoise(deviation)
    assert sum(int(weight) for weight in noise.weights) == ONE and int(noise.weights.min()) >= 1
    assert total_variation(noise, cells(deviation, noise.reach, np.longdouble)) <= noise.distance(1)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_the_distance_sees_single_precision(deviation: float) -> None:
    """The twin."""
    noise = GridNoise(deviation)
    assert total_variation(noise, cells(deviation, noise.reach, np.float32)) > noise.distance(1)


def test_every_64_bit_number_falls_to_the_outcome_that_owns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = GridNoise(64.0)
    ends = np.cumsum([int(weight) for weight in noise.weights], dtype=object)
    first = np.array([0, *ends[:-1]], dtype=np.uint64)
    last = np.array([end - 1 for end in ends], dtype=np.uint64)
    for words in (first, last):
        monkeypatch.setattr(grid_noise, "system_words", lambda kind, size, words=words: words)
        assert noise.draw(len(words)).tolist() == list(range(-noise.reach, noise.reach + 1))


@pytest.mark.parametrize(("planted", "kept"), [(1.0, True), (1.03, False)])
def test_draws_have_the_deviation_that_is_stated(planted: float, kept: bool) -> None:
    """False alarms: five deviations, one in a million. A planted deviation, three hundredths larger, is seen."""
    size = 200_000
    drawn = GridNoise(84.4 * planted).draw(size)
    spread = np.square(drawn / 84.4).mean() - 1 / (12 * 84.4**2)
    assert (abs(spread - 1) <= 5 * np.sqrt(2 / size)) is np.bool_(kept)
    assert abs(drawn.mean() / 84.4) <= 5 * 1.03 / np.sqrt(size)


def test_noise_that_is_too_coarse_has_no_table() -> None:
    with pytest.raises(AssertionError):
        GridNoise(60.0)


@pytest.mark.parametrize("deviation", [64.0, 50_000.0])
def test_the_distance_counts_every_chance_that_is_rounded_up(deviation: float) -> None:
    """By one in 2^64 at most, and that of 0 makes up for all of them; and the tails that are cut."""
    noise = GridNoise(deviation)
    assert noise.distance(1) >= (len(noise.weights) - 1) * 2.0**-64 + 2 * float(ndtr(-9.0))
    assert noise.distance(7) == pytest.approx(7 * noise.distance(1))
