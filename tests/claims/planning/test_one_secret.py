"""A plan's recaps share one failure probability, and what happens in a fresh secret world is what was planned."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.planning import accuracy, certifier
from leakcap.planning.request import stream
from tests.unit.planning.means import SMALL, X, mean

calibrate = import_module("leakcap.noise.calibrate")  # the package has a function of that name
FRESH: dict[str, Any] = {"mode": "confidence", "worlds": 66, "cap": lc.mutual_information(1.0), "seed": 4}


def family(monkeypatch: Any, *, planted: bool = False) -> tuple[list[tuple[int, ...]], list[float]]:
    """Of a plan and two recaps: the streams of their draws, and the shares of gamma that they spent."""
    used = []

    def noted(entropy: int, *number: int) -> np.random.Generator:
        used.append(number)
        return stream(entropy, 1) if planted else stream(entropy, *number)

    monkeypatch.setattr(certifier, "stream", noted)
    plan = lc.plan(mean, X, seed=2, **SMALL)
    made = [plan, plan.recap(lc.mutual_information(0.5)), plan.recap(lc.mutual_information(0.3))]
    return used, [one.certificate.gamma_used for one in made]


def test_every_recap_is_certified_on_draws_of_its_own(monkeypatch: Any) -> None:
    seeds: list[Any] = []
    certify = calibrate.certify

    def spy(*given: Any, seed: Any, **named: Any) -> Any:
        seeds.append(seed.entropy)
        return certify(*given, seed=seed, **named)

    monkeypatch.setattr(calibrate, "certify", spy)
    used, shares = family(monkeypatch)
    assert len(seeds) == len(set(seeds)) >= 3, "no attempt sees the draws of another one"
    assert len(used) == len(set(used)) == 3
    assert (0,) not in used, "the worlds were drawn from that one"
    assert sum(shares) < 1e-6
    # Planted: the same stream for all of them. The first attempts of all three see the same draws.
    seeds.clear()
    family(monkeypatch, planted=True)
    assert len(set(seeds)) < len(seeds)


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_fresh_secrets_follow_the_randomness_of_the_release(rate: float) -> None:
    draw = lc.plan(mean, X, rate=rate, **FRESH).run.draw
    masks = np.array([draw(Seeded(seed)) for seed in range(12)])
    assert (masks.sum(axis=1) == round(rate * len(X))).all()
    assert len(np.unique(masks, axis=0)) == 12, "30 people have millions of halves"
    assert np.array_equal(draw(Seeded(3)), masks[3])


def test_the_clip_that_was_asked_for_holds_in_the_secret_world_too() -> None:
    plan = lc.plan(mean, X, clip=([-0.1, 99.0, -3.01], [0.1, 101.0, -2.99]), **FRESH)
    mask = np.arange(len(X)) == X[:, 1].argmax()
    answer = plan.run.rerun(mask)
    assert answer is not None
    assert X[mask][0, 1] > 101 and answer[1] == 101.0


def test_worlds_of_fresh_modes_are_independent() -> None:
    """Complements among them would make their variance look better known than it is."""
    masks = lc.plan(mean, X, **FRESH).worlds.masks()
    other = {mask.tobytes() for mask in ~masks}
    assert not any(mask.tobytes() in other for mask in masks)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_error_bars_of_large_answers_cover_as_those_of_small_ones_do(level: float) -> None:
    """Two worlds and noise that is most of the error: the share of releases that the bars cover, in closed form."""
    few, many = 3, 2**21 + 1
    for d in (few, many):
        offsets = np.repeat([[0.1], [-0.1]], d, axis=1)
        width = accuracy.half_width(offsets, np.ones(d), level)[:3]
        covered = (ndtr(width - offsets[:, :3]) - ndtr(-width - offsets[:, :3])).mean(axis=0)
        assert (covered >= level).all()
        assert (covered <= level + 0.8 * (1 - level)).all(), "wide, but not for nothing"
        bare = np.repeat([[0.1234], [-0.1234]], d, axis=1)  # no noise to make up for a bar that is rounded down
        assert (accuracy.half_width(bare, np.zeros(d), level)[:3] >= 0.1234).all()
