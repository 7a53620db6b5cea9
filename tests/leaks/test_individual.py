"""A release of a sum over people shows its grid point and nothing of the half, or of the coins, that gave it."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import GRID
from tests.leaks.rigged import JITTERS, X, new_token, public_artefacts

WAYS: dict[str, dict[str, Any]] = {
    "individual": {"mode": "individual", "worlds": 64},
    "bits": {"design": "bits"},
    "individual, exponential": {"mode": "individual", "worlds": 64, "mechanism": "exponential"},
    "bits, exponential": {"design": "bits", "mechanism": "exponential"},
}


def planned(way: str, fn: Any = lc.stats.mean) -> lc.Plan:
    return lc.plan(fn, X, cap=lc.membership(0.7), **WAYS[way])


class Rigged:
    """Draws a chosen half, and noise that leads from it to one and the same grid point."""

    def __init__(self, plan: lc.Plan, half: int, jitter: float, point: np.ndarray) -> None:
        self.half, self.jitter, self.point = half, jitter, point
        mechanism = plan.releaser
        self.start = mechanism.coordinates(mechanism.draw(self)) / mechanism.noise.deviations

    def bits(self) -> np.random.Generator:
        return np.random.default_rng(self.half)

    def normals(self, size: int) -> np.ndarray:
        found = (self.point + self.jitter) * GRID - self.start
        # Exponential noise is normal noise times the length of further numbers: ones make it a factor of 1.
        assert size in (len(found), 2 * len(found) + 1)
        return np.concatenate([found, np.ones(size - len(found))])


def differing(way: str, fn: Any, halves: int = 6) -> tuple[set[str], list[dict[str, bytes]]]:
    """Public artefacts that are not the same for all secret halves, the released point held fixed; and one release of
    each of two points."""
    plan = planned(way, fn)
    rank = plan.noise.space.rank
    telling, plain = set(), []
    for point in (np.zeros(rank), np.arange(rank) * 17.0 - 5):
        seen = []
        for half in range(halves):
            plan.randomness, plan._token = Rigged(plan, half, JITTERS[half % len(JITTERS)], point), new_token()
            seen.append(public_artefacts(plan.release()))
        telling |= {name for name in seen[0] if len({one[name] for one in seen}) > 1}
        plain.append(seen[0])
    return telling, plain


@pytest.mark.parametrize("way", WAYS)
def test_public_bytes_do_not_depend_on_the_secret_half(way: str) -> None:
    quantiles = partial(lc.stats.quantile, q=[0.2, 0.5], grid=np.linspace(-4, 4, 9))
    for fn in (lc.stats.mean, lc.stats.sum, *([quantiles, lc.stats.gram] if way == "bits" else [])):
        telling, (first, second) = differing(way, fn)
        assert not telling
        assert first["pickled release"] != second["pickled release"], "another point is another release"


@pytest.mark.parametrize("way", WAYS)
def test_a_planted_leak_in_the_low_digits_is_caught(way: str, monkeypatch: Any) -> None:
    mode = importlib.import_module(f"leakcap.modes.{way.partition(',')[0]}")
    released = mode.released_vector

    def leak(noise: Any, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        return released(noise, coordinates, step, randomness) * (1 + 1e-13 * coordinates[0])

    monkeypatch.setattr(mode, "released_vector", leak)
    assert "pickled release" in differing(way, lc.stats.mean)[0]


@pytest.mark.parametrize("way", WAYS)
def test_the_certificate_and_the_words_are_complete_before_the_release(way: str) -> None:
    plan = planned(way)
    before = plan.certificate.to_json(), str(plan.certificate), str(plan.summary()), repr(plan)
    released = plan.release()
    assert (plan.certificate.to_json(), str(plan.certificate), str(plan.summary()), repr(plan)) == before
    assert released.certificate.to_json() == before[0]
