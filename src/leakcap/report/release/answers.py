"""The released answer as a table with a bar for every interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.report.html import Markup, markup, shortened
from leakcap.report.numbers import data, decimals_for, neat, outward, shown
from leakcap.report.release.records import Answer

__all__ = ["MOST_ROWS", "aim", "answer_facts", "left_out"]

MOST_ROWS = 30  # rows that a page shows


def answer_facts(answer: Answer, everybody: bool = False, blocks: bool = False) -> dict[str, Any]:
    """A row for each output: the released number and, where known, its interval in figures and as a bar.

    `everybody`: whether all of the pool was used, so that intervals allow for noise alone; `blocks`: whether it was in
    blocks, whose average an interval is then about.
    """
    kept = len(answer.names[:MOST_ROWS])
    words = "What was released, and all that was."
    if answer.low is None or answer.high is None:
        return {**_plain(answer, kept), "words": words, "note": left_out(answer.names)}
    words += (
        f" Each interval holds {aim(everybody and blocks)} with {100 * answer.level:g} % probability or more: it "
        f"allows for the noise{'' if everybody else ' and for the part of the pool that was not used'}. Its ends are "
        "rounded outwards."
    )
    if not kept:
        return {**_plain(answer, kept), "words": words, "note": ""}
    scale = _RowScale.of(answer.low[:kept], answer.high[:kept])
    return {
        "words": words,
        "heads": ("output", "released", f"{100 * answer.level:g} % interval", "as a bar"),
        "rows": list(_rows(answer, kept, scale)),
        "kind": "answers barred",
        "note": f"{scale.words()} {left_out(answer.names)}".strip(),
    }


def aim(in_blocks_of_all: bool) -> str:
    """What an interval holds."""
    if in_blocks_of_all:
        return "the average over blocks, which may differ from the program's answer on all data together,"
    return "the answer on the whole pool"


def _plain(answer: Answer, kept: int) -> dict[str, Any]:
    numbers = [data(answer.values[i], neat(answer.values[i], 6)) for i in range(kept)]
    rows = list(zip(map(shortened, answer.names), numbers, strict=False))
    return {"heads": ("output", "released"), "rows": rows, "kind": "answers"}


def left_out(names: tuple[str, ...]) -> str:
    """How many outputs the page leaves to the file of the answer; empty where it shows them all."""
    if len(names) <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {len(names):,} outputs. The other {len(names) - MOST_ROWS:,} are in the CSV file."


def _rows(answer: Answer, kept: int, scale: _RowScale) -> Iterator[tuple[str, ...]]:
    assert answer.low is not None and answer.high is not None
    for i in range(kept):
        value, low, high = float(answer.values[i]), float(answer.low[i]), float(answer.high[i])
        exact = low == high
        decimals = decimals_for((high - low) / 2)
        released = neat(value, 6) if exact else shown(value, decimals)
        ends = "exact" if exact else " … ".join(outward(low, high, decimals))
        yield shortened(answer.names[i]), data(value, released), ends, scale.bar(value, low, high)


@dataclass(frozen=True)
class _RowScale:
    """One scale for all rows where every bar shows on it; otherwise each row has its own, with zero in one place."""

    shared: tuple[float, float] | None
    signed: bool

    @classmethod
    def of(cls, low: Floats, high: Floats) -> _RowScale:
        start, end = float(np.min(low)), float(np.max(high))
        widths = high - low
        seen = widths[widths > 0]
        alike = len(low) > 1 and len(seen) > 0 and np.isfinite(end - start) and seen.min() >= 0.02 * (end - start)
        margin = 0.03 * (end - start)
        return cls((start - margin, end + margin) if alike else None, start < 0)

    def words(self) -> str:
        if self.shared is None:
            return "Bars: each on its own scale. The thin line is zero: a short bar far from it is a precise answer."
        zero = " The thin line is zero." if self.shared[0] <= 0 <= self.shared[1] else ""
        return f"Bars: all on one scale, from {neat(self.shared[0], 3)} to {neat(self.shared[1], 3)}.{zero}"

    def bar(self, value: float, low: float, high: float) -> Markup:
        """The interval as a line, the released number as a dot."""
        if not np.isfinite([value, low, high]).all():
            return Markup()
        start, end = self.shared or self._own(low, high)
        span = end - start

        def at(x: float) -> str:
            return f"{100 * min(max((x - start) / span, 0.0), 1.0):.2f}%"

        zero, line = Markup(), Markup()
        if start <= 0 <= end:
            zero = markup('<line class="zero" x1="{0}" x2="{0}" y1="1" y2="17"/>', at(0))
        if high > low:
            line = markup('<line class="reach" x1="{}" x2="{}" y1="9" y2="9"/>', at(low), at(high))
        dot = markup('<circle cx="{}" cy="9" r="4"/>', at(value))
        return markup('<svg class="bar" aria-hidden="true">{}{}{}</svg>', zero, line, dot)

    def _own(self, low: float, high: float) -> tuple[float, float]:
        far = 1.04 * max(abs(low), abs(high))
        if not 0 < far < np.inf:
            return (-1.0, 1.0) if self.signed else (-0.04, 1.0)
        return (-far, far) if self.signed else (-0.04 * far, far)
