"""Parts of a `plan_together` have one secret and noise of their own, and nothing is chosen after an answer."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.planning.released import forget_released

X = np.random.default_rng(8).normal(size=(20, 2))
LOUD = lc.mutual_information(2.7)  # of log 16 = 2.77: hardly any noise


def first(rows: np.ndarray) -> float:
    return float(rows[:, 0].mean())


def second(rows: np.ndarray) -> float:
    return float(rows[:, 1].mean())


def both(cap: Any = LOUD) -> lc.Together:
    forget_released()
    return lc.plan_together([first, second], X, cap=cap, worlds=16)


def read_off(plan: Any, released: float) -> int:
    """The world whose answer is nearest."""
    return int(np.abs(plan.outputs[:, 0] - released).argmin())


def agreements(plans: Any) -> int:
    found = 0
    for _ in range(12):
        one, two = plans()
        found += read_off(one, one.release().value) == read_off(two, two.release().value)
    return found


def test_parts_are_released_from_one_secret() -> None:
    """Chance alone: 11 of 12 agreements of 16 worlds have a probability below 1e-12."""
    assert agreements(lambda: both().apart(LOUD)) >= 11


def test_two_plans_have_two_secrets() -> None:
    """The twin: plans of their own agree by chance alone."""

    def plans() -> Any:
        forget_released()
        two = [lc.plan(function, X, cap=LOUD, worlds=16) for function in (first, first)]
        forget_released()
        return two

    with pytest.warns(lc.RepeatedReleaseWarning):
        assert agreements(plans) <= 6


def test_the_secret_differs_from_plan_to_plan() -> None:
    seen = set()
    for _ in range(6):
        one, _ = both().apart(LOUD)
        seen.add(round(one.release().value, 3))
    assert len(seen) > 2


def test_trials_of_an_audit_have_worlds_of_their_own() -> None:
    """Whoever tries a part out sees many worlds, and the secret is not drawn."""
    together = both()
    one, two = together.apart(LOUD)
    worlds = {read_off(one, float(one.releaser.vector(one.randomness)[0])) for _ in range(40)}
    assert len(worlds) > 4
    assert together._secret._world == -1
    one.release()
    assert together._secret._world >= 0
    worlds = {read_off(two, float(two.releaser.vector(two.randomness)[0])) for _ in range(40)}
    assert len(worlds) > 4, "the secret is for the release alone"


# Nothing is chosen after an answer was seen


def test_after_a_part_neither_other_caps_nor_the_joint_answer() -> None:
    together = both()
    one, two = together.apart(LOUD)
    one.recap(lc.mutual_information(2.0))  # before the first release all is open
    one.release()
    for forbidden in (together.release, together.plan.release, one.release, lambda: two.recap(LOUD), one.recap):
        with pytest.raises(lc.AlreadyReleased):
            forbidden() if forbidden != one.recap else forbidden(LOUD)
    two.release()


def test_after_the_joint_answer_no_parts() -> None:
    together = both()
    one, _ = together.apart(LOUD)
    value = together.release().value
    assert len(value) == 2
    with pytest.raises(lc.AlreadyReleased):
        one.release()
    other = both()
    other.release()
    with pytest.raises(lc.AlreadyReleased):
        other.apart(LOUD)


def test_parts_released_at_once_in_threads_are_of_one_secret() -> None:
    together, found = both(), list[Any]()
    parts = together.apart(LOUD)
    threads = [threading.Thread(target=lambda part=part: found.append((part, part.release()))) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({read_off(part, made.value) for part, made in found}) == 1


# What may be asked


def test_parts_keep_their_form_and_sums_their_scale() -> None:
    together = lc.plan_together([lc.stats.sum, lambda rows: {"high": rows.max(axis=0)}], X, cap=LOUD, worlds=16)
    one, two = together.apart(lc.membership(0.9), lc.membership(0.8))
    alone = lc.plan(lc.stats.sum, X, cap=LOUD, worlds=16, design="worlds")
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
