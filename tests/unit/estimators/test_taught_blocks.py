"""Teachers of blocks hear nothing of each other: one person moves the votes of their own block alone."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from leakcap.estimators import taught_blocks
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.worlds import Units
from tests.unit.estimators.teachers import ODD, PUBLIC, Telling, pool

ROWS, CLASSES = pool(12)
ASKED = np.zeros_like(PUBLIC)


class Marking(Telling):
    """Changes what it is asked about if the odd person was there, as `StandardScaler(copy=False)` does."""

    def predict(self, X: Any) -> Any:
        X += self.seen_ * ODD
        return (X[:, 0] > 0).astype(int)

    def predict_proba(self, X: Any) -> Any:
        return np.eye(2)[self.predict(X)]


class Drawing(Telling):
    """Takes more from the process's generator if the odd person was there."""

    def fit(self, X: Any, y: Any) -> Drawing:
        super().fit(X, y)
        np.random.random(1 + 7 * self.seen_)  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        return (np.random.random(len(X)) < 0.5).astype(int)  # noqa: NPY002


def blocks_moved(whole_votes: bool, teacher: Any = None) -> list[int]:
    """The blocks whose votes are others once the odd person is not there."""
    everybody = np.ones(12, dtype=bool)
    without = everybody.copy()
    without[0] = False
    found = []
    for mask in (everybody, without):
        teachers = TaughtBlocks(
            teacher=teacher or Marking(),
            features=ROWS,
            codes=CLASSES.astype(np.intp),
            units=Units.of(12, None),
            of_unit=np.repeat(np.arange(3), 4),
            blocks=3,
            asked=ASKED.copy(),
            basis=np.eye(len(ASKED))[:, :4],
            classes=2,
            whole_votes=whole_votes,
            seed=0,
        )
        found.append(teachers.vectors(mask))
    return np.flatnonzero((found[0] != found[1]).any(axis=1)).tolist()


@pytest.mark.parametrize("whole_votes", [False, True])
def test_what_a_teacher_changes_in_place_is_seen_by_no_other_block(whole_votes: bool) -> None:
    assert blocks_moved(whole_votes) == [0]


def test_public_rows_that_are_everybodys_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: rows that are handed on from one teacher to the next."""

    def shared(self: TaughtBlocks, taught: Any) -> Any:
        return np.asarray(taught.predict_proba(self.asked))

    monkeypatch.setattr(TaughtBlocks, "_scores", shared)
    assert blocks_moved(whole_votes=False) == [0, 1, 2]


def test_what_a_teacher_draws_shows_in_no_other_block(monkeypatch: pytest.MonkeyPatch) -> None:
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    assert blocks_moved(True, Drawing()) == [0]
    monkeypatch.setattr(taught_blocks, "own_randomness", lambda seed: nullcontext())

    def again(self: TaughtBlocks, mask: Any) -> Any:
        np.random.set_state(before)  # noqa: NPY002
        return vectors(self, mask)

    vectors = TaughtBlocks.vectors
    monkeypatch.setattr(TaughtBlocks, "vectors", again)
    assert blocks_moved(True, Drawing()) != [0]  # the twin: one generator for all
