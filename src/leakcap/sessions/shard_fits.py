"""A fit about people in shards: the estimator is fitted to the rows of each shard, and all of these fits ask as one.

What an estimator does in a session hangs on declarations and on answers alone. So its fits to the rows of different
shards ask the same questions, one after the other; each question is answered once, by what the people of all shards
bring, and every fit hears that answer. They take turns, so that never two of them run at a time.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from leakcap.errors import InputError, OutputError
from leakcap.ground.proofs import proves
from leakcap.sessions.answers import Noised
from leakcap.sessions.brought import Sums
from leakcap.sessions.fitting import fitting
from leakcap.sessions.partitioned import UNDECLARED, Dealt, OverShards, PartedQuestions, shard_table
from leakcap.sessions.questions import SessionQuestion
from leakcap.sessions.table import SessionTable
from leakcap.simulate.silence import kept_quiet

__all__ = ["fitted_over", "in_turns"]

APART = "the estimator asked about some people what it did not ask about others: it hangs on more than answers"
Answer = Callable[[SessionQuestion, float], Noised]


class _GivenUp(BaseException):
    """Nobody waits for this fit any more."""


@dataclass(frozen=True, eq=False)
class _Turn:
    """What a fit has done with its turn: it asks, or has come to its end."""

    asks: tuple[SessionQuestion, float] | None = None
    fitted: Any = None
    failed: BaseException | None = None

    @property
    def text(self) -> str | None:
        """The same for the same question; None at the end."""
        return None if self.asks is None else self.asks[0].text(share=self.asks[1])


class _ShardFit:
    """A fit to the rows of one shard, which goes on when it is given a turn."""

    def __init__(self, fit: Callable[[Answer], Any]) -> None:
        self._told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Turn] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(fit,), daemon=True)
        self._thread.start()

    def turn(self, told: Noised | None) -> _Turn:
        """Until it asks, or ends."""
        self._told.put(told)
        return self._done.get()

    def stop(self) -> None:
        """It ends where it waits."""
        self._told.put(_GivenUp)
        self._thread.join()

    def _run(self, fit: Callable[[Answer], Any]) -> None:
        try:
            self._heard()
            self._done.put(_Turn(fitted=fit(self._ask)))
        except BaseException as error:
            self._done.put(_Turn(failed=error))

    def _ask(self, question: SessionQuestion, share: float) -> Noised:
        self._done.put(_Turn(asks=(question, share)))
        answer: Noised = self._heard()
        return answer

    def _heard(self) -> Any:
        told = self._told.get()
        if told is _GivenUp:
            raise _GivenUp
        return told


@dataclass(frozen=True, eq=False)
class _Step:
    """One question of all fits."""

    sums: dict[int, Sums]  # by the place of a shard: what its people bring

    def first(self, shards: Any, noise_given: bool) -> Sums:
        return self.brought(shards.shards[0], noise_given)

    def brought(self, shard: Any, noise_given: bool) -> Sums:
        return self.sums[shard.place]


def fitted_over(questions: PartedQuestions, estimator: Any, answer: Answer, **how: Any) -> Any:
    """What the estimator becomes.

    Args:
        questions: what can be asked of people in shards.
        estimator: that is made of sums over people.
        answer: to a question about everybody, for a share of the clock.
        **how: what was declared of the fit.
    """
    shards = questions.shards
    tables = [shard_table(one, questions.most_rows, shards.most, quiet=True) for one in shards.shards]
    return in_turns(shards, [partial(_fitted, estimator, table, how) for table in tables], answer)


def _fitted(estimator: Any, table: SessionTable, how: dict[str, Any], answer: Answer) -> Any:
    with kept_quiet(True):
        return estimator.fit_in_session(fitting(table, estimator, answer, quiet=True, block_key=None, **how))


@proves("partitions")
def in_turns(shards: Dealt, fits: Sequence[Callable[[Answer], Any]], answer: Answer) -> Any:
    """What the first of the fits comes to; each is given what answers its questions."""
    running, told = [_ShardFit(fit) for fit in fits], None
    try:
        while True:
            turns = [one.turn(told) for one in running]
            for turn in turns:
                if turn.failed is not None:
                    raise turn.failed
            if len({turn.text for turn in turns}) > 1:
                raise OutputError(APART)
            if turns[0].asks is None:
                return turns[0].fitted
            told = answer(*_as_one(shards, turns))
    finally:
        for one in running:
            one.stop()


def _as_one(shards: Dealt, turns: Sequence[_Turn]) -> tuple[SessionQuestion, float]:
    asked = [turn.asks for turn in turns if turn.asks is not None]
    question, share = asked[0]
    places = (shard.place for shard in shards.shards)
    step = _Step({place: own.sums(False) for place, (own, _) in zip(places, asked, strict=True)})
    if not all(one.public for one in step.sums.values()):
        raise InputError(UNDECLARED)
    sums = OverShards(shards, step, noise_given=False)
    return SessionQuestion(question.words, lambda _: sums, question.public, pool_made=question.pool_made), share
