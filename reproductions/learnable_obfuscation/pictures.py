"""Figures 1 and 2 as small SVG pictures, from `figure_1.json` and `figure_2.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from reproductions.learnable_obfuscation import figure_1, figure_2

__all__ = ["figure_one", "figure_two", "save_svg"]

LINES = {
    "theorem_2": ("Theorem 2: whole sample, mask alone", {"color": "#b8a100", "linestyle": "--"}),
    "theorem_4": ("Theorem 4: whole sample, mixed", {"color": "#b8a100", "marker": "s"}),
    "theorem_3": ("Theorem 3: one member, mask alone", {"color": "#d1495b", "linestyle": "--"}),
    "theorem_5": ("Theorem 5: one member, mixed", {"color": "#d1495b", "marker": "o"}),
    "log_det_pairs": ("one member, log-determinants (ours)", {"color": "#2a9d8f", "marker": "D"}),
    "entropy": ("entropy of the membership bit", {"color": "0.25", "linestyle": ":"}),
}
LENGTHS = np.array([1, 10, 100, 1000])


def figure_one(folder: Path) -> Figure:
    """Nats over the rows in a mean, and over the noise."""
    points = json.loads((folder / figure_1.FILE).read_text(encoding="utf-8"))
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    mixed = sorted((p for p in points if p["noise"] == figure_1.NOISE), key=lambda p: p["setting"][2])
    noised = sorted((p for p in points if p["setting"][2] == figure_1.MIX), key=lambda p: p["noise"])
    for axis, some, at in (
        (left, mixed, [p["setting"][2] for p in mixed]),
        (right, noised, [p["noise"] for p in noised]),
    ):
        for name, (label, look) in LINES.items():
            axis.plot(at, [p[name] for p in some], label=label, markersize=4, **look)
        axis.set(xscale="log", yscale="log")
        axis.set_xticks(at, [f"{one:g}" for one in at], minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.25)
    left.set(xlabel=f"k, rows of a class in a mean (noise {figure_1.NOISE})", ylabel="nats")
    right.set(xlabel=f"noise (k = {figure_1.MIX})")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def figure_two(folder: Path) -> Figure:
    """Deviations of a mean over L draws; and Type II of the whole sample by plug-in and by tangent, over L."""
    found = json.loads((folder / figure_2.FILE).read_text(encoding="utf-8"))
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ("#1d3557", "#2a9d8f", "#e08e45")
    for one, colour in zip(found["settling"], colours, strict=False):
        k = one["setting"][2]
        for name, style in (("theorem_4_trace", "--"), ("theorem_4_log_det", "-"), ("theorem_5_trace", ":")):
            words = {"theorem_4_trace": "4, traces", "theorem_4_log_det": "4, log-det", "theorem_5_trace": "5"}[name]
            label = f"Theorem {words}: k {k}, noise {one['noise']:g}"
            left.plot(LENGTHS, one[f"{name}_deviation"] / np.sqrt(LENGTHS), style, color=colour, label=label)
    left.set(xscale="log", yscale="log", xlabel="draws L", ylabel="deviation of the mean (nats)")
    left.minorticks_off()
    _steps(right, found["plug_in"])
    for axis in (left, right):
        axis.grid(alpha=0.25)
    right.legend(fontsize=8, frameon=False)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _steps(axis: Any, steps: list[dict[str, float]]) -> None:
    draws = [step["draws"] for step in steps]
    axis.plot(draws, [step["tangent"] for step in steps], "-D", color="#2a9d8f", markersize=4, label="tangent (ours)")
    axis.plot(draws, [step["plug_in"] for step in steps], "-s", color="#d1495b", markersize=4, label="plug-in (paper)")
    axis.set(xscale="log", xlabel="draws L behind the mean", ylabel="Type II about the whole sample (nats)")
    axis.set_xticks(draws, [f"{one:g}" for one in draws], minor=False)
    axis.minorticks_off()


def save_svg(figure: Figure, path: Path) -> None:
    """With text as text, and the same bytes for the same figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "leakcap"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
