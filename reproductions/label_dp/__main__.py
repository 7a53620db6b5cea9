"""`python -m reproductions.label_dp FOLDER ...`: the tables and a picture from the files of all runs so far."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from reproductions.label_dp import published, tables
from reproductions.label_dp.central import told

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a drawing back end


def picture(runs: Sequence[tables.Run], path: Path) -> None:
    """CIFAR-10: accuracy against epsilon."""
    figure, axes = plt.subplots(figsize=(7, 5.3))
    for preset, mark in (("ours", "o-"), ("alibi", "s--"), ("naive", "x:")):
        levels = sorted({run.recipe.epsilon for run in runs if run.recipe.preset == preset})
        points = [(e, tables.of(runs, tables.standing(preset, e, "cifar10"))) for e in levels]
        points = [(e, found) for e, found in points if found]
        if points:
            means = [statistics.mean(run.per_cent for run in found) for _, found in points]
            spread = [statistics.stdev([r.per_cent for r in found]) if len(found) > 1 else 0.0 for _, found in points]
            label = f"{tables.METHODS[preset]}, measured"
            axes.errorbar([e for e, _ in points], means, spread, fmt=mark, capsize=3, label=label)
    lines = [row for row in published.TABLE_1 if row.data == "cifar10" and row.method == "alibi"]
    alone = "published: labels one by one"
    axes.plot([r.epsilon for r in lines], [r.accuracy for r in lines], "D", color="grey", label=f"ALIBI, {alone}")
    two = {e: figure for e, (name, figure) in published.ONE_BY_ONE_CIFAR10.items() if name == "LP-2ST"}
    axes.plot(list(two), list(two.values()), "^", color="black", label=f"LP-2ST, {alone}")
    _curators(axes)
    curator = published.pate_fm("cifar10")
    label = f"PATE-FM, published: trusted curator, δ = {published.PATE_DELTA:.0e}".replace("e-05", "e-5")
    axes.plot(list(curator), list(curator.values()), "P", color="tab:red", label=label)
    top = tables.of(runs, tables.standing("ceiling", None, "cifar10"))
    if top:
        axes.axhline(
            statistics.mean(run.per_cent for run in top), color="green", lw=1, label="true labels, same recipe"
        )
    axes.set(xscale="log", xlabel="ε", ylabel="test accuracy, %", title="CIFAR-10 from private labels")
    levels = [0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8]
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"))
    figure.savefig(path.with_suffix(".png"), dpi=150)
    plt.close(figure)


def _curators(axes: Any) -> None:
    """What a trusted curator gets from noised sums: alone, and with self-training."""
    alone, whole = told.sums(), told.runs()
    axes.plot(list(alone), list(alone.values()), ".--", color="tab:purple", label="ours, a curator: noised sums alone")
    means = [statistics.mean(found) for found in whole.values()]
    axes.plot(list(whole), means, "p-", color="tab:purple", label="ours, a curator: sums and self-training")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(__file__).parent / "measured"])
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp"))
    given = parser.parse_args(arguments)
    runs = tables.read(given.folders)
    given.out.mkdir(parents=True, exist_ok=True)
    text = tables.page(runs)
    (given.out / "tables.md").write_text(text, encoding="utf-8")
    picture(runs, given.out / "accuracy")
    print(text)


if __name__ == "__main__":
    main()
