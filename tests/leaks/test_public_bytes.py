"""Rule 6: with the released value held fixed, every public artefact is byte-identical whichever world was secret.

Method: the plan's source of randomness is replaced by one that picks the world we choose and then just the noise
that leads from there to one agreed grid point (with a different remainder below the grid for every world). Whatever
still differs between two such releases tells the world. Each check has a planted twin: a release path that leaks
must be caught by the same check. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
import types
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import Noise
from tests.leaks.rigged import (
    JITTERS,
    SMALL,
    Rigged,
    X,
    every_case,
    new_token,
    planned,
    points_of,
    public_artefacts,
    rigged_release,
    telling_artefacts,
)

finite = importlib.import_module("leakcap.modes.exact")  # the package has a function of this name

# Bytes


@every_case
def test_public_artefacts_are_byte_identical_whichever_world_was_secret(name: str) -> None:
    assert not telling_artefacts(planned(name))


def test_the_check_sees_another_grid_point() -> None:
    plan = planned("array")
    point = points_of(plan)[1]
    one, two = (public_artefacts(rigged_release(plan, 3, point + shift, 0.0)) for shift in (0, 1))
    assert one["pickled value"] != two["pickled value"]
    assert one["certificate JSON"] == two["certificate JSON"]


def own_output_plus_noise(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
    """The planted leak: the same grid point in exact arithmetic, but reached from the world's own output."""
    space = noise.space
    world = int(np.flatnonzero((space.coordinates == coordinates).all(axis=1))[0])
    point = np.rint((coordinates / noise.deviations + randomness.normals(space.rank)) / step)
    return space.outputs[world] + space.lift(point * step * noise.deviations - coordinates)


