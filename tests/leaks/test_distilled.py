"""Distilled models: with the released votes held fixed, all that is public is the same whoever takes part."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.estimators import Distilled
from leakcap.estimators import distilled as settings
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.sessions import desk
from tests.leaks.test_sessions import Stopped
from tests.unit.estimators.teachers import ODD, PUBLIC, Leaving, Telling, pool

ROWS, CLASSES = pool(24)


class Loud(Telling):
    """Tells all that it sees while it learns."""

    def fit(self, X: Any, y: Any) -> Loud:
        print("rows", X)
        super().fit(X, y)
        return self


@pytest.fixture(autouse=True)
def _votes_held_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "LOUDEST", 100.0)
    monkeypatch.setattr(desk, "datetime", Stopped)

    def fixed(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        return (np.sin(np.arange(len(deviations))) + 1.2) * deviations

    monkeypatch.setattr(desk, "with_noise", fixed)


def shown(teacher: Any, cap: Any, *, first: int = 0, coins: int | None = None, student: Any = None) -> list[bytes]:
    """All that a fit in a session shows, without the people before `first`, or by coins of a seed."""
    session = lc.Session((ROWS[first:], CLASSES[first:]), cap=cap, unit=np.arange(first, 24), rows_per_unit=1, seed=1)
    if coins is not None:
        drawn = np.random.default_rng(coins).integers(0, 2, size=24).astype(bool)
        session._desk = replace(session._desk, coins=drawn)
    model = Distilled(teacher, student or Telling(), queries=PUBLIC, classes=[0, 1], blocks=4)
    made = session.fit(model, ["0", "1"], "2", share=0.9)
    public = (made.predict(PUBLIC), made.votes_, made.blocks_, made.estimator_, made)
    texts = repr((made, session.history)), str(session.certificate)
    return [*map(pickle.dumps, public), *(text.encode() for text in texts)]


def differing(show: Callable[[int], list[bytes]], count: int) -> int:
    """How many of the things shown are not the same."""
    seen = [show(number) for number in range(count)]
    return sum(len(set(things)) > 1 for things in zip(*seen, strict=True))


@pytest.mark.parametrize("teacher", [Telling(), Leaving(), Loud()])
def test_public_bytes_of_a_distilled_model_are_the_same_whoever_took_part(teacher: Any, capfd: Any) -> None:
    assert differing(lambda seed: shown(teacher, lc.membership(0.6), coins=seed), 4) == 0
    said = capfd.readouterr()
    assert str(ODD) not in said.out + said.err and "rows" not in said.out + said.err


@pytest.mark.parametrize("teacher", [Telling(), Leaving()])
def test_public_bytes_of_a_distilled_model_are_the_same_without_a_person(teacher: Any) -> None:
    assert differing(lambda first: shown(teacher, lc.pool_membership(0.6), first=first), 3) == 0


def test_counts_that_put_a_student_right_bring_nobody_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held fixed, far above the noise: so the student's probabilities are put right at all."""

    def fixed(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        return 40 * (np.sin(np.arange(len(deviations))) + 1.2) * deviations

    def without(first: int) -> list[bytes]:
        return shown(Telling(), lc.pool_membership(0.6), first=first, student=LogisticRegression())

    monkeypatch.setattr(desk, "with_noise", fixed)
    assert differing(without, 3) == 0
    assert (
        differing(lambda seed: shown(Telling(), lc.membership(0.6), coins=seed, student=LogisticRegression()), 3) == 0
    )
    assert np.abs(pickle.loads(without(0)[3]).shifts_).max() > 0.1


def test_a_planted_trace_of_those_who_voted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: blocks without anybody are no teachers, and the model says how many teachers there were."""
    learnt, taught = Distilled._learnt, TaughtBlocks.vectors
    voted: list[int] = []

    def counting(self: TaughtBlocks, mask: Any) -> Any:
        voted.append(int(mask.sum()))
        return taught(self, mask)

    def telling(self: Any, fitting: Any, rows: Any) -> Any:
        made = learnt(self, fitting, rows)
        made.blocks_ = voted[-1]
        return made

    monkeypatch.setattr(TaughtBlocks, "vectors", counting)
    monkeypatch.setattr(Distilled, "_learnt", telling)
    assert differing(lambda seed: shown(Telling(), lc.membership(0.6), coins=seed), 4) > 0
