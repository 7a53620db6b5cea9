"""The trade-off between privacy and use as a picture: inline SVG, a page, or a part of a notebook.

What is shown comes from the data without noise: it is the custodian's, and every picture says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.estimators.tradeoff import Curve
from leakcap.ground.arrays import Floats
from leakcap.report.chart import HEIGHT, WIDTH, Axis, Chart, captioned, key, linear
from leakcap.report.html import Markup, render
from leakcap.report.numbers import bound, data, neat
from leakcap.version import __version__

__all__ = ["XLABEL", "Tradeoff", "tradeoff_fragment", "tradeoff_page", "tradeoff_svg"]

LEAST_ROOM = 1e-4  # success above one half that the axis can show
XLABEL = "best guess whether a person took part, at most"


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Scores over certified success, in rising order of it."""

    score: str
    caps: tuple[str, ...]
    success: Floats
    mean: Floats
    spread: Floats
    without_noise: float
    unprotected: float | None
    nothing: float | None
    origin: str

    @classmethod
    def of(cls, curve: Curve) -> Tradeoff:
        points = sorted(curve.points, key=lambda point: point.success)
        return cls(
            score=f"{curve.scoring} of {curve.estimator}",
            caps=tuple(point.name for point in points),
            success=np.array([point.success for point in points]),
            mean=np.array([point.score for point in points]),
            spread=np.array([point.spread for point in points]),
            without_noise=curve.without_noise,
            unprotected=curve.unprotected,
            nothing=curve.nothing,
            origin=f"{curve.units:,} units, {curve.worlds:,} worlds, {curve.releases} simulated releases",
        )

    @property
    def levels(self) -> list[tuple[str, str, float]]:
        """Horizontal lines: class, words, height."""
        found = [("before", "without noise: fitted to a part of the pool", self.without_noise)]
        if self.unprotected is not None:
            found.append(("pool-line", "unprotected: fitted to the whole pool", self.unprotected))
        if self.nothing is not None:
            found.append(("leader", "of an estimator that knows nothing", self.nothing))
        return found

    @property
    def room(self) -> Floats:
        """Success above a coin flip: what is drawn along a logarithmic axis."""
        return np.maximum(self.success - 0.5, LEAST_ROOM)

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest score that is shown."""
        heights = [self.mean - self.spread, self.mean + self.spread, [level for _, _, level in self.levels]]
        seen = np.concatenate([np.asarray(one, dtype=np.float64) for one in heights])
        margin = 0.06 * float(np.ptp(seen)) or 0.5 * abs(float(seen[0])) or 1.0
        return float(seen.min() - margin), float(seen.max() + margin)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round marks of success within what is shown; every cap where they are few."""
        low, high = self.room.min() / 1.25, self.room.max() * 1.25
        marks = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
        found = [mark for mark in marks if low <= mark <= high] or [float(self.room[0])]
        return [(mark, f"{100 * (0.5 + mark):.4g} %") for mark in found]


def tradeoff_chart(made: Tradeoff) -> Chart:
    low, high = made.room.min() / 1.25, min(made.room.max() * 1.25, 0.625)
    x = Axis(XLABEL, float(low), float(high), tuple(made.ticks), log=True)
    chart = Chart(x, linear(made.score if len(made.score) <= 60 else made.score[:59] + "…", *made.reach))
    for kind, _, height in made.levels:
        chart.line(kind, [low, high], [height, height])
    chart.area("between", made.room, made.mean - made.spread, made.mean + made.spread)
    chart.line("bound", made.room, made.mean)
    chart.points("bound-point", made.room, made.mean, 4.2)
    return chart


def _key(made: Tradeoff) -> Markup:
    lines = [("line", kind, words) for kind, words, _ in made.levels]
    return key(
        (("dot", "bound-point", "expected of a release"), ("box", "between", "one standard deviation round it"), *lines)
    )


def _label(made: Tradeoff) -> str:
    return f"Expected {made.score} over the certified success of the best attacker."


def tradeoff_svg(made: Tradeoff) -> str:
    """A picture that stands alone."""
    entries = [("bound", "expected of a release, with one standard deviation round it")]
    entries += [(kind, words) for kind, words, _ in made.levels]
    places = [HEIGHT + 16 + 18 * place for place in range(len(entries) + 1)]
    return render(
        "tradeoff.svg",
        chart=tradeoff_chart(made).svg(_label(made)),
        key=[(f"{y:g}", f"{y - 4:g}", *entry) for y, entry in zip(places, entries, strict=False)],
        kept=(f"{places[-1]:g}", made.origin),
        wide=WIDTH,
        high=HEIGHT,
        tall=HEIGHT + 18 * (len(made.levels) + 3),
    )


def tradeoff_page(made: Tradeoff) -> str:
    """The custodian's document: picture and figures."""
    return render("tradeoff_page.html", version=__version__, **_facts(made))


def tradeoff_fragment(made: Tradeoff) -> str:
    """The same as a part of a notebook."""
    return render("tradeoff_fragment.html", **_facts(made))


def _facts(made: Tradeoff) -> dict[str, Any]:
    points = zip(made.caps, made.success.tolist(), made.mean.tolist(), made.spread.tolist(), strict=True)
    rows = [
        (cap, bound(success), data(mean, neat(mean)), data(spread, neat(spread, 2)))
        for cap, success, mean, spread in points
    ]
    levels = [(words, "", data(height, neat(height)), "") for _, words, height in made.levels]
    picture = captioned("What privacy costs", made.origin, tradeoff_chart(made).svg(_label(made)), _key(made))
    return {
        "score": made.score,
        "picture": picture,
        "heads": ("cap", "certified, at most", made.score, "spread"),
        "rows": [*rows, *levels],
    }
