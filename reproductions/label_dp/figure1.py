"""Figure 1: how sure the attacker is of guesses about planted labels that are right, and of those that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from reproductions.label_dp import tables

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a drawing back end

SIDES = ((True, "right guesses", "tab:red"), (False, "wrong guesses", "tab:grey"))


def groups(runs: Sequence[tables.Run]) -> dict[str, list[tuple[float, bool]]]:
    """Confidence and outcome of every guess, by method and epsilon; several trainings side by side."""
    found: dict[str, list[tuple[float, bool]]] = {}
    for run in runs:
        kept = run.record["memorisation"]
        if isinstance(kept, dict):
            level = "" if run.recipe.epsilon is None else f", ε = {run.recipe.epsilon:g}"
            name = f"{tables.called(run.recipe)}{level}\n{run.recipe.canaries:,} labels a training"
            found.setdefault(name, []).extend((float(sure), bool(right)) for sure, right in kept["believed"])
    return found


def draw(runs: Sequence[tables.Run], path: Path) -> None:
    """Two halves of a violin for each group; nothing is written where there is none."""
    found = groups(runs)
    if not found:
        return
    figure, axes = plt.subplots(figsize=(2 + 2.2 * len(found), 4.5))
    for place, guesses in enumerate(found.values()):
        sure, right = (np.array(one) for one in zip(*guesses, strict=True))
        for side, name, colour in SIDES:
            some = sure[right == side]
            if len(some) < 2 or np.ptp(some) == 0:
                continue
            half = axes.violinplot([some], [place], side="high" if side else "low", showextrema=False, widths=0.8)
            for body in half["bodies"]:
                body.set(facecolor=colour, alpha=0.7, label=name if place == 0 else None)
        axes.text(place, 1.04, f"{right.mean():.0%} right", ha="center")
    axes.set_xticks(range(len(found)), list(found))
    axes.set(ylabel="the larger of the two confidences", ylim=(-0.02, 1.1))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
