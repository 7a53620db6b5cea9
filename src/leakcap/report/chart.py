"""A small chart as inline SVG: two axes, and marks that the page's style sheet colours.

Written by hand rather than by a plotting library: the text stays text, dark and light follow the page, and equal
arguments give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from leakcap.report.markup import text
from leakcap.report.numbers import MINUS

__all__ = ["Axis", "Chart", "key", "linear", "log_chances"]

Floats = npt.NDArray[np.float64]
WIDTH, HEIGHT = 440.0, 330.0
ABOVE, BELOW, RIGHT = 30.0, 46.0, 14.0
CHARACTER = 6.9  # width of a tick label's character, on the wide side


@dataclass(frozen=True)
class Axis:
    """From values to places between 0 and 1, with labelled ticks."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, values: npt.ArrayLike) -> Floats:
        found = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            found, low, high = np.log10(np.maximum(found, 1e-300)), math.log10(low), math.log10(high)
        return np.clip((found - low) / (high - low), 0.0, 1.0)


def linear(label: str, low: float, high: float, count: int = 5) -> Axis:
    """Round ticks from `low` to `high`."""
    if not high > low:
        pad = abs(low) * 1e-3 or 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= raw * 0.999)
    values = [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    ticks = tuple((value, _tick(value, step)) for value in values)
    if count > 1 and CHARACTER * sum(len(words) + 2 for _, words in ticks) > WIDTH - 100:
        return linear(label, low, high, count - 1)
    return Axis(label, low, high, ticks)


def log_chances(label: str, low: float) -> Axis:
    """Chances from `low` to 1, a tick for each power of ten."""
    powers = range(round(math.log10(low)), 1)
    return Axis(label, low, 1.0, tuple((10.0**k, f"{100 * 10.0**k:g} %") for k in powers), log=True)


@dataclass
class Chart:
    """Marks on two axes; `svg` closes it."""

    x: Axis
    y: Axis
    marks: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        return 10 + CHARACTER * max((len(words) for _, words in self.y.ticks), default=1)

    def xs(self, values: npt.ArrayLike) -> Floats:
        return self.left + (WIDTH - RIGHT - self.left) * self.x.place(values)

    def ys(self, values: npt.ArrayLike) -> Floats:
        return HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * self.y.place(values)

    def line(self, kind: str, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
        self.marks.append(f'<path class="{kind}" d="{_path(self.xs(x), self.ys(y))}"/>')

    def area(self, kind: str, x: Floats, low: Floats, high: Floats) -> None:
        """Between two lines; with `high` running back along `low`, also any closed shape."""
        there = np.concatenate([self.xs(x), self.xs(x)[::-1]])
        back = np.concatenate([self.ys(high), self.ys(low)[::-1]])
        self.marks.append(f'<path class="{kind}" d="{_path(there, back)}z"/>')

    def shape(self, kind: str, x: Floats, y: Floats) -> None:
        self.marks.append(f'<path class="{kind}" d="{_path(self.xs(x), self.ys(y))}z"/>')

    def points(self, kind: str, x: npt.ArrayLike, y: npt.ArrayLike, radius: float) -> None:
        pairs = zip(np.atleast_1d(self.xs(x)), np.atleast_1d(self.ys(y)), strict=True)
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:g}"/>' for a, b in pairs)
        self.marks.append(f'<g class="{kind}">{dots}</g>')

    def diamond(self, kind: str, x: float, y: float, radius: float = 6.5) -> None:
        a, b = float(self.xs(x)), float(self.ys(y))
        self.marks.append(f'<path class="{kind}" d="{_diamond(a, b, radius)}"/>')

    def cross(self, kind: str, x: float, y: float, radius: float = 7) -> None:
        a, b = float(self.xs(x)), float(self.ys(y))
        if math.isfinite(a + b):
            self.marks.append(f'<path class="{kind}" d="{_cross(a, b, radius)}"/>')

    def note(
        self, kind: str, x: float, y: float, words: str, dx: float = 0, dy: float = 0, anchor: str = "start"
    ) -> None:
        a, b = float(self.xs(x)) + dx, float(self.ys(y)) + dy
        self.marks.append(f'<text class="{kind}" x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">{text(words)}</text>')

    def svg(self, label: str) -> str:
        """The whole picture; `label` says in words what it shows."""
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{text(label)}">'
            f"{''.join(self._axes())}{''.join(self.marks)}</svg>"
        )

    def _axes(self) -> Iterable[str]:
        floor, end = HEIGHT - BELOW, WIDTH - RIGHT
        for value, words in self.x.ticks:
            at = float(self.xs(value))
            yield f'<path class="grid" d="M{at:.1f} {ABOVE:g}V{floor:g}"/>'
            yield f'<text class="tick" x="{at:.1f}" y="{floor + 17:g}" text-anchor="middle">{text(words)}</text>'
        for value, words in self.y.ticks:
            at = float(self.ys(value))
            yield f'<path class="grid" d="M{self.left:.1f} {at:.1f}H{end:g}"/>'
            yield f'<text class="tick" x="{self.left - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">{text(words)}</text>'
        yield f'<path class="rule" d="M{self.left:.1f} {ABOVE:g}V{floor:g}H{end:g}"/>'
        yield f'<text class="axis" x="4" y="14">{text(self.y.label)}</text>'
        yield f'<text class="axis" x="{end:g}" y="{HEIGHT - 8:g}" text-anchor="end">{text(self.x.label)}</text>'


def key(items: Iterable[tuple[str, str, str]]) -> str:
    """What marks mean: (form, class, words), with the very marks of the chart."""
    forms = {
        "line": '<path class="{}" d="M1 8H21"/>',
        "dot": '<g class="{}"><circle cx="11" cy="8" r="3.6"/></g>',
        "box": '<path class="{}" d="M3 2H19V14H3z"/>',
        "diamond": f'<path class="{{}}" d="{_diamond(11, 8, 6)}"/>',
        "cross": f'<path class="{{}}" d="{_cross(11, 8, 6)}"/>',
    }
    entries = (
        f'<li><svg class="mark" viewBox="0 0 22 16">{forms[form].format(kind)}</svg>{text(words)}</li>'
        for form, kind, words in items
    )
    return f'<ul class="key">{"".join(entries)}</ul>'


def _path(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _diamond(x: float, y: float, r: float) -> str:
    return f"M{x:.1f} {y - r:.1f}L{x + r:.1f} {y:.1f}L{x:.1f} {y + r:.1f}L{x - r:.1f} {y:.1f}z"


def _cross(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}H{x + r:.1f}M{x:.1f} {y - r:.1f}V{y + r:.1f}"


def _tick(value: float, step: float) -> str:
    if step >= 1e7 or step < 1e-5:
        return f"{value:.3g}".replace("-", MINUS)
    decimals = max(
        0, math.ceil(-math.log10(step) - 1e-9) + (round(step / 10.0 ** math.floor(math.log10(step)), 6) == 2.5)
    )
    return f"{value + 0.0:,.{decimals}f}".replace("-", MINUS)
