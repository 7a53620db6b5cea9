"""What a question costs, and what is left, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakcap.report.html import Markup
from leakcap.report.numbers import bound, neat, unbroken
from leakcap.sessions.answers import Preview

__all__ = ["ANSWERED", "Gauge", "Price", "price_words"]


@dataclass(frozen=True)
class Gauge:
    """What is left of a clock."""

    left: float  # of the clock with which the data set was opened
    whole: float
    success: float  # of the best guess at one person, in the end
    bar: Markup

    @property
    def words(self) -> str:
        if self.left < 1e-9:
            return "Nothing is left: answers that are stored can still be read."
        return f"{percent(self.left / (self.whole or 1.0))} of the clock is left."

    @property
    def promise(self) -> str:
        return f"However many answers: nobody guesses about one person with more than {bound(self.success)} success."


@dataclass(frozen=True)
class Price:
    """The price of a question."""

    free: bool
    fits: bool
    words: str
    noise: str


ANSWERED = Price(True, True, "It was answered before: the stored answer costs nothing.", "")


def price_words(found: Preview | None, gauge: Gauge) -> Price:
    """What a preview says."""
    if found is None:
        return Price(True, True, "It is about public tables alone: it costs nothing.", "")
    after = max(0.0, gauge.left - found.share)
    more = math.floor(after / found.share + 1e-9) if found.share > 0 else 0
    words = f"It takes {percent(found.share)} of the clock at most. Then {percent(after)} is left"
    words += f", enough for {more:,} more such question{'' if more == 1 else 's'}." if more else "."
    if not found.fits:
        words = (
            f"It would take {percent(found.share)} of the clock, and {percent(gauge.left)} is left: whoever cannot pay "
            "would be left out of the answer. Take a smaller share."
        )
    noise = sorted({neat(float(one), 2) for one in found.noise}, key=len)
    told = f"Noise of deviation {noise[0]} is added to each sum" if len(noise) == 1 else "Noise is added to each sum"
    return Price(False, bool(found.fits), words, f"{told}.")


def percent(share: float) -> str:
    """A share of a clock."""
    return unbroken(f"{neat(100 * share, 3)} %")
