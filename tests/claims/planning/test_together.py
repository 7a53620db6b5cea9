"""Parts of a `plan_together` have one secret and noise of their own, and nothing is chosen after an answer."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import released_vector
from leakcap.planning.released import forget_released

X = np.random.default_rng(8).normal(size=(20, 2))
CAP = lc.mutual_information(0.5)
pytestmark = pytest.mark.usefixtures("few_draws")
exact = importlib.import_module("leakcap.modes.exact")  # the package has a function of this name


def first(rows: np.ndarray) -> float:
    return float(rows[:, 0].mean())


def second(rows: np.ndarray) -> float:
    return float(rows[:, 1].mean())


def both(cap: Any = CAP) -> lc.JointPlan:
    forget_released()
    return lc.plan_together([first, second], X, cap=cap, worlds=16)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The world behind every release, in order."""
    seen = list[int]()

    def watched(noise: Any, coordinates: np.ndarray, *rest: Any, **options: Any) -> Any:
        seen.append(int(np.flatnonzero((noise.space.coordinates == coordinates).all(axis=1))[0]))
        return released_vector(noise, coordinates, *rest, **options)

    monkeypatch.setattr(exact, "released_vector", watched)
    return seen


def all_of_one_secret(used: list[int], release: Any) -> bool:
    """Whether two releases came from the same world, five times. By chance: with probability 1e-6."""
    for _ in range(5):
        used.clear()
        release()
        if len(set(used)) > 1:
            return False
    return True


def test_parts_are_released_from_one_secret(used: list[int]) -> None:
    assert all_of_one_secret(used, lambda: [part.release() for part in both().apart(CAP)])


def test_two_plans_have_two_secrets(used: list[int]) -> None:
    """The twin: plans of their own agree by chance alone."""

    def plans() -> Any:
        for _ in range(2):
            forget_released()
            lc.plan(first, X, cap=CAP, worlds=16).release()

    assert not all_of_one_secret(used, plans)


def test_the_secret_differs_from_plan_to_plan(used: list[int]) -> None:
    for _ in range(5):
        both().apart(CAP)[0].release()
    assert len(set(used)) > 1


def test_trials_of_an_audit_have_worlds_of_their_own(used: list[int]) -> None:
    """Whoever tries a part out sees many worlds, and the secret is not drawn."""
    together = both()
    one, two = together.apart(CAP)
    for part in (one, two):
        used.clear()
        for _ in range(40):
            part.releaser.vector(part.randomness)
        assert len(set(used)) > 4, "the secret is for the release alone"
        assert (together._secret._world >= 0) == (part is two)
        part.release()
        assert used[-1] == together._secret._world


# Nothing is chosen after an answer was seen


def test_after_a_part_neither_other_caps_nor_the_joint_answer() -> None:
    together = both()
    one, two = together.apart(CAP)
    one.recap(lc.mutual_information(0.4))  # before the first release all is open
    one.release()
    for forbidden in (together.release, together.plan.release, one.release, lambda: two.recap(CAP), one.recap):
        with pytest.raises(lc.AlreadyReleased):
            forbidden() if forbidden != one.recap else forbidden(CAP)
    two.release()


def test_after_the_joint_answer_no_parts() -> None:
    together = both()
    one, _ = together.apart(CAP)
    value = together.release().value
    assert len(value) == 2
    with pytest.raises(lc.AlreadyReleased):
        one.release()
    other = both()
    other.release()
    with pytest.raises(lc.AlreadyReleased):
        other.apart(CAP)


def test_parts_released_at_once_in_threads_are_of_one_secret(used: list[int]) -> None:
    threads = [threading.Thread(target=part.release) for part in both().apart(CAP)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(used) == 2 and len(set(used)) == 1


# What may be asked


def test_parts_keep_their_form_and_sums_their_scale() -> None:
    together = lc.plan_together([lc.stats.sum, lambda rows: {"high": rows.max(axis=0)}], X, cap=CAP, worlds=16)
    one, two = together.apart(lc.membership(0.9), lc.membership(0.8))
    alone = lc.plan(lc.stats.sum, X, cap=CAP, worlds=16, design="worlds")
    np.testing.assert_allclose(one.run.simulation.whole_pool, alone.run.simulation.whole_pool)
    np.testing.assert_allclose(one.outputs.mean(axis=0), alone.outputs.mean(axis=0), rtol=1e-9)
    assert set(two.release().value) == {"high"}
    assert np.shape(one.release().value) == (2,)


@pytest.mark.parametrize(
    ("functions", "options"),
    [
        ([], {}),
        ([first], {}),
        (first, {}),
        ([first, 3], {}),
        ("mean", {}),
        ([first, second], {"mode": "confidence"}),
        ([first, second], {"design": "bits"}),
        ([first, second], {"seed": 1}),
        ([first, second], {"ledger": "sqlite:///x.db"}),
        ([first, second], {"cap": lc.pool_membership(0.6), "bounds": (-3, 3)}),
    ],
)
def test_what_cannot_be_planned_together_is_refused(functions: Any, options: Any) -> None:
    with pytest.raises(lc.InputError):
        lc.plan_together(functions, X, **{"cap": 0.8, "worlds": 16, **options})


def test_caps_of_parts_are_one_for_each_and_given_once(tmp_path: Any) -> None:
    together = both()
    with pytest.raises(lc.InputError, match="apart"):
        together.composed()
    for caps in ((), (0.6, 0.6, 0.6)):
        with pytest.raises(lc.InputError, match="one cap for each"):
            together.apart(*caps)
    together.apart(0.9)
    with pytest.raises(lc.InputError, match="planned already"):
        together.apart(0.9)
    kept = lc.plan_together([first, second], X, cap=0.9, worlds=16, checkpoint=tmp_path / "run")
    with pytest.raises(lc.InputError, match="checkpoint"):
        kept.apart(0.9)
