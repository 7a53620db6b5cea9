"""Figures 1 and 2 as tables of the page."""

from __future__ import annotations

import json
from typing import Any

from reproductions.learnable_obfuscation import figure_1, figure_2
from reproductions.learnable_obfuscation.told import Measured, number
from reproductions.marked import NOT_RUN, grid

__all__ = ["figure_1_table", "figure_2_table"]

NATS = ("theorem_2", "theorem_4", "theorem_3", "theorem_5", "log_det_pairs", "entropy")


def figure_1_table(records: Measured) -> str:
    """Nats over the mixing and the noise."""
    points = _read(records, figure_1.FILE)
    if points is None:
        return NOT_RUN
    points = sorted(points, key=lambda point: (point["noise"], point["setting"][2]))
    rows = [[str(p["setting"][2]), f"{p['noise']:g}", *(number(p[name]) for name in NATS)] for p in points]
    heads = ["k", "noise", "Theorem 2", "Theorem 4", "Theorem 3", "Theorem 5", "log-det (ours)", "entropy of the bit"]
    return grid(heads, rows)


def figure_2_table(records: Measured) -> str:
    """Deviations of one draw, and draws for a deviation of the mean of .001 nats; then the plug-in over draws."""
    found = _read(records, figure_2.FILE)
    if found is None:
        return NOT_RUN
    names = {"theorem_4_trace": "4, traces", "theorem_4_log_det": "4, log-det", "theorem_5_trace": "5"}
    rows = []
    for one in found["settling"]:
        n, m, k = one["setting"]
        for name, words in names.items():
            apart = one[f"{name}_deviation"]
            needed = (apart / 1e-3) ** 2
            rows.append(
                [
                    f"({n:,}, {m:,}, {k})",
                    f"{one['noise']:g}",
                    words,
                    number(one[name]),
                    number(apart),
                    f"{max(1.0, needed):.2g}",
                ]
            )
    heads = ["(n, m, k)", "noise", "Theorem", "mean (nats)", "deviation of one draw", "draws for .001 nats"]
    steps = [[str(step["draws"]), number(step["plug_in"]), number(step["tangent"])] for step in found["plug_in"]]
    return grid(heads, rows) + "\n" + grid(["draws L", "plug-in (nats)", "tangent (nats)"], steps)


def _read(records: Measured, name: str) -> Any:
    path = records.folder / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
