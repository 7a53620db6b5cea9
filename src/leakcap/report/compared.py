"""Before and after: the attacker's success as two figures, and as a hundred dots each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakcap.report.chart import dots, dots_key
from leakcap.report.html import Markup
from leakcap.report.numbers import bound, of_hundred

__all__ = ["Compared", "guesses_after_all"]


@dataclass(frozen=True)
class Compared:
    """How often the best guess at one question is right without the release, and with it."""

    question: str
    asked: str  # what is counted
    before_word: str
    before: str
    prior: float
    success: float
    at_most: str
    knowing: str  # what makes guesses right without the release
    anyway: str  # the same, of guesses with the release

    @property
    def luck(self) -> int:
        """Of a hundred guesses, those that are right anyway; rounded down."""
        return math.floor(100 * self.prior + 1e-9)

    @property
    def right(self) -> int:
        return of_hundred(self.success)

    @property
    def after(self) -> str:
        return bound(self.success)

    @property
    def dots_before(self) -> Markup:
        return dots(self.luck, 0, f"Before: {self.luck} of 100 guesses are right, {self.knowing}.")

    @property
    def dots_after(self) -> Markup:
        words = f"After: {self.at_most} {self.right} of 100 guesses are right, {self.luck} of them {self.anyway}."
        return dots(self.luck, self.right - self.luck, words)

    @property
    def key(self) -> Markup:
        return dots_key(self.right > self.luck, self.at_most)


def guesses_after_all(in_pool: bool, success: float) -> Compared:
    """Guesses at one person after all answers of a session: whether they are in the pool at all, or take part."""
    return Compared(
        question="“Is this person in the data?”" if in_pool else "“Does this person take part?”",
        asked="How many of 100 guesses are right, after all answers",
        before_word="a coin flip",
        before="50 %",
        prior=0.5,
        success=success,
        at_most="at most",
        knowing="knowing nothing",
        anyway="before",
    )
