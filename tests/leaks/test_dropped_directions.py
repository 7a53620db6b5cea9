"""Directions that are cut off, or too small to see, must not name the world (MATH.md 1.5, issue item 6).

The outputs have a spectrum that falls from 1 to 1e-12. An attacker who knows every world's output looks only at
what a careless release would leave un-noised: the residual outside the retained directions, flat outputs, low-order
bits. On the real release path they are at chance; on the planted twin, which adds its noise to the world's own
output, they are always right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import leakcap as lc
from leakcap.noise import Noise, Seeded

M = 64
RELEASES = 1000
AT_ONCE = 50
FALSE_ALARM = 1e-6
SPECTRUM = 10.0 ** -np.arange(13)
SMALL = {"cap": lc.mutual_information(0.3), "worlds": M, "draws": 512, "weights": "equal"}
rng = np.random.default_rng(612)
POOL = np.linalg.qr(rng.normal(size=(40, 14)))[0][:, 1:] * np.sqrt(40)  # uncorrelated columns
ROTATION = np.linalg.qr(rng.normal(size=(13, 13)))[0]
WIDE = np.linalg.qr(rng.normal(size=(40_000, 13)))[0].T * 200  # 13 directions among 40,000 outputs


def in_one_direction_each(x: np.ndarray) -> np.ndarray:
    """Around 1: outputs that vary by less than 2^-36 of themselves are flat."""
    return 1 + x.mean(axis=0) * SPECTRUM


def rotated(x: np.ndarray) -> np.ndarray:
    """Every output mixes all directions: no output is flat, and even the smallest direction is kept and noised."""
    return (x.mean(axis=0) * SPECTRUM) @ ROTATION


def deeper(x: np.ndarray) -> np.ndarray:
    """Rotated, and falling to 1e-24: the last directions lie below the tolerance of the decomposition."""
    return (x.mean(axis=0) * SPECTRUM**2) @ ROTATION


def wide(x: np.ndarray) -> np.ndarray:
    """40,000 outputs, kept as combinations of worlds: directions below 1e-7 are cut off."""
    return (x.mean(axis=0) * SPECTRUM) @ WIDE


def turned(x: np.ndarray) -> np.ndarray:
    """The same outputs; the cap is on membership, for which the noise takes directions of its own."""
    return rotated(x)


CASES: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (in_one_direction_each, rotated, turned, deeper, wide)
}
every_case = pytest.mark.parametrize("name", CASES)
cutting_cases = pytest.mark.parametrize("name", ["in_one_direction_each", "deeper", "wide"])


@functools.cache
def planned(name: str) -> lc.Plan:
    cap = lc.membership(0.7) if name == "turned" else SMALL["cap"]
    return lc.plan(CASES[name], POOL, seed=8, memory=2**26, **(SMALL | {"cap": cap}))


def releases_of(name: str) -> int:
    return 200 if name == "wide" else RELEASES


class Watched(Seeded):
    """A source of release randomness that remembers the secret."""

    def below(self, n: int) -> int:
        self.secret = super().below(n)
        return self.secret


def honest(plan: lc.Plan, randomness: Watched) -> np.ndarray:
    return plan.releaser.vector(randomness)


def planted(plan: lc.Plan, randomness: Watched) -> np.ndarray:
    """The twin: the same noise, added to the world's own output."""
    secret = randomness.below(plan.worlds.m)
    noise = plan.noise
    return plan.outputs[secret] + noise.space.lift(noise.deviations * randomness.normals(noise.space.rank))


