"""What leaves a session: answers with their error bars, prices and standings. Public side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from leakcap.ground.arrays import Floats
from leakcap.kernels.contributions import Finish, Informed
from leakcap.planning.accuracy import LEVELS, interval_at
from leakcap.planning.finishing import Widths, widths_of
from leakcap.sessions.brought import Sums
from leakcap.simulate import describe

__all__ = [
    "Bars",
    "Noised",
    "PastAnswer",
    "Preview",
    "SessionAnswer",
    "Spending",
    "error_bars",
    "finish_of",
    "numbers_of",
    "value_of",
]

SIMULATED = 256  # noised sums that tell how far off an answer may be, where it is no sum itself


@dataclass(frozen=True, eq=False)
class SessionAnswer:
    """An answer. Public side: safe to publish.

    Attributes:
        value: the answer, in its own form: a number, an array or a table.
        question: what was asked, in words that are the same for the same question.
        number: its place in the session's history.
        share: what it takes of the clock of whoever pays the most. With a list of worlds clocks also lean with the
            answer, by a tenth at most; with `always=True` none runs down.
        noise: deviation of the noise in each number of the answer.
        covers_halving: whether intervals also cover that half of the people take part, not only the noise.
        again: whether it is a stored answer, for which nothing was spent.
        whole: whether all of it was answered. Of a vector from a list of worlds the last numbers may be refused: they
            are then what everybody can work out from earlier answers.
    """

    value: Any
    question: str
    number: int
    share: float
    noise: Floats
    covers_halving: bool
    again: bool
    _numbers: Floats
    _widths: Widths
    whole: bool = True

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where the answer on everybody lies, per number (flattened), with about this probability.

        It follows from what was released and declared. Where `covers_halving` is false it covers the noise alone.
        People who cannot pay any more are left out of the answer, which no interval knows of.

        Args:
            level: probability that the interval holds, above 0 and below 1.

        Returns:
            Lower and upper ends, each `(numbers,)`.

        Raises:
            InputError: the level is higher than those kept.
        """
        return interval_at(self._numbers, self._widths, level)

    def __float__(self) -> float:
        if self._numbers.size != 1:
            raise TypeError("the answer has several numbers: take value")
        return float(self._numbers[0])

    def __repr__(self) -> str:
        return f"Answer(value={self.value!r}, noise={np.array2string(self.noise, precision=3, threshold=8)})"


@dataclass(frozen=True)
class PastAnswer:
    """One line of a session's history. Public side.

    Attributes:
        number: its place.
        question: what was asked.
        analyst: who asked; empty for the custodian.
        share: what it takes of the clock of whoever pays the most.
        numbers: the answer, flattened.
        at: when, in UTC.
    """

    number: int
    question: str
    analyst: str
    share: float
    numbers: tuple[float, ...]
    at: str


@dataclass(frozen=True)
class Spending:
    """How much of a session is spent, or left.

    Attributes:
        success: the best attacker's success at guessing about one person, so far or in the end. With a list of worlds
            that is the cap, as soon as there is an answer.
        share: of the clock of whoever has the least left. For analysts: by what was declared, not by what people bring.
            With `always=True` no clock runs down: how far towards the cap the surest guess has come; for analysts
            not a number.
    """

    success: float
    share: float


@dataclass(frozen=True, eq=False)
class Preview:
    """What a question would cost and how far off its answer would be; nothing is spent and nothing leaves.

    Attributes:
        share: what it takes of the clock of whoever pays the most; 0 with `always=True`, where none runs down.
        noise: deviation of the noise in each of the sums that the answer is made of.
        fits: whether everybody can pay, by what was declared so far.
        retired: how many people would be left out; None for analysts.
        more: how many such answers a list of worlds can carry, about; None with a coin for everybody.
    """

    share: float
    noise: Floats
    fits: bool
    retired: int | None = None
    more: float | None = None


@dataclass(frozen=True, eq=False)
class Noised:
    """What noised sums make, and the deviation of the noise in each of them. Public side."""

    value: Any
    deviations: Floats


@dataclass(frozen=True, eq=False)
class Bars:
    """Numbers of an answer, the deviation of the noise in each, and half-widths of their intervals."""

    numbers: Floats
    noise: Floats
    widths: Widths


def finish_of(sums: Sums, deviations: Floats) -> Callable[[Floats], Any]:
    """What makes the answer, which may want to know how large the noise is: that is no secret."""
    finish = sums.finish
    return finish.knowing(deviations) if isinstance(finish, Informed) else finish


def value_of(finish: Callable[[Floats], Any], total: Floats) -> Any:
    """The answer that sums make; a number rather than an array without dimensions."""
    found = finish(total)
    return float(found) if isinstance(found, np.ndarray) and not found.shape else found


def numbers_of(finish: Callable[[Floats], Any], total: Floats) -> Floats:
    """Its numbers, flattened."""
    if isinstance(finish, Finish):  # a table need not be made to see its numbers
        return np.asarray(finish.numbers(total), dtype=np.float64).ravel()
    return describe(finish(total), 0)[1]


def error_bars(sums: Sums, released: Floats, numbers: Floats, *, deviations: Floats, halving: Floats | None) -> Bars:
    """Of an answer, from released sums and declarations."""
    spread = deviations if halving is None else np.sqrt(deviations**2 + halving)
    if sums.scale is not None:
        widths = [(level, float(ndtri((1 + level) / 2)) * spread / sums.scale) for level in LEVELS]
        return Bars(numbers, deviations / sums.scale, tuple(widths))
    finish = finish_of(sums, deviations)
    drawn = np.random.default_rng(0).standard_normal((SIMULATED, len(released)))

    def off(size: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.stack([numbers_of(finish, released + size * one) for one in drawn]) - numbers

    of_noise = off(deviations)
    of_both = of_noise if halving is None else off(spread)
    return Bars(numbers, np.sqrt((of_noise**2).mean(axis=0)), widths_of(of_both))
