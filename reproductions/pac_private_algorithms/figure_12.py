"""Figure 12: when the paper's stopping rule stops, and how far its variances are then from the true ones.

Algorithm 1 draws ten worlds more at a time until no variance has moved by 1e-6. Shown is how much the first output's
variance moves, on Iris. The stops are those of leakcap's `mode="empirical"`, which exists for this comparison only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

import leakcap as lc
from leakcap.kernels import kernel_of, offers
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import Split, iris
from reproductions.pac_private_algorithms.figure import arguments
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.kmeans import clusters
from reproductions.pac_private_algorithms.picture import listed, saved
from reproductions.pac_private_algorithms.series import Study
from reproductions.pac_private_algorithms.svm import machine

Floats = npt.NDArray[np.float64]
STEP, PRECISION = 10, 1e-6  # of the rule
SHOWN = 300  # points of a curve, evenly on a logarithmic scale
HEAD = ("figure", "data", "algorithm", "worlds", "change", "stopped", "variances_off_by")
ALGORITHMS: dict[str, Callable[[Split], Study]] = {
    "K-Means": clusters,
    "SVM, C = 1": lambda split: machine(split, 1.0),
    "SVM, C = .05": lambda split: machine(split, 0.05),
    "decision tree": lambda split: trees(split, Trees(1, 3, seed=2)),
}


def measured(name: str, split: Split, most: int) -> list[tuple[Any, ...]]:
    """A line for some numbers of worlds: how much the first variance moved in ten, and where the rule stops."""
    study = ALGORITHMS[name](split)
    plan = lc.plan(
        _in_natural_numbers(study),
        *study.columns,
        cap=lc.mutual_information(0.5),
        worlds=most,
        mode="empirical",
        seed=0,
    )
    answers, stopped = plan.outputs, plan.certificate.worlds
    sizes = np.arange(STEP, most + 1, STEP)
    apart, count = answers - answers.mean(axis=0), sizes[:, None]
    squares, sums = np.cumsum(apart**2, axis=0)[sizes - 1], np.cumsum(apart, axis=0)[sizes - 1]
    running = squares / count - (sums / count) ** 2
    moved = np.abs(np.diff(running[:, 0]))
    moving = running[-1] > 0
    off = float(np.abs(running[stopped // STEP - 1, moving] / running[-1, moving] - 1).max())
    shown = np.unique(np.geomspace(1, len(moved), SHOWN).astype(int)) - 1
    return [("12", split.name, name, int(sizes[i + 1]), float(moved[i]), stopped, off) for i in shown]


def _in_natural_numbers(study: Study) -> Callable[..., Floats]:
    """The answer as the paper releases it, in all worlds at once too."""
    kernel = kernel_of(study.answer)
    assert kernel is not None

    def serves(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats:
        return np.array([study.natural(row) for row in np.asarray(kernel(data, units, worlds))])

    @offers(serves, tolerance=1e-5)
    def answer(*rows: Any) -> Floats:
        return study.natural(study.answer(*rows))

    return answer


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    options = arguments(str(__doc__), given)
    most = 200 if options.quick else 100_000
    rows = [row for name in ALGORITHMS for row in measured(name, iris(), most)]
    for name in ALGORITHMS:
        last = next(row for row in reversed(rows) if row[2] == name)
        print(f"Figure 12, {name}: stops after {last[5]:,} worlds of {most:,}; a variance is off by {last[6]:.0%} then")
    listed(HEAD, rows, options.out / "figure_12.csv")
    saved(_picture(rows), options.out / "figure_12")


def _picture(rows: Sequence[tuple[Any, ...]]) -> Figure:
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axis = figure.subplots()
    for colour, name in zip(("#2a9d8f", "#d1495b", "#1d3557", "#b8a100"), ALGORITHMS, strict=True):
        here = [row for row in rows if row[2] == name]
        axis.plot([r[3] for r in here], [max(r[4], 1e-12) for r in here], color=colour, linewidth=0.8, label=name)
        axis.axvline(here[0][5], color=colour, linestyle=":", linewidth=1.2)
    axis.axhline(PRECISION, color="0.5", linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="worlds", ylabel="change of the first variance in ten worlds")
    axis.set_ylim(1e-10)
    axis.legend(fontsize=8, frameon=False)
    axis.set_title("Figure 12: convergence on Iris (dotted: where the rule stops)", fontsize=11)
    return figure


if __name__ == "__main__":
    main()
