"""A figure as a picture (SVG and PNG) and as a table (CSV)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, ScalarFormatter

from reproductions.pac_private_algorithms import series as names
from reproductions.pac_private_algorithms.paper import ANISOTROPIC, BASELINE
from reproductions.pac_private_algorithms.series import SERIES, Row

__all__ = ["drawn", "listed", "read", "saved", "written"]

LOOKS: dict[str, dict[str, Any]] = {
    names.UNPROTECTED: {"color": "0.25", "linestyle": "--", "linewidth": 1.4},
    names.HALVED: {"color": "0.6", "linestyle": ":", "linewidth": 1.2},
    names.AS_PRINTED: {"color": "#e08e45", "marker": "^", "linestyle": "--"},
    names.MENDED: {"color": "#e08e45", "marker": "x", "linestyle": ":"},
    names.ISOTROPIC: {"color": "#b8a100", "marker": "v"},
    names.RULE: {"color": "#d1495b", "marker": "s"},
    names.LEFT_OUT: {"color": "#d1495b", "marker": ".", "linestyle": ":"},
    names.HINGE_UNPROTECTED: {"color": "#8d6bb8", "linestyle": "--", "linewidth": 1.2},
    names.HINGE_PRINTED: {"color": "#8d6bb8", "marker": "^", "linestyle": ":"},
    names.HINGE_RULE: {"color": "#8d6bb8", "marker": "s"},
    names.POLISHED: {"color": "#d1495b", "marker": "s", "markerfacecolor": "white", "linestyle": "-."},
    names.OURS_MI: {"color": "#2a9d8f", "marker": "o"},
    names.OURS_CAP: {"color": "#1d3557", "marker": "D"},
}
QUOTED = {BASELINE: "0.25", ANISOTROPIC: "#d1495b"}
ARROWS = {">": "^", "≥": "^", "<": "v", "≤": "v", "≈": "x", "=": "x"}
SAID = {"^": "the paper says: above", "v": "the paper says: below", "x": "the paper says: about"}


def written(rows: Sequence[Row], path: Path) -> None:
    """The rows as a CSV file."""
    listed([field.name for field in fields(Row)], [astuple(row) for row in rows], path)


def read(path: Path) -> list[Row]:
    """The rows of a CSV file that was written before; none where there is no file."""
    if not path.is_file():
        return []
    numbers = {field.name: field.type for field in fields(Row) if field.type != "str"}

    def value(name: str, text: str) -> Any:
        if name not in numbers:
            return text
        return None if not text else int(text) if numbers[name] == "int" else float(text)

    with path.open(encoding="utf-8") as file:
        return [Row(**{name: value(name, text) for name, text in line.items()}) for line in csv.DictReader(file)]


def listed(head: Sequence[str], rows: Sequence[Sequence[Any]], path: Path) -> None:
    """Any table as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(head)
        lines.writerows(rows)


def drawn(rows: Sequence[Row], title: str, unit: str) -> Figure:
    """A panel for each data set; the paper's words are arrows (above, below) and crosses (about)."""
    panels = list(dict.fromkeys(row.data for row in rows))
    figure = Figure(figsize=(4.1 * len(panels) + 0.4, 4.8), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, axis in zip(panels, axes, strict=True):
        here = [row for row in rows if row.data == panel]
        for name in SERIES:
            points = [(row.mutual_information, row.mean) for row in here if row.series == name]
            if points:
                axis.plot(*zip(*points, strict=True), label=name, markersize=4, **LOOKS[name])
        for name, colour in QUOTED.items():
            for row in here:
                if row.series == name:
                    axis.plot(
                        row.mutual_information, row.mean, ARROWS[row.says], color=colour, alpha=0.45, markersize=8
                    )
        axis.set_xscale("log", base=2)
        axis.set_title(panel)
        axis.set_xlabel("mutual information (nats)")
        axis.grid(alpha=0.25)
        if unit == "restoration error":
            _readable(axis, here)
    axes[0].set_ylabel(unit)
    every = [handle for axis in axes for handle in axis.get_legend_handles_labels()[0]]
    handles = list({str(handle.get_label()): handle for handle in every}.values())
    said = {ARROWS[row.says] for row in rows if row.series in QUOTED}
    handles += [Line2D([], [], color="0.6", marker=m, linestyle="", label=SAID[m]) for m in SAID if m in said]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(panels) + 1, 4), frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _readable(axis: Any, rows: Sequence[Row]) -> None:
    """Errors without limit: large ones go off the top rather than flatten the others."""
    least = min(row.mean for row in rows)
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_formatter("")
    axis.set_ylim(least / 1.3, min(max(row.mean for row in rows) * 1.2, 30 * max(least, 0.05)))


def saved(figure: Figure, stem: Path) -> None:
    """As SVG and PNG."""
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "leakcap"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.set_layout_engine("none")  # the second keeps the layout of the first
        figure.savefig(stem.with_suffix(".png"), dpi=150)
