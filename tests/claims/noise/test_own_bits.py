"""Every number of the noise has bits of its own, and every one of them reaches the released point.

Not by statistics: bits are put in, and what must come out is known. A fault cannot hide behind numbers that look right
one by one and in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from leakcap.noise import GRID, Noise, OperatingSystem, entropy, released_vector, subspace

LARGEST_ERROR = 16 * 2.0**-52 * 8.3  # of a number, as the sampler's distance assumes
CORNERS = np.array([0, 1, 2**11, 2**40, 2**62, 2**63 - 1], dtype=np.uint64)
RNG = np.random.default_rng(0)
WORDS = np.concatenate([CORNERS, CORNERS | np.uint64(2**63), RNG.integers(2**64, size=12, dtype=np.uint64)])


def numbers_of(words: np.ndarray, monkeypatch: Any) -> np.ndarray:
    """What the sampler makes of these 64-bit words."""

    def read(size: int) -> bytes:
        assert size == words.nbytes, "8 bytes for each number, once"
        return words.tobytes()

    monkeypatch.setattr(entropy.os, "urandom", read)
    return OperatingSystem().normals(len(words))


def farthest(numbers: np.ndarray, words: np.ndarray) -> float:
    """Largest distance of a number from the quantile of its own word: its first bit is the sign, the rest the tail."""
    found = []
    with mpmath.workdps(50):
        for number, word in zip(numbers.tolist(), words.tolist(), strict=True):
            tail = (mpmath.mpf(word % 2**63) + 0.5) / 2**64
            probability = 1 - tail if word >= 2**63 else tail
            found.append(abs(float((mpmath.ncdf(number) - probability) / mpmath.npdf(number))))
    return max(found)


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(WORDS)])
def test_every_number_is_the_quantile_of_its_own_64_bits(size: int, monkeypatch: Any) -> None:
    for start in range(0, len(WORDS) - size + 1, size):
        words = WORDS[start : start + size]
        assert farthest(numbers_of(words, monkeypatch), words) <= LARGEST_ERROR


def last_from_the_others(numbers: np.ndarray) -> np.ndarray:
    """Standard normal, and independent of each other number and of all but one of them: it only adds up."""
    return np.append(numbers[:-1], ndtri(ndtr(numbers[:-1]).sum() % 1.0))


PLANTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the last follows from the others": last_from_the_others,
    "single precision": lambda numbers: numbers.astype(np.float32).astype(np.float64),
    "cut at 2.5 deviations": lambda numbers: np.clip(numbers, -2.5, 2.5),
    "cut at 4 deviations": lambda numbers: np.clip(numbers, -4.0, 4.0),
    "five per cent too small": lambda numbers: 0.95 * numbers,
    "in another order": lambda numbers: np.roll(numbers, 1),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_numbers_of_other_bits_are_caught(name: str, monkeypatch: Any) -> None:
    assert farthest(PLANTED[name](numbers_of(WORDS, monkeypatch)), WORDS) > 100 * LARGEST_ERROR


# ---- on the way to the release ------------------------------------------------------------------------------------


class Given:
    """Release randomness whose numbers are known."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers

    def normals(self, size: int) -> np.ndarray:
        assert size == len(self.numbers)
        return self.numbers


def carried(step: float, planted: Callable[[np.ndarray], np.ndarray] = lambda numbers: numbers) -> bool:
    """Whether each coordinate leaves at the grid point nearest to the answer plus its own number."""
    rng = np.random.default_rng(3)
    space = subspace(rng.standard_normal((20, 4)) * [1.0, 5.0, 0.1, 2.0], weights=[1.0, 2.0, 3.0, 1.0])
    noise = Noise(space, np.array([0.5, 1.3, 0.02, 0.9]))
    far = np.array([[6.3, -7.9, 4.6, -4.2], [0.0, 0.0, 0.0, 5.1], [-2.6, 2.7, 8.2, 0.1]])
    for numbers in np.concatenate([far, rng.standard_normal((30, 4))]):
        coordinates = space.coordinates[rng.integers(20)]
        vector = released_vector(noise, coordinates, step, Given(planted(numbers)))  # type: ignore[arg-type]
        point = space.project(vector) / noise.deviations / step
        if np.abs(point - np.rint(point)).max() > 1e-6:
            return False
        if np.abs(np.rint(point) * step - (coordinates / noise.deviations + numbers)).max() > step / 2 + 1e-9:
            return False
    return True


@pytest.mark.parametrize("step", [2.0**-4, GRID])
def test_released_points_carry_every_number_that_was_drawn(step: float) -> None:
    assert carried(step)


@pytest.mark.parametrize("name", [name for name in PLANTED if name != "single precision"])
def test_planted_releases_of_other_numbers_are_caught(name: str) -> None:
    assert not carried(GRID, PLANTED[name])


# ---- the secret ---------------------------------------------------------------------------------------------------


def test_a_secret_takes_one_draw_and_every_value_once(monkeypatch: Any) -> None:
    """Of 255 worlds each belongs to one byte: none has a second way to be drawn."""
    found = []
    for byte in range(255):
        once = iter([bytes([byte])])
        monkeypatch.setattr("random._urandom", lambda size, once=once: next(once))  # where `secrets` reads
        found.append(OperatingSystem().below(255))
    assert sorted(found) == list(range(255))


def even(draw: Callable[[int], int]) -> bool:
    """64 values, 20,000 draws: no value comes more than six standard errors too often (false alarms below 1e-7)."""
    counts = np.bincount([draw(64) for _ in range(20_000)], minlength=64)
    return bool(counts.max() <= 20_000 / 64 + 6 * (20_000 / 64) ** 0.5)


def test_no_world_is_the_secret_one_per_cent_too_often() -> None:
    honest = OperatingSystem().below
    assert even(honest)
    assert not even(lambda n: honest(n) if honest(100) else 0)