def noise_off_the_grid(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
    """The planted leak: rebuilt, but what the grid would have cut off is left in."""
    shifted = coordinates + noise.deviations * randomness.normals(noise.space.rank)
    return noise.space.centre + noise.space.lift(shifted)


@pytest.mark.parametrize("leak", [own_output_plus_noise, noise_off_the_grid])
@pytest.mark.parametrize("name", ["array", "dict", "frame", "nearly constants", "equal weights", "ridge"])
def test_a_planted_leak_in_the_release_path_is_caught(name: str, leak: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(finite, "released_vector", leak)
    assert {"pickled release", "pickled value"} <= telling_artefacts(planned(name))


def test_a_planted_leak_in_dropped_directions_alone_is_caught(monkeypatch: Any) -> None:
    def leak(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        world = int(np.flatnonzero((noise.space.coordinates == coordinates).all(axis=1))[0])
        value = released(noise, coordinates, step, randomness)
        value[0] = noise.space.outputs[world][0]  # the mean of a constant column: it differs in the last bit only
        return value

    plan = planned("nearly constants")
    assert np.ptp(plan.outputs[:, 0]) < 1e-15
    released = finite.released_vector
    monkeypatch.setattr(finite, "released_vector", leak)
    assert "pickled release" in telling_artefacts(plan)


def test_a_planted_remark_about_the_world_is_caught() -> None:
    plan = planned("array")
    plain = plan.certificate
    found = set()
    try:
        for world in (0, 8):  # a world and its complement
            plan.certificate = replace(plain, declared_public=(f"the first unit: {plan.worlds.mask(world)[0]}",))
            found.add(public_artefacts(rigged_release(plan, world, points_of(plan)[1], 0.0))["pickled release"])
    finally:
        plan.certificate = plain
    assert len(found) == 2


FRESH = {
    "confidence": {"mode": "confidence"},
    "bits": {"mode": "confidence", "design": "bits"},
    "individual": {"mode": "individual", "draws": 256},
}


@pytest.mark.parametrize("way", FRESH)
def test_a_fresh_world_leaves_no_trace_beside_the_released_point(way: str) -> None:
    """Confidence mode runs the function on the secret world itself: failures, other forms and extremes included."""

    def moody(x: np.ndarray) -> Any:
        mood = int(x[:, 0].sum() * 1e6) % 4 if armed else 0
        if mood == 1:
            raise ValueError("no answer here")
        return {0: x.mean(axis=0), 2: x.mean(axis=0)[:2], 3: x.mean(axis=0) * 1e6}[mood]

    armed = False
    options: dict[str, Any] = {"worlds": 64, "confidence": 0.9, **FRESH[way]}
    plan = lc.plan(moody, X, cap=lc.membership(0.9), **options)
    armed = True
    mechanism = plan.releaser
    space, deviations = mechanism.noise.space, mechanism.noise.deviations
    point = np.arange(space.rank) * 17.0 - 5

    class RiggedFresh:
        def __init__(self, world: int, jitter: float) -> None:
            answer = mechanism.rerun(mechanism.draw(self.source(world)))
            at = np.zeros(space.rank) if answer is None else space.project(answer)
            self.start = np.clip(at, mechanism.low, mechanism.high) / deviations
            self.world, self.jitter, self.kind = world, jitter, answer is None

        @staticmethod
        def source(world: int) -> Any:
            return types.SimpleNamespace(bits=lambda: np.random.default_rng(world))

        def bits(self) -> np.random.Generator:
            return np.random.default_rng(self.world)

        def normals(self, size: int) -> np.ndarray:
            assert size == space.rank
            return (point + self.jitter) * finite.GRID - self.start

    rigged = [RiggedFresh(world, jitter) for world in range(3) for jitter in JITTERS]
    rigged += [RiggedFresh(world, 0.2) for world in range(3, 15)]
    assert {one.kind for one in rigged} == {True, False}, "some fresh worlds fail, some do not"
    seen = set()
    for one in rigged:
        plan.randomness, plan._token = one, new_token()
        seen.add(tuple(public_artefacts(plan.release()).values()))
    assert len(seen) == 1


EXTREMES = {
    "huge": lambda x: np.array([1.7e308, -1.7e308, 1.7e308]),
    "infinite": lambda x: np.full(3, np.inf),
    "no number": lambda x: np.full(3, np.nan),
    "too large for a float": lambda x: np.array([10**400, 0, 0], dtype=object),
    "cannot be an array": lambda x: Spiteful(),
    "raises": lambda x: x.no_such_attribute,
    "our own error": lambda x: lc.membership(float(x[0, 0])),
    "leaves the program": lambda x: sys.exit(),
    "text": lambda x: "777123.25",
    "warns": lambda x: warnings.warn("777123.25", stacklevel=1) or x.mean(axis=0),
}


class Spiteful:
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("777123.25")


CALLED: list[str] = []  # what the function of `fresh_plan` does from now on


@functools.cache
def fresh_plan() -> lc.Plan:
    def fn(x: np.ndarray) -> Any:
        return EXTREMES[CALLED[-1]](x) if CALLED else x.mean(axis=0)

    return lc.plan(fn, X, cap=lc.membership(0.9), worlds=64, mode="confidence", confidence=0.9, seed=11)


@pytest.mark.parametrize("name", EXTREMES)
def test_whatever_happens_in_the_fresh_world_a_finite_answer_comes_out_without_a_word(name: str) -> None:
    """A failure or a warning there would tell about the secret: only some worlds have it."""
    plan = fresh_plan()
    plan._token = new_token()
    CALLED.append(name)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            value = plan.release().value
    finally:
        CALLED.clear()
    assert value.shape == (3,)
    assert np.isfinite(value).all()
    assert not heard


# Texts around a release


def test_the_custodians_own_texts_do_not_change_when_the_secret_is_drawn() -> None:
    plan = planned("frame")
    texts = set()
    for world in (0, 5, 13):
        rigged_release(plan, world, points_of(plan)[1], 0.1)
        texts.add((repr(plan), str(plan.summary()), repr(plan.noise), repr(plan.worlds), plan.certificate.to_json()))
    assert len(texts) == 1


def test_the_refusal_of_a_second_release_and_the_warning_say_nothing_about_the_secret() -> None:
    errors, warned = set(), set()
    for world in (0, 9):
        plan = lc.plan(lambda x: x.mean(axis=0), X + 1000 + world, **SMALL)
        mechanism = plan.releaser
        for again in (plan, lc.plan(lambda x: x.mean(axis=0), X + 1000 + world, **SMALL)):
            again.randomness = Rigged(again.noise, mechanism.step, world, points_of(again)[1], 0.0)
            if again is plan:
                again.release()
            else:
                with pytest.warns(lc.RepeatedReleaseWarning) as caught:
                    again.release()
                warned.add(str(caught[0].message))
            with pytest.raises(lc.AlreadyReleased) as refused:
                again.release()
            errors.add(str(refused.value))
    assert len(errors) == len(warned) == 1


@every_case
def test_the_certificate_is_complete_before_the_release_and_unchanged_by_it(name: str) -> None:
    plan = planned(name)
    before = plan.certificate.to_json(), pickle.dumps(plan.certificate)
    release = rigged_release(plan, 1, points_of(plan)[1], 0.2)
    assert release.certificate is plan.certificate
    assert (release.certificate.to_json(), pickle.dumps(release.certificate)) == before
