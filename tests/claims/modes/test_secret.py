"""One draw decides which world is the secret, and what leaves is that world's answer with the noise that was drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.modes import NoiseSettings, confidence
from leakcap.worlds import independent_worlds
from tests.unit.planning.means import X, seeded

SETTINGS = NoiseSettings("best", 0.0, "equal", None, Machine(2**28), True, (), ())


class Told:
    """Release randomness whose secret and noise are known; it notes what it is asked for."""

    def __init__(self, world: int, number: float = 0.25) -> None:
        self.world, self.number = world, number
        self.asked: list[int] = []

    def below(self, n: int) -> int:
        self.asked.append(n)
        return self.world

    def normals(self, size: int) -> np.ndarray:
        return np.full(size, self.number)


def follows(plan: lc.Plan, release: Callable[[Any], np.ndarray]) -> bool:
    """Whether each world is asked for once, among all, and leaves with exactly the noise that was drawn."""
    m, factor = plan.worlds.m, plan.noise.factor
    rounding = plan.certificate.grid_step * np.abs(factor).sum(axis=1)
    for world in range(m):
        told = Told(world)
        vector = release(told)
        expected = plan.outputs[world] + factor @ np.full(factor.shape[1], told.number)
        if told.asked != [m] or (np.abs(vector - expected) > rounding).any():
            return False
    return True


def test_the_secret_is_one_draw_and_its_own_answer_is_noised() -> None:
    plan = seeded()
    assert follows(plan, plan.releaser.vector)


def test_planted_secrets_of_another_law_are_caught() -> None:
    plan = seeded()
    honest = plan.releaser.vector

    def first_too_often(told: Told) -> np.ndarray:
        return honest(told) if told.below(100) else honest(Told(0))

    def without_noise(told: Told) -> np.ndarray:
        return plan.outputs[told.below(plan.worlds.m)]

    def never_the_last(told: Told) -> np.ndarray:
        told.below(plan.worlds.m - 1)
        return honest(Told(told.world))

    assert not any(follows(plan, planted) for planted in (first_too_often, without_noise, never_the_last))


def test_a_fresh_world_without_an_answer_counts_as_the_centre() -> None:
    outputs = np.random.default_rng(1).standard_normal((64, 2))
    worlds = independent_worlds(12, 64, np.random.default_rng(2))
    answers = {"none": None, "infinite": np.array([np.inf, 0.0])}
    for answer in answers.values():
        releaser, _ = confidence.certified(
            outputs,
            worlds,
            (lc.mutual_information(0.5),),
            SETTINGS,
            gamma=0.1,
            rerun=lambda mask, answer=answer: answer,
            draw=lambda randomness: np.ones(12, dtype=bool),
        )
        assert releaser.vector(Told(0, number=0.0)) == pytest.approx(releaser.noise.space.centre, abs=1e-9)


def test_of_several_caps_the_smallest_is_kept() -> None:
    for limits in ((0.6, 0.8), (0.8, 0.6)):
        caps = [lc.membership(limit) for limit in limits]
        plan = lc.plan(lc.stats.mean, X, cap=caps, mode="individual", worlds=64, seed=1)
        assert plan.certificate.membership_success <= 0.6
        assert plan.exposure.max() <= 0.6
