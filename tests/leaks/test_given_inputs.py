"""Given inputs: with the released value held fixed, every public byte is the same whichever input was used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.modes import OneOfTheInputs
from tests.leaks.rigged import CUSTODIAN, JITTERS, Rigged, new_token, points_of, public_artefacts, reachable

PRIOR = [0.35, 0.05, 0.2, 0.3, 0.1]
CASES: dict[str, Callable[[float], Any]] = {
    "number": lambda x: x,
    "dict": lambda x: {"a": [x, x * x], "n": 3},
    "array": lambda x: np.array([x, np.sin(x), 1.0, x**2]),
}


class RiggedInput(Rigged):
    """The same for inputs: of the numbers that stand for one of them, its first."""

    def __init__(self, plan: lc.Plan, which: int, point: np.ndarray, jitter: float) -> None:
        super().__init__(plan.noise, plan.releaser.step, which, point, jitter)
        numbers = plan.run.worlds.numbers
        self.number = next(n for n in range(numbers) if plan.run.worlds.drawn(n) == which)

    def below(self, n: int) -> int:
        return self.number


@functools.cache
def planned(name: str) -> lc.Plan:
    fn = CASES[name]
    return lc.plan(fn, inputs=[0.0, 1.0, 1.5, 4.0, 7.0], prior=PRIOR, cap=lc.mutual_information(0.3), draws=512)


def telling(plan: lc.Plan) -> set[str]:
    """Names of the public artefacts that differ between inputs."""
    found = set()
    for point in points_of(plan):
        seen = []
        for which, jitter in enumerate(JITTERS):
            kept = plan.randomness, plan._token
            plan.randomness, plan._token = RiggedInput(plan, which, point, jitter), new_token()
            try:
                release = plan.release()
                seen.append({**public_artefacts(release), "page": release.to_html().encode()})
            finally:
                plan.randomness, plan._token = kept
        found |= {name for name in seen[0] if len({artefact[name] for artefact in seen}) > 1}
    return found


@pytest.mark.parametrize("name", CASES)
def test_public_artefacts_are_byte_identical_whichever_input_was_used(name: str) -> None:
    assert not telling(planned(name))


def test_a_planted_release_of_the_input_itself_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("array")
    from leakcap.modes import given

    def leaks(noise: Any, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        """Noise is added to the input's own answer, whose low-order bits remain."""
        which = int(np.flatnonzero((noise.space.coordinates == coordinates).all(axis=1))[0])
        drawn = randomness.normals(noise.space.rank)
        return np.asarray(plan.outputs[which] + noise.space.lift(drawn * noise.deviations))

    monkeypatch.setattr(given, "released_vector", leaks)
    assert "pickled value" in telling(plan)


def test_a_planted_certificate_that_knows_the_input_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("number")
    honest = type(plan.releaser).vector

    def tells(self: Any, randomness: Any) -> np.ndarray:
        plan.certificate = plan.certificate.__class__(
            **{**vars(plan.certificate), "declared_public": (f"number {randomness.number}",)}
        )
        return honest(self, randomness)

    monkeypatch.setattr(type(plan.releaser), "vector", tells)
    kept = plan.certificate
    try:
        assert "certificate JSON" in telling(plan)
    finally:
        plan.certificate = kept


def test_nothing_of_the_custodians_hangs_on_a_release() -> None:
    plan = lc.plan(
        CASES["dict"], inputs=[0.0, 1.0, 1.5, 4.0, 8.0], prior=PRIOR, cap=lc.mutual_information(0.3), draws=512
    )
    release = plan.release()
    kinds = (*CUSTODIAN, OneOfTheInputs)

    def held(root: Any) -> list[Any]:
        return [one for one in reachable(root) if isinstance(one, kinds)]

    assert not held(release)
    assert held(replace(release, notes=(plan.worlds,)))  # planted: the list of inputs goes along
