"""The tables of docs/guides/private-labels.md on which method wins, made from the records of `label_methods`.

`python -m benchmarks.label_table` writes them between the page's marks.
"""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path

from reproductions.marked import filled_marks, grid

import leakcap as lc
from benchmarks.label_methods import RARE, TAKEN, measured
from benchmarks.records import seen

__all__ = ["PAGE", "SETS", "advice", "ahead", "filled", "main"]

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "private-labels.md"
Told = tuple[float, float]  # mean and error of the mean
Facts = tuple[str, int, int, int]  # name, rows, columns, classes
# Public facts by which advice is given; rows are those that the record's claim names.
SETS: dict[str, Facts] = {
    "beans": ("Dry Bean", 9_527, 16, 7),
    "adult": ("Adult", 32_561, 88, 2),
    "diabetes-3": ("Diabetes, 3 classes", 71_159, 87, 3),
    "diabetes-30": ("Diabetes, < 30 days", 71_159, 87, 2),
    "made": ("made data", 15_000, 60, 12),
    "fresh-bent": ("bent borders", 8_000, 12, 4),
    "fresh-gaussian": ("Gaussian classes", 8_000, 20, 5),
    "fresh-unequal": ("unequal classes", 8_000, 30, 6),
    "fresh-many": ("thirty classes", 8_000, 25, 30),
    "fresh-words": ("counts of words", 8_000, 100, 6),
    "fresh-last-ordered": ("steps of a score", 8_000, 18, 7),
    "fresh-last-mixed": ("yes-or-no columns", 8_000, 40, 3),
    "fresh-later-rice": ("Rice (later)", 2_667, 7, 2),
    "fresh-later-heart": ("Heart disease (later)", 207, 13, 2),
    "fresh-later-few": ("few rows (later)", 2_000, 80, 9),
}
SHOWN = ("beans", "adult")
CIFAR = ("CIFAR-10 embeddings", 50_000, 1_280, 10)
CURVE = {"responses": "one by one", "statistics": "noised sums", "pate": "votes after sums"}
CURVE_AT = (0.29, 1.6, 4.0)
SUMS = {"LDA": "either", "Logistic": "logistic"}  # what measures the sums that advice names


@functools.cache  # asked for each place of each table, and by tests
def advice(facts: Facts, epsilon: float) -> lc.labels.Advice:
    name, rows, columns, classes = facts
    prior = [1 - RARE, RARE] if name == SETS["diabetes-30"][0] else None
    return lc.labels.advise(epsilon, classes, rows=rows, columns=columns, prior=prior)


def sums_of(said: lc.labels.Advice) -> str:
    """The model of sums that is advised; where none is, the one that would be, were observations fewer."""
    return said.model if said.method == "statistics" else "Logistic"


def filled(text: str) -> str:
    """The page with both tables between their marks."""
    return filled_marks(text, {"methods": methods(), "against_advice": against_advice()}.get)


def methods() -> str:
    """Accuracy by method; the advised one is bold."""
    rows = []
    for name in SHOWN:
        facts = SETS[name]
        for epsilon, found in measured(name).items():
            said = advice(facts, epsilon)
            model = sums_of(said)
            cells = {
                "responses": f"{found['responses'][0]:.1f}",
                "statistics": f"{found[SUMS[model]][0]:.1f} ({model})",
                "pate": f"{found['votes after sums'][0]:.1f}" if "votes after sums" in found else "",
            }
            rows.append(_line(facts, epsilon, said, cells))
    curve = {way: _on_curve(start) for way, start in CURVE.items()}
    for epsilon in CURVE_AT:
        cells = {way: f"{found[epsilon]:.1f}" if epsilon in found else "" for way, found in curve.items()}
        cells["statistics"] += " (Ridge)"
        rows.append(_line(CIFAR, epsilon, advice(CIFAR, epsilon), cells))
    return grid(["data", "ε", "nats", *CURVE], rows)


def _line(facts: Facts, epsilon: float, said: lc.labels.Advice, cells: dict[str, str]) -> list[str]:
    name, rows, columns, classes = facts
    told = [f"**{cell}**" if way == said.method else cell for way, cell in cells.items()]
    return [f"{name}: {rows:,} rows, {classes} classes, {columns:,} columns", f"{epsilon:g}", _shown(said.nats), *told]


def _shown(nats: float) -> str:
    return f"{nats:.2g}" if nats < 100 else f"{nats:.0f}"


def _on_curve(start: str) -> dict[float, float]:
    (part,) = [one for one in seen("labels-curve").split("; ") if one.startswith(start)]
    return {float(at): float(mean) for mean, at in re.findall(r"([\d.]+) at ([\d.]+)", part)}


def ahead(name: str, method: str, epsilon: float) -> Told:
    """By how much a method, or the "best" one of all, is ahead of what is advised; with the error."""
    told = measured(name)[epsilon]
    taken = told[TAKEN[advice(SETS[name], epsilon).model]]
    other = max(told.values()) if method == "best" else told[method]
    return other[0] - taken[0], math.hypot(other[1], taken[1])


def against_advice() -> str:
    """How far the advised method is behind the best one of all that were measured, by set and epsilon."""
    epsilons = sorted({epsilon for name in SETS for epsilon in measured(name)})
    return grid(
        ["data", *(f"ε = {epsilon:g}" for epsilon in epsilons)],
        [[SETS[name][0], *(_behind(name, epsilon) for epsilon in epsilons)] for name in SETS],
    )


def _behind(name: str, epsilon: float) -> str:
    if epsilon not in measured(name):
        return ""
    short, error = ahead(name, "best", epsilon)
    told = f"{short:.1f} ± {error:.1f}" if round(short, 1) else "best"
    return f"{told} ({advice(SETS[name], epsilon).model})"


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
