"""Error bars: the least number of two digits that covers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from leakcap.planning.accuracy import LEVELS, half_width

RNG = np.random.default_rng(4)
TWO_DIGITS = np.array([digits * 10.0**power for power in range(-12, 6) for digits in range(10, 100)])
CASES = {
    "noise and halving": (RNG.normal(size=(50, 3)), np.array([0.01, 0.4, 30.0])),
    "halving alone": (RNG.normal(size=(50, 2)), np.zeros(2)),
    "noise alone": (np.zeros((8, 2)), np.array([1e-9, 0.2])),
    "all on one side": (2 + RNG.random((30, 1)), np.array([0.1])),
    "one far off": (np.where(np.arange(40) == 0, 500.0, 0.001)[:, None], np.array([0.003])),
}


def covered(offsets: np.ndarray, noise: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """With which probability a width covers each output."""
    spread = np.where(noise > 0, noise, 1e-300)
    return (ndtr((widths - offsets) / spread) - ndtr((-widths - offsets) / spread)).mean(axis=0)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_the_width_covers_and_the_next_smaller_one_does_not(name: str, level: float) -> None:
    offsets, noise = CASES[name]
    found = half_width(offsets, noise, level)
    assert (covered(offsets, noise, found) >= level).all()
    places = np.searchsorted(TWO_DIGITS, found * (1 - 1e-9))
    assert found == pytest.approx(TWO_DIGITS[places], rel=1e-9)  # two digits
    assert (covered(offsets, noise, TWO_DIGITS[places - 1]) < level).all()


def test_what_never_differs_has_no_width() -> None:
    assert half_width(np.zeros((6, 2)), np.zeros(2), 0.95).tolist() == [0.0, 0.0]


def test_a_width_for_another_level_would_be_noticed() -> None:
    """The twin: what covers at 90 % does not cover at 95 %."""
    offsets, noise = CASES["noise and halving"]
    assert (covered(offsets, noise, half_width(offsets, noise, 0.9)) < 0.95).any()