@functools.cache
def outside(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """What of a value lies outside the retained directions."""
    space = planned(name).noise.space
    basis = np.linalg.qr(space.basis())[0]

    def residual(values: np.ndarray) -> np.ndarray:
        left = values - space.centre
        for _ in range(3):  # once leaves rounding of the size of the whole; again and again removes it
            left = left - (left @ basis) @ basis.T
        return left

    return residual


def guesses_right(name: str, release: Callable[[lc.Plan, Watched], np.ndarray], trials: int) -> int:
    """How often the world whose residual is nearest to the release's is the secret one."""
    plan, residual = planned(name), outside(name)
    randomness = Watched(99)
    known = residual(plan.outputs)
    size = (known**2).sum(axis=1)
    right = 0
    for done in range(0, trials, AT_ONCE):  # products of many rows at once are far cheaper than one by one
        seen = [(release(plan, randomness), randomness.secret) for _ in range(min(AT_ONCE, trials - done))]
        rest = residual(np.array([value for value, _ in seen]))
        nearest = np.argmin(size - 2 * rest @ known.T, axis=1)
        right += int((nearest == [secret for _, secret in seen]).sum())
    return right


def at_chance(right: int, trials: int, chance: float = 1 / M) -> bool:
    """Not more often right than a blind guesser would be, but for one test in a million."""
    return right <= binom.isf(FALSE_ALARM, trials, chance)


def test_the_plans_really_cut_directions() -> None:
    ranks = {name: planned(name).noise.space.rank for name in CASES}
    assert ranks["rotated"] == ranks["turned"] == 13
    assert all(3 < ranks[name] < 13 for name in ("in_one_direction_each", "deeper", "wide"))
    assert planned("wide").noise.space.directions is None, "40,000 outputs are kept as combinations of worlds"


@pytest.mark.parametrize("name", ["in_one_direction_each", "wide"])
def test_what_is_cut_off_tells_nothing_about_the_world(name: str) -> None:
    trials = releases_of(name)
    assert at_chance(guesses_right(name, honest, trials), trials)


@pytest.mark.parametrize("name", ["rotated", "turned", "deeper"])
def test_where_only_rounding_is_left_outside_it_tells_no_more_than_the_release(name: str) -> None:
    """Rounding follows from the grid point, which tells as much as the certificate allows: more than nothing."""
    allowed = planned(name).certificate.posterior(1 / M)
    assert allowed < 0.2
    assert at_chance(guesses_right(name, honest, RELEASES), RELEASES, allowed)


@pytest.mark.parametrize(
    ("name", "share"),
    # `deeper` cuts only what is of the size of rounding, and the noise's own rounding hides some of that.
    [("in_one_direction_each", 0.99), ("deeper", 0.75), ("wide", 0.99)],
)
def test_noise_added_to_the_worlds_own_output_is_caught(name: str, share: float) -> None:
    trials = releases_of(name)
    right = guesses_right(name, planted, trials)
    assert right >= share * trials
    assert not at_chance(right, trials)


def test_small_directions_that_are_kept_give_no_more_than_certified() -> None:
    """Attackers who trust only the small directions: nearest world there, each on its own scale.

    Right at most as often as the certificate allows for naming the world (false alarms: one in a million).
    """
    plan = planned("rotated")
    space = plan.noise.space
    small = space.coordinates[:, 6:]
    spread = small.std(axis=0)
    allowed = plan.certificate.posterior(1 / M)

    def right(release: Callable[[lc.Plan, Watched], np.ndarray]) -> int:
        randomness = Watched(3)
        found = 0
        for _ in range(RELEASES):
            at = space.project(release(plan, randomness))[6:]
            found += int(np.argmin((((small - at) / spread) ** 2).sum(axis=1))) == randomness.secret
        return found

    def noise_above_a_tolerance(plan: lc.Plan, randomness: Watched) -> np.ndarray:
        """The twin: directions below 1e-6 of the largest are thought too small to need noise."""
        secret = randomness.below(plan.worlds.m)
        shift = plan.noise.deviations * randomness.normals(space.rank)
        shift[6:] = 0
        return plan.outputs[secret] + space.lift(shift)

    assert at_chance(right(honest), RELEASES, allowed)
    assert right(noise_above_a_tolerance) >= 0.98 * RELEASES
    assert allowed < 0.2


@every_case
def test_a_released_vector_is_a_function_of_its_grid_point_alone(name: str) -> None:
    """Read the grid point off the release and rebuild: every bit of the release is explained by it."""
    plan = planned(name)
    noise, step = plan.noise, plan.releaser.step
    space = noise.space
    largest = noise.deviations > 1e-11 * noise.deviations.max()  # finer grids drown in the rounding of the rest

    def explained(value: np.ndarray, point: np.ndarray) -> bool:
        read = np.rint(space.project(value) / noise.deviations / step)
        assert (read == point)[largest].all(), "the attacker reads the grid point off the release"
        return bool(np.array_equal(value, space.centre + space.lift(point * step * noise.deviations)))

    class Pointed(Watched):
        def normals(self, size: int) -> np.ndarray:
            drawn = super().normals(size)
            self.point = np.rint((space.coordinates[self.secret] / noise.deviations + drawn) / step)
            return drawn

    randomness = Pointed(17)
    assert all(explained(honest(plan, randomness), randomness.point) for _ in range(50))


@cutting_cases
def test_the_planted_twin_is_not_explained_by_its_grid_point(name: str) -> None:
    plan = planned(name)
    randomness = Watched(17)
    values = [planted(plan, randomness) for _ in range(20)]
    noise, step = plan.noise, plan.releaser.step
    for value in values:
        point = np.rint(noise.space.project(value) / noise.deviations / step)
        rebuilt = noise.space.centre + noise.space.lift(point * step * noise.deviations)
        assert not np.array_equal(value, rebuilt)


# Constants


def masked_mean(x: np.ndarray) -> np.ndarray:
    """The mean of a constant column differs between worlds in its last bits: sums round differently."""
    constant = np.full(len(x), 0.1)
    return np.array([float(np.cumsum(constant * (1 + 0 * x[:, 0]))[-1] / len(x)), x[:, 1].mean(), x[:, 2].mean()])


def masked_mean_and_many_more(x: np.ndarray) -> np.ndarray:
    return np.r_[masked_mean(x), wide(x)]


@functools.cache
def constant_plan(fn: Callable[..., Any], floor: float = 0.0) -> lc.Plan:
    pool = POOL[:39]  # worlds of 19 and 20 units
    return lc.plan(fn, pool, seed=4, memory=2**26, floor=floor, **(SMALL | {"weights": None}))


@pytest.mark.parametrize("fn", [masked_mean, masked_mean_and_many_more])
def test_the_masked_mean_of_a_constant_column_is_one_single_released_value(fn: Callable[..., Any]) -> None:
    plan = constant_plan(fn)
    assert len(np.unique(plan.outputs[:, 0])) > 1, "the worlds' own means differ"
    assert np.ptp(plan.outputs[:, 0]) < 1e-15
    randomness = Watched(5)
    released = {honest(plan, randomness)[0].tobytes() for _ in range(200)}
    assert len(released) == 1
    twin = {planted(plan, randomness)[0].tobytes() for _ in range(200)}
    assert len(twin) > 1, "the planted twin shows several values"


def test_a_constant_column_gets_the_floor_it_was_promised() -> None:
    """The floor is a deviation; a column that is constant but for rounding has no scale of its own to shrink it."""
    plan = constant_plan(masked_mean, 0.5)
    exactly_constant = lc.plan(
        lambda x: np.array([0.1, x[:, 1].mean(), x[:, 2].mean()]), POOL[:39], seed=4, floor=0.5, **SMALL
    )
    assert exactly_constant.noise.output_deviations[0] == pytest.approx(0.5)
    assert plan.certificate.unnoised_directions == 0
    assert plan.noise.output_deviations[0] > 1e-3


@pytest.mark.parametrize("constant", [1.0, 0.1, 1 / 3])
def test_a_constant_output_does_not_change_the_noise_of_the_others(constant: float) -> None:
    """0.1 in every world has a computed spread of 1e-17: no scale to compare other outputs with."""
    options = SMALL | {"weights": None, "seed": 4}
    alone = lc.plan(lambda x: x.mean(axis=0)[:2] * [1.0, 3.0], POOL, **options)
    beside = lc.plan(lambda x: np.r_[x.mean(axis=0)[:2] * [1.0, 3.0], constant], POOL, **options)
    assert np.allclose(beside.noise.output_deviations[:2], alone.noise.output_deviations, rtol=1e-6)
    assert beside.noise.output_deviations[2] == 0


def test_equal_outputs_everywhere_are_released_bit_for_bit() -> None:
    plan = lc.plan(lambda x: np.array([0.1, -2.5, 1 / 3]), POOL, seed=4, **SMALL)
    assert plan.noise.space.rank == 0
    expected = np.array([0.1, -2.5, 1 / 3]).tobytes()
    assert {honest(plan, Watched(seed)).tobytes() for seed in range(20)} == {expected}


def test_the_attack_wins_where_nothing_is_hidden() -> None:
    """The attack itself, on a target that leaks: releases without any noise."""

    def bare(plan: lc.Plan, randomness: Watched) -> np.ndarray:
        return plan.outputs[randomness.below(plan.worlds.m)].copy()

    assert guesses_right("deeper", bare, 100) >= 99  # two worlds may look alike to the last digit


def test_noise_is_a_subspace_of_the_outputs_own() -> None:
    """The noise itself stays inside the retained directions, so it cannot hide what was cut (or need to)."""
    noise: Noise = planned("deeper").noise
    outside = np.eye(13) - noise.space.basis() @ np.linalg.pinv(noise.space.basis())
    assert np.abs(outside @ noise.factor).max() < 1e-12
