"""Pictures as inline SVG: a chart of two axes, and a hundred guesses as dots. The page's style sheet colours them.

Written by hand rather than by a plotting library: the text stays text, dark and light follow the page, and equal
arguments give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.report.html import Markup, joined, markup
from leakcap.report.numbers import MINUS

__all__ = ["Axis", "Chart", "captioned", "dots", "dots_key", "key", "linear", "log_chances"]

WIDTH, HEIGHT = 440.0, 330.0
ABOVE, BELOW, RIGHT = 30.0, 46.0, 14.0
CHARACTER = 6.9  # width of a tick label's character, on the wide side
DOTS_ACROSS = 10


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
    marks: list[Markup] = field(default_factory=list)

    @property
    def left(self) -> float:
        return 10 + CHARACTER * max((len(words) for _, words in self.y.ticks), default=1)

    def xs(self, values: npt.ArrayLike) -> Floats:
        return self.left + (WIDTH - RIGHT - self.left) * self.x.place(values)

    def ys(self, values: npt.ArrayLike) -> Floats:
        return HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * self.y.place(values)

    def line(self, kind: str, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
        self.marks.append(markup('<path class="{}" d="{}"/>', kind, _path(self.xs(x), self.ys(y))))

    def area(self, kind: str, x: Floats, low: Floats, high: Floats) -> None:
        """Between two lines; with `high` running back along `low`, also any closed shape."""
        there = np.concatenate([self.xs(x), self.xs(x)[::-1]])
        back = np.concatenate([self.ys(high), self.ys(low)[::-1]])
        self.marks.append(markup('<path class="{}" d="{}z"/>', kind, _path(there, back)))

    def shape(self, kind: str, x: Floats, y: Floats) -> None:
        self.marks.append(markup('<path class="{}" d="{}z"/>', kind, _path(self.xs(x), self.ys(y))))

    def points(self, kind: str, x: npt.ArrayLike, y: npt.ArrayLike, radius: float) -> None:
        pairs = zip(np.atleast_1d(self.xs(x)), np.atleast_1d(self.ys(y)), strict=True)
        circles = joined(markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:g}"/>', a, b, radius) for a, b in pairs)
        self.marks.append(markup('<g class="{}">{}</g>', kind, circles))

    def diamond(self, kind: str, x: float, y: float, radius: float = 6.5) -> None:
        a, b = float(self.xs(x)), float(self.ys(y))
        self.marks.append(markup('<path class="{}" d="{}"/>', kind, _diamond(a, b, radius)))

    def cross(self, kind: str, x: float, y: float, radius: float = 7) -> None:
        a, b = float(self.xs(x)), float(self.ys(y))
        if math.isfinite(a + b):
            self.marks.append(markup('<path class="{}" d="{}"/>', kind, _cross(a, b, radius)))

    def note(
        self, kind: str, x: float, y: float, words: str, *, dx: float = 0, dy: float = 0, anchor: str = "start"
    ) -> None:
        a, b = float(self.xs(x)) + dx, float(self.ys(y)) + dy
        place = markup('x="{:.1f}" y="{:.1f}" text-anchor="{}"', a, b, anchor)
        self.marks.append(markup('<text class="{}" {}>{}</text>', kind, place, words))

    def svg(self, label: str) -> Markup:
        """The whole picture; `label` says in words what it shows."""
        return markup(
            '<svg class="chart" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}{}</svg>',
            *(WIDTH, HEIGHT, label, joined(self._axes()), joined(self.marks)),
        )

    def _axes(self) -> Iterable[Markup]:
        left, floor, end = self.left, HEIGHT - BELOW, WIDTH - RIGHT
        below = '<text class="tick" x="{:.1f}" y="{:g}" text-anchor="middle">{}</text>'
        beside = '<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>'
        for value, words in self.x.ticks:
            at = float(self.xs(value))
            yield markup('<path class="grid" d="M{:.1f} {:g}V{:g}"/>', at, ABOVE, floor)
            yield markup(below, at, floor + 17, words)
        for value, words in self.y.ticks:
            at = float(self.ys(value))
            yield markup('<path class="grid" d="M{:.1f} {:.1f}H{:g}"/>', left, at, end)
            yield markup(beside, left - 6, at + 4, words)
        yield markup('<path class="rule" d="M{:.1f} {:g}V{:g}H{:g}"/>', left, ABOVE, floor, end)
        yield markup('<text class="axis" x="4" y="14">{}</text>', self.y.label)
        yield markup('<text class="axis" x="{:g}" y="{:g}" text-anchor="end">{}</text>', end, HEIGHT - 8, self.x.label)


def captioned(title: str, words: str, *parts: Markup) -> Markup:
    """A picture under its title, with a line that says how to read it."""
    return markup("<figure><h3>{}</h3><p>{}</p>{}</figure>", title, words, joined(parts))


def key(items: Iterable[tuple[str, str, str]]) -> Markup:
    """What marks mean: (form, class, words), with the very marks of the chart."""
    return _key(
        (markup('<svg class="mark" viewBox="0 0 22 16">{}</svg>', _sample(form, kind)), words)
        for form, kind, words in items
    )


def _sample(form: str, kind: str) -> Markup:
    if form == "dot":
        return markup('<g class="{}"><circle cx="11" cy="8" r="3.6"/></g>', kind)
    shapes = {"line": "M1 8H21", "box": "M3 2H19V14H3z", "diamond": _diamond(11, 8, 6), "cross": _cross(11, 8, 6)}
    return markup('<path class="{}" d="{}"/>', kind, shapes[form])


def _key(entries: Iterable[tuple[Markup, str]]) -> Markup:
    return markup('<ul class="key">{}</ul>', joined(markup("<li>{}{}</li>", mark, words) for mark, words in entries))


def dots(luck: int, gained: int, label: str) -> Markup:
    """A hundred guesses in ten rows: dots right by luck, then diamonds that the release adds, then empty rings."""
    kinds = ["luck"] * luck + ["gain"] * gained + ["miss"] * (100 - luck - gained)
    marks = joined(_dot(place, kind) for place, kind in enumerate(kinds))
    return markup('<svg class="dots" viewBox="0 0 100 100" role="img" aria-label="{}">{}</svg>', label, marks)


def dots_key(gained: bool, at_most: str) -> Markup:
    """What the dots mean."""
    kinds = [("luck", "right by luck")]
    if gained:
        kinds.append(("gain", f"right thanks to the release, {at_most}"))
    kinds.append(("miss", "wrong"))
    return _key(
        (markup('<svg class="mark" viewBox="0 0 10 10">{}</svg>', _dot(0, kind)), words) for kind, words in kinds
    )


def _dot(place: int, kind: str) -> Markup:
    x, y = 5 + 10 * (place % DOTS_ACROSS), 5 + 10 * (place // DOTS_ACROSS)
    if kind == "gain":
        r = 4.6
        outline = f"M{x} {y - r:g}L{x + r:g} {y}L{x} {y + r:g}L{x - r:g} {y}z"
        return markup('<path class="gain" d="{}"/>', outline)
    return markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>', kind, x, y, 3.6 if kind == "luck" else 3.2)


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
