"""The released answer as a table with a bar for every interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.report.markup import shortened, table
from leakcap.report.numbers import data, decimals_for, neat, outward, shown
from leakcap.report.records import Answer

__all__ = ["MOST", "answer_table", "left_out", "scale_of"]

Floats = npt.NDArray[np.float64]
MOST = 30  # rows that a page shows


def answer_table(answer: Answer) -> str:
    """A row for each output: the released number and, where known, its interval in figures and as a bar."""
    kept = len(answer.names[:MOST])
    if answer.low is None or answer.high is None or not kept:
        rows = ([shortened(answer.names[i]), data(answer.values[i], neat(answer.values[i], 6))] for i in range(kept))
        return table(("output", "released"), rows, "answers")
    scale = _Scale.of(answer.low[:kept], answer.high[:kept])
    heads = ("output", "released", f"{100 * answer.level:g} % interval", "as a bar")
    return table(heads, _rows(answer, kept, scale), "answers barred")


def scale_of(answer: Answer) -> str:
    """What the bars are drawn on, in words; empty where there are none."""
    if answer.low is None or answer.high is None or not len(answer.names):
        return ""
    return _Scale.of(answer.low[:MOST], answer.high[:MOST]).words()


def left_out(names: tuple[str, ...]) -> str:
    """How many outputs the page leaves to the file of the answer; empty where it shows them all."""
    if len(names) <= MOST:
        return ""
    return f"The first {MOST} of {len(names):,} outputs. The other {len(names) - MOST:,} are in the CSV file."


def _rows(answer: Answer, kept: int, scale: _Scale) -> Iterator[tuple[str, ...]]:
    assert answer.low is not None and answer.high is not None
    for i in range(kept):
        value, low, high = float(answer.values[i]), float(answer.low[i]), float(answer.high[i])
        exact = low == high
        decimals = decimals_for((high - low) / 2)
        released = neat(value, 6) if exact else shown(value, decimals)
        ends = "exact" if exact else " … ".join(outward(low, high, decimals))
        yield shortened(answer.names[i]), data(value, released), ends, scale.bar(value, low, high)


@dataclass(frozen=True)
class _Scale:
    """One scale for all rows where every bar shows on it; otherwise each row has its own, with zero in one place."""

    shared: tuple[float, float] | None
    signed: bool

    @classmethod
    def of(cls, low: Floats, high: Floats) -> _Scale:
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

    def bar(self, value: float, low: float, high: float) -> str:
        """The interval as a line, the released number as a dot."""
        if not np.isfinite([value, low, high]).all():
            return ""
        start, end = self.shared or self._own(low, high)
        span = end - start

        def at(x: float) -> str:
            return f"{100 * min(max((x - start) / span, 0.0), 1.0):.2f}%"

        zero = f'<line class="zero" x1="{at(0)}" x2="{at(0)}" y1="1" y2="17"/>' if start <= 0 <= end else ""
        line = f'<line class="reach" x1="{at(low)}" x2="{at(high)}" y1="9" y2="9"/>' if high > low else ""
        return f'<svg class="bar" aria-hidden="true">{zero}{line}<circle cx="{at(value)}" cy="9" r="4"/></svg>'

    def _own(self, low: float, high: float) -> tuple[float, float]:
        far = 1.04 * max(abs(low), abs(high))
        if not 0 < far < np.inf:
            return (-1.0, 1.0) if self.signed else (-0.04, 1.0)
        return (-far, far) if self.signed else (-0.04 * far, far)
