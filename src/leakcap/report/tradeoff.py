"""The trade-off between privacy and use as a picture: inline SVG, a part of a notebook, or matplotlib axes.

What is shown comes from the data without noise: it is the custodian's, and every picture says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.report.chart import HEIGHT, WIDTH, Axis, Chart, key, linear
from leakcap.report.markup import table, text
from leakcap.report.numbers import bound, data, neat
from leakcap.report.pictures import captioned
from leakcap.report.style import STYLE

__all__ = ["Tradeoff", "tradeoff_axes", "tradeoff_fragment", "tradeoff_svg"]

Floats = npt.NDArray[np.float64]
LEAST = 1e-4  # success above one half that the axis can show
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
        return np.maximum(self.success - 0.5, LEAST)

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


def _key(made: Tradeoff) -> str:
    lines = [("line", kind, words) for kind, words, _ in made.levels]
    return key(
        (("dot", "bound-point", "expected of a release"), ("box", "between", "one standard deviation round it"), *lines)
    )


def _label(made: Tradeoff) -> str:
    return f"Expected {made.score} over the certified success of the best attacker."


def tradeoff_svg(made: Tradeoff) -> str:
    """A picture that stands alone."""
    chart = tradeoff_chart(made).svg(_label(made))
    tall = HEIGHT + 18 * (len(made.levels) + 3)
    rows = []
    marks = [("bound", "expected of a release, with one standard deviation round it")]
    for place, (kind, words) in enumerate([*marks, *((kind, words) for kind, words, _ in made.levels)]):
        y = HEIGHT + 16 + 18 * place
        rows.append(
            f'<path class="{kind}" d="M10 {y - 4:g}H34"/><text x="42" y="{y:g}" class="tick">{text(words)}</text>'
        )
    y = HEIGHT + 16 + 18 * (len(made.levels) + 1)
    rows.append(f'<text x="10" y="{y:g}" class="kept">CUSTODIAN ONLY: {text(made.origin)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="leakcap alone" viewBox="0 0 {WIDTH:g} {tall:g}" '
        f'width="{1.5 * WIDTH:g}" height="{1.5 * tall:g}"><style>{STYLE}{_ALONE}</style>'
        f'<rect class="paper" width="{WIDTH:g}" height="{tall:g}"/>'
        f'<svg width="{WIDTH:g}" height="{HEIGHT:g}">{chart}</svg><g class="chart">{"".join(rows)}</g></svg>\n'
    )


def tradeoff_fragment(made: Tradeoff) -> str:
    """The custodian's part of a notebook: picture and figures."""
    figures = [
        (text(cap), bound(success), data(mean, neat(mean)), data(spread, neat(spread, 2)))
        for cap, success, mean, spread in zip(
            made.caps, made.success.tolist(), made.mean.tolist(), made.spread.tolist(), strict=True
        )
    ]
    figures += [(text(words), "", data(height, neat(height)), "") for _, words, height in made.levels]
    banner = (
        '<div class="band kept" role="alert"><div><strong>CUSTODIAN ONLY &ndash; do not publish.</strong> '
        "Scores come from the data without noise. Nothing was released.</div></div>"
    )
    picture = captioned("What privacy costs", made.origin, tradeoff_chart(made).svg(_label(made)), _key(made))
    heads = ("cap", "certified, at most", text(made.score), "spread")
    return (
        f'<div class="leakcap fragment"><style>{STYLE}{_ALONE}</style>\n{banner}\n'
        f'<div class="tradeoff">{picture}</div>\n'
        f"{table(heads, figures, 'answers')}\n</div>"
    )


def tradeoff_axes(made: Tradeoff, ax: Any = None) -> Any:
    """The same on matplotlib axes."""
    from matplotlib.ticker import FixedLocator, NullLocator

    from leakcap.report.plots import BLUE, CUSTODIAN, FAINT, INK, SKY, VERMILION, _frame, _legend

    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(7.6, 5.2), layout="constrained", facecolor="white")
    looks = {"before": (INK, ":"), "pool-line": (INK, "-"), "leader": (VERMILION, "--")}
    for kind, words, height in made.levels:
        ax.axhline(height, color=looks[kind][0], ls=looks[kind][1], lw=1.3, label=words, zorder=2)
    ax.fill_between(made.room, made.mean - made.spread, made.mean + made.spread, color=SKY, alpha=0.3, lw=0, zorder=1)
    ax.plot(made.room, made.mean, "-o", color=BLUE, lw=2.2, ms=6, mec="white", label="expected of a release", zorder=3)
    ax.set_xscale("log")
    ax.set_xlim(made.room.min() / 1.25, made.room.max() * 1.25)
    ax.set_ylim(*made.reach)
    ax.xaxis.set_major_locator(FixedLocator([mark for mark, _ in made.ticks]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([words for _, words in made.ticks])
    ax.set_xlabel(XLABEL)
    ax.set_ylabel(made.score)
    _frame(ax)
    ax.set_title("What privacy costs", loc="left", size=13, weight="bold", color=INK, pad=34)
    note = {"xycoords": "axes fraction", "textcoords": "offset points", "size": 9}
    ax.annotate(f"Shaded: one standard deviation. {made.origin}", (0, 1), (0, 20), color=FAINT, **note)
    ax.annotate(f"{CUSTODIAN}: scores come from the data without noise", (0, 1), (0, 7), color=VERMILION, **note)
    _legend(ax, loc="lower right")
    return ax


_ALONE = (
    ".leakcap .tradeoff{max-width:540px;margin-bottom:12px}\n"
    ".leakcap .pool-line{stroke:var(--ink);stroke-width:1.3;fill:none}\n"
    ".leakcap.alone .paper{fill:var(--paper)}\n"
    ".leakcap.alone .kept{fill:var(--red-ink);font-weight:700;font-size:11px}\n"
)
