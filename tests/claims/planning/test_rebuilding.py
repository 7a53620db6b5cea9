"""A release is never lost after the draw: what cannot be rebuilt is refused before, and leaves as numbers after."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.modes.exact import OneOfTheWorlds
from leakcap.noise import OperatingSystem
from leakcap.planning import rebuilding
from leakcap.planning.entry import stored_plan
from tests.refusals import refusal

MARK = "777123"
X = 777123.25 + np.random.default_rng(7).random((24, 2))
SMALL: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256}
REFUSED: list[Any] = [lambda variance: False]
BUILT: list[float] = []


@dataclass
class Spread:
    """An answer that does not take every number."""

    variance: float

    def __post_init__(self) -> None:
        BUILT.append(self.variance)
        if REFUSED[0](self.variance):
            raise ArithmeticError(f"no such variance: {self.variance}, for 777123")


def spread(x: Any) -> Any:
    return Spread(float(x[:, 0].mean()))


@pytest.fixture(autouse=True)
def _nothing_refused() -> Any:
    BUILT.clear()
    REFUSED[0] = lambda variance: False
    yield
    REFUSED[0] = lambda variance: False


class Untouched(OperatingSystem):
    """Randomness that nobody may ask yet."""

    def below(self, n: int) -> int:
        raise AssertionError("a secret was drawn")


def test_what_fails_on_simulated_releases_fails_before_anything_is_drawn_or_spent() -> None:
    plan = lc.plan(spread, X, **SMALL)
    REFUSED[0] = lambda variance: variance > np.median(plan.outputs)
    plan.randomness = Untouched()
    refusal(plan.release, "nothing is spent", lc.OutputError, private=(MARK, "no such variance"))
    REFUSED[0] = lambda variance: False
    plan.randomness = OperatingSystem()
    assert isinstance(plan.release().value, Spread)


def test_twenty_are_tried_the_same_each_time_and_none_is_the_release() -> None:
    plan = lc.plan(spread, X, **SMALL)
    BUILT.clear()
    value = plan.release().value.variance
    assert len(BUILT) == rebuilding.REHEARSALS + 1 == 21
    assert BUILT[-1] == value
    first, BUILT[:] = BUILT[:20], []
    rebuilding.refuse_fragile(plan.answer_of, plan.noise, None)
    assert first == BUILT
    assert len(set(first)) > 10, "worlds and noise differ"
    assert value not in first or plan.noise.std == 0


def test_of_large_answers_fewer_are_tried_by_size_alone(monkeypatch: Any) -> None:
    plan = lc.plan(spread, X, **SMALL)
    for products, tries in ((5, 5), (1, 2), (10**6, 20)):
        monkeypatch.setattr(rebuilding, "MAX_PRODUCTS", products)
        BUILT.clear()
        rebuilding.refuse_fragile(plan.answer_of, plan.noise, None)
        assert len(BUILT) == tries


@pytest.mark.parametrize("kept", [False, True])
def test_what_fails_afterwards_leaves_as_numbers_with_the_reason(kept: bool, tmp_path: Path, monkeypatch: Any) -> None:
    plan = lc.plan(spread, X, checkpoint=tmp_path / "plan" if kept else None, **SMALL)
    drawn: list[Any] = []
    vector = OneOfTheWorlds.vector

    def watched(self: Any, randomness: Any) -> Any:
        drawn.append(vector(self, randomness))
        REFUSED[0] = lambda variance: variance == drawn[-1][0]  # the real one, and no simulated one
        return drawn[-1]

    monkeypatch.setattr(OneOfTheWorlds, "vector", watched)
    release = plan.release()
    assert len(drawn) == 1
    assert release.value.tobytes() == release.outputs.tobytes() == drawn[0].tobytes()
    assert "ArithmeticError" in str(release.not_rebuilt)
    assert "no such variance" not in str(release.not_rebuilt)
    assert release.names
    assert release.certificate == plan.certificate
    assert release.interval(0.9)[0] < release.value < release.interval(0.9)[1]
    again = pickle.loads(pickle.dumps(release))
    assert again.not_rebuilt == release.not_rebuilt
    if kept:  # the same again, and in its form where that works now
        assert stored_plan(tmp_path / "plan").release().value.tobytes() == release.value.tobytes()
        REFUSED[0] = lambda variance: False
        assert stored_plan(tmp_path / "plan").release().value == Spread(release.value[0])


def test_the_check_sees_a_release_that_is_lost(monkeypatch: Any) -> None:
    """The planted twin: rebuilding that raises."""
    plan = lc.plan(spread, X, **SMALL)
    monkeypatch.setattr("leakcap.planning.plans.refuse_fragile", lambda *_: None)
    monkeypatch.setattr("leakcap.planning.plans.rebuilt", lambda make, vector: (make(vector), None))
    REFUSED[0] = lambda variance: True
    with pytest.raises(ArithmeticError):
        plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_an_estimator_that_cannot_be_made_is_refused_before_and_kept_as_numbers_after(monkeypatch: Any) -> None:
    private = lc.estimators.Mean(**SMALL_ESTIMATOR)
    computed = type(private)._computation

    def breaking(after: int) -> Any:
        def computation(self: Any, rows: Any) -> Any:
            made, builds = computed(self, rows), [0]

            def build(value: Any) -> Any:
                builds[0] += 1
                if builds[0] > after:
                    raise ArithmeticError(MARK)
                return made.build(value)

            return type(made)(**(vars(made) | {"build": build}))

        return computation

    monkeypatch.setattr(type(private), "_warn_where_useless", lambda *_: None)  # it builds some, to judge them
    monkeypatch.setattr(type(private), "_computation", breaking(19))
    refusal(lambda: private.fit(X), "nothing is spent", lc.OutputError, private=(MARK,))
    assert not hasattr(private, "release_")
    monkeypatch.setattr(type(private), "_computation", breaking(20))
    refusal(lambda: private.fit(X), "release_", lc.OutputError, private=(MARK,))
    assert private.release_.certificate == private.certificate_
    assert len(private.release_.outputs) == 2
    monkeypatch.setattr(type(private), "_computation", computed)
    private.fit(X + 1)
    assert not hasattr(private, "release_")


SMALL_ESTIMATOR: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "options": {"draws": 256}}
