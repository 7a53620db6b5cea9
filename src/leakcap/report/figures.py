"""Pictures of a release, as matplotlib figures. Records and arrays in, a `Figure` out: nothing is saved here.

Pictures of worlds or of single people's exposure are the custodian's; their titles say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.certificates.release import Certificate
from leakcap.certificates.text import percent
from leakcap.errors import InputError, MissingExtra
from leakcap.ground.arrays import Floats
from leakcap.report.tradeoff import XLABEL, Tradeoff

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Ellipse
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError:
    raise MissingExtra("pictures need matplotlib: pip install 'leakcap[plots]'") from None

__all__ = ["CUSTODIAN", "Cloud", "at_a_glance", "cloud", "tradeoff_axes"]


CUSTODIAN = "CUSTODIAN ONLY"
COVERED = 0.95  # of the noise lies inside the ellipse that is drawn for it

# Okabe and Ito's palette: told apart with every kind of colour vision.
BLUE, SKY, VERMILION = "#0072B2", "#56B4E9", "#D55E00"
INK, FAINT, GRID = "#1F2933", "#66717D", "#E4E8EC"


@dataclass(frozen=True, eq=False)
class Cloud:
    """Answers of all worlds along two axes, with the noise and the released answer; custodian side."""

    worlds: Floats
    noise: Floats
    released: Floats
    whole_pool: Floats
    name: str = ""

    @classmethod
    def seen(
        cls,
        outputs: Floats,
        covariance: Floats,
        released: Floats,
        whole_pool: Floats,
        axes: npt.ArrayLike,
        offset: npt.ArrayLike = (0.0, 0.0),
        name: str = "",
    ) -> Cloud:
        """A cloud of `(m, d)` outputs along the rows of `axes`, `(2, d)`; `offset` is added to every point."""
        onto, shift = np.asarray(axes, dtype=np.float64), np.asarray(offset, dtype=np.float64)
        if onto.shape != (2, outputs.shape[1]):
            raise InputError(f"axes must be two rows of {outputs.shape[1]:,} numbers, one for each output")
        return cls(
            worlds=outputs @ onto.T + shift,
            noise=onto @ covariance @ onto.T,
            released=onto @ released + shift,
            whole_pool=onto @ whole_pool + shift,
            name=name,
        )


def cloud(clouds: Sequence[Cloud], labels: tuple[str, str], title: str) -> Figure:
    """The released answer against the answers of all worlds; custodian side."""
    figure, (ax,) = _figure(1, (7.6, 5.6))
    _custodian(figure, "shows the answer in every possible world")
    _draw_clouds(ax, clouds, labels)
    _title(ax, title, "Which of the dots was noised to give the released answer? The noise hides it.")
    return figure


def at_a_glance(
    clouds: Sequence[Cloud],
    labels: tuple[str, str],
    certificate: Certificate,
    exact_success: float,
) -> Figure:
    """The product in one picture: the noise hides the world, and the attacker's success falls; custodian side.

    `exact_success` is what the same attacker has when the answer leaves without noise.
    """
    figure, (left, right) = _figure(2, (12.4, 5.2), widths=(1.7, 1))
    _custodian(figure, "shows the answer in every possible world")
    _draw_clouds(left, clouds, labels)
    _title(
        left,
        "The noise hides who took part",
        f"One analysis in {certificate.worlds:,} possible worlds; a secret one of them gave the released answer",
    )
    _draw_before_and_after(right, certificate, exact_success)
    return figure


def tradeoff_axes(made: Tradeoff, ax: Any = None) -> Any:
    """What privacy costs, on matplotlib axes; custodian side."""
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


def _draw_clouds(ax: Axes, clouds: Sequence[Cloud], labels: tuple[str, str]) -> None:
    for one in clouds:
        ax.scatter(one.worlds[:, 0], one.worlds[:, 1], s=7, color=BLUE, alpha=0.35, lw=0, zorder=3, rasterized=True)
        ax.add_patch(_ellipse(one))
        ax.plot(*one.whole_pool, "+", ms=12, mew=2.2, color=INK, zorder=5)
        ax.plot(*one.released, "D", ms=8.5, color=VERMILION, mec="white", mew=1.2, zorder=6)
        if one.name:
            top = one.released[1] + _half_height(one)
            name = ax.annotate(
                one.name, (one.released[0], top), (0, 4), textcoords="offset points", ha="center", color=INK, zorder=7
            )
            name.set_path_effects([withStroke(linewidth=3, foreground="white")])
    ax.autoscale_view()
    ax.margins(0.06, 0.1)
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    _frame(ax)
    keys = [
        Line2D([], [], ls="", marker="o", ms=5, color=BLUE, mew=0, label="answer in one world"),
        Line2D([], [], ls="", marker="+", ms=10, mew=2.2, color=INK, label="on the whole pool"),
        Line2D([], [], ls="", marker="D", ms=8, color=VERMILION, mec="white", label="released"),
        Line2D(
            [], [], ls="", marker="o", ms=11, mfc=(*_rgb(VERMILION), 0.12), mec=VERMILION, label="95 % of the noise"
        ),
    ]
    _legend(
        ax, loc="upper center", handles=keys, bbox_to_anchor=(0.5, -0.13), ncols=4, handletextpad=0.4, columnspacing=1.6
    )


def _ellipse(one: Cloud) -> Ellipse:
    """The region round the released answer that holds 95 % of the noise."""
    variances, directions = np.linalg.eigh(one.noise)
    # Two normal coordinates lie within radius r (in deviations) with probability 1 - exp(-r^2 / 2).
    width, height = 2 * np.sqrt(np.maximum(variances[::-1], 0) * -2 * np.log(1 - COVERED))
    angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
    centre = (float(one.released[0]), float(one.released[1]))
    return Ellipse(centre, width, height, angle=angle, fc=(*_rgb(VERMILION), 0.10), ec=VERMILION, lw=1.4, zorder=2)


def _half_height(one: Cloud) -> float:
    return float(np.sqrt(one.noise[1, 1] * -2 * np.log(1 - COVERED)))


def _draw_before_and_after(ax: Axes, certificate: Certificate, exact_success: float) -> None:
    bars = (
        ("a coin flip,\nno release", 0.5, "50 %", "#9AA5B1"),
        ("leakcap\nrelease", certificate.membership_success, f"≤ {percent(certificate.membership_success, 1)}", BLUE),
        ("exact answer,\nno noise", exact_success, f"{100 * exact_success:.3g} %", VERMILION),
    )
    ax.bar(range(len(bars)), [bar[1] for bar in bars], color=[bar[3] for bar in bars], width=0.62, zorder=3)
    ax.axhline(0.5, color=INK, lw=1.2, ls=":", zorder=4)
    for place, (_, value, text, colour) in enumerate(bars):
        shade = FAINT if place == 0 else colour
        ax.annotate(
            text, (place, value), (0, 6), textcoords="offset points", ha="center", color=shade, size=13, weight="bold"
        )
    ax.set_xticks(range(len(bars)), [bar[0] for bar in bars])
    ax.set_ylim(0, 1.12)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    ax.set_ylabel("best attacker's success")
    _frame(ax)
    ax.grid(False, axis="x")
    ax.tick_params(axis="x", labelsize=10, colors=INK)
    _title(ax, "“Did this person take part?”", "Against the most exposed person")


def _figure(panels: int, size: tuple[float, float], widths: Sequence[float] | None = None) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.04)  # type: ignore[union-attr, call-arg]
    axes = figure.subplots(1, panels, squeeze=False, width_ratios=widths)
    return figure, list(axes[0])


def _frame(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#B9C1C9")
    ax.grid(True, color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=FAINT, labelsize=9, length=0, pad=6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(INK)
        axis.label.set_fontsize(10.5)
        axis.labelpad = 7


def _title(ax: Axes, title: str, subtitle: str) -> None:
    ax.set_title(title, loc="left", size=13, weight="bold", color=INK, pad=25)
    ax.annotate(subtitle, (0, 1), (0, 9), xycoords="axes fraction", textcoords="offset points", color=FAINT, size=10)


def _custodian(figure: Figure, why: str) -> None:
    figure.suptitle(f"{CUSTODIAN}: {why}", x=0.012, ha="left", size=8.5, weight="bold", color=VERMILION)


def _legend(ax: Axes, **options: Any) -> None:
    box = ax.legend(fontsize=9, labelcolor=INK, framealpha=0.92, edgecolor="none", **options)
    box.set_zorder(10)


def _rgb(colour: str) -> tuple[float, float, float]:
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255
