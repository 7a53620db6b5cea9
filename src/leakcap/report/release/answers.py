"""The released answer as a table with a bar for every interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.certificates.release import Certificate
from leakcap.ground.arrays import Floats
from leakcap.report.html import Markup, markup, shortened
from leakcap.report.numbers import data, decimals_for, neat, outward, shown
from leakcap.report.release import inputs_words
from leakcap.report.release.records import Answer
from leakcap.report.release.words import part

__all__ = ["FIRST_ROWS", "MOST_ROWS", "RowScale", "aim", "answer_facts", "left_out"]

MOST_ROWS = 30  # rows that a page shows
FIRST_ROWS = 6  # of them before anything is opened
SIDE_BY_SIDE = 16  # letters of both ends of a scale that fit under a bar in one line
NEAR = 3  # widths of an interval within which zero is drawn too
EXACT = (
    "“Exact”: whichever people are picked the result is the same, so it tells nothing about who was. A count of 0: "
    "nobody in the data is there."
)


def answer_facts(answer: Answer, cert: Certificate) -> dict[str, Any]:
    """A row for each output: the released number and, where known, its interval in figures and as a bar."""
    shown_at_once = len(answer.names) <= FIRST_ROWS
    told = "All numbers released." if shown_at_once else f"{len(answer.names):,} numbers were released."
    words, everybody = f"{told} {_on_whom(answer, cert)}", cert.mode == "pool"
    kept = len(answer.names[:MOST_ROWS])
    further, remarks = left_out(answer.names), [f"{note}." for note in answer.notes]
    if answer.low is None or answer.high is None or not kept:
        return {**_halved(_plain(answer, kept)), "words": words, "notes": [], "left_out": further, "remarks": remarks}
    words += f" Each interval, by itself, holds {aim(cert)} with at least {100 * answer.level:g} % probability."
    all_used = everybody or cert.of_inputs
    errors = f"the noise{'' if all_used else ' and for the part of the pool that was not used'}"
    scale = RowScale.of(answer.low[:kept], answer.high[:kept])
    exact = not all_used and bool((answer.low == answer.high).any())
    return {
        **_halved(list(_rows(answer, kept, scale))),
        "words": words,
        "heads": ("output", "released", f"{100 * answer.level:g} % interval", "as a bar"),
        "kind": "answers barred",
        "notes": [scale.ends(), *([EXACT] if exact else [])],
        "left_out": further,
        "remarks": remarks,
        "reading": f"{scale.words()} Intervals allow for {errors}; their ends are rounded outwards.",
    }


def _on_whom(answer: Answer, cert: Certificate) -> str:
    """Whom the numbers count: what was computed on a half is easily read as a count of all."""
    if cert.mode == "pool":
        return "They are about everybody in the data."
    if cert.of_inputs:
        return inputs_words.ANSWER
    if answer.scaled or (cert.whoever_is_known and not cert.on_average_over_the_known):
        return f"They stand for all {cert.units:,}, of whom a secret {part(cert)} was used."
    return f"They come from a secret {part(cert)}: counts and sums are of that {part(cert)}, unless scaled up."


def aim(cert: Certificate) -> str:
    """What an interval holds."""
    if cert.of_inputs:
        return "the answer on the input that was used"
    if cert.mode == "pool" and cert.in_blocks:
        return "the average over blocks, which may differ from the program's answer on all data together,"
    return "the true answer on all data"


def _plain(answer: Answer, kept: int) -> list[tuple[str, ...]]:
    numbers = [data(answer.values[i], neat(answer.values[i], 6)) for i in range(kept)]
    return list(zip(map(shortened, answer.names), numbers, strict=False))


def _halved(rows: list[tuple[str, ...]]) -> dict[str, Any]:
    """What is seen at once, and what is opened; of a table without intervals."""
    heads, kind = ("output", "released"), "answers"
    return {"heads": heads, "kind": kind, "rows": rows[:FIRST_ROWS], "more_rows": rows[FIRST_ROWS:], "reading": ""}


def left_out(names: tuple[str, ...]) -> str:
    """How many outputs the page leaves to the file of the answer; empty where it shows them all."""
    if len(names) <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {len(names):,} outputs. The other {len(names) - MOST_ROWS:,} are in the CSV file."


def _rows(answer: Answer, kept: int, scale: RowScale) -> Iterator[tuple[str, ...]]:
    assert answer.low is not None and answer.high is not None
    for i in range(kept):
        value, low, high = float(answer.values[i]), float(answer.low[i]), float(answer.high[i])
        exact = low == high
        decimals = decimals_for((high - low) / 2)
        released = neat(value, 6) if exact else shown(value, decimals)
        ends = "exact" if exact else " … ".join(outward(low, high, decimals))
        yield shortened(answer.names[i]), data(value, released), ends, scale.bar(value, low, high)


@dataclass(frozen=True)
class RowScale:
    """One scale for all rows where every bar shows on it; otherwise each row has its own, written at its ends."""

    shared: tuple[float, float] | None

    @classmethod
    def of(cls, low: Floats, high: Floats) -> RowScale:
        start, end = float(np.min(low)), float(np.max(high))
        widths = high - low
        seen = widths[widths > 0]
        alike = len(low) > 1 and len(seen) > 0 and np.isfinite(end - start) and seen.min() >= 0.06 * (end - start)
        return cls(_round_ends(start, end) if alike else None)

    def ends(self) -> str:
        if self.shared is None:
            return "Bars: each from and to the numbers under it."
        return f"Bars run from {neat(self.shared[0])} to {neat(self.shared[1])}."

    def words(self) -> str:
        return "Bars start and end at round numbers near the interval, and at zero where that is near: a thin line."

    def bar(self, value: float, low: float, high: float) -> Markup:
        """The interval as a line, the released number as a dot; the ends of a scale of its own below."""
        if low == high or not np.isfinite([value, low, high]).all():
            return Markup()
        start, end = self.shared or _round_ends(low, high)
        span = end - start
        if not 0 < span < math.inf:
            return Markup()

        def at(x: float) -> str:
            return f"{100 * min(max((x - start) / span, 0.0), 1.0):.2f}%"

        zero, ends, below = Markup(), Markup(), 0
        if start < 0 < end:
            zero = markup('<line class="zero" x1="{0}" x2="{0}" y1="1" y2="17"/>', at(0))
        if self.shared is None:
            first, last = neat(start), neat(end)
            below = 44 if len(first) + len(last) > SIDE_BY_SIDE else 30
            pattern = '<text x="0" y="30">{}</text><text x="100%" y="{}" text-anchor="end">{}</text>'
            ends = markup(pattern, first, below, last)
        base = markup('<line class="base" x1="0" x2="100%" y1="9" y2="9"/>')
        line = markup('<line class="reach" x1="{}" x2="{}" y1="9" y2="9"/>', at(low), at(high))
        dot = markup('<circle cx="{}" cy="9" r="4"/>', at(value))
        kind = {0: "bar", 30: "bar own", 44: "bar own tall"}[below]
        return markup('<svg class="{}" aria-hidden="true">{}{}{}{}{}</svg>', kind, base, zero, line, dot, ends)


def _round_ends(low: float, high: float) -> tuple[float, float]:
    """Round numbers just outside an interval; zero where it is near, so that nobody takes a part for the whole."""
    width = high - low
    if not 0 < width < math.inf:
        return low, high
    start, end = low - width / 4, high + width / 4
    low = 0.0 if 0 <= low < NEAR * width else start
    high = 0.0 if 0 >= high > -NEAR * width else end
    size = 10.0 ** math.floor(math.log10(width))
    step = max(
        round_one * size for round_one in (0.1, 0.2, 0.5, 1.0) if round_one * size <= max(0.2 * width, 0.1 * size)
    )
    return step * math.floor(low / step), step * math.ceil(high / step)
