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
from leakcap.kernels import kernel_of
from leakcap.worlds import Units, independent_worlds
from reproductions.pac_private_algorithms.data import Split, iris
from reproductions.pac_private_algorithms.figure import arguments
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.kmeans import clusters
from reproductions.pac_private_algorithms.picture import listed, saved
from reproductions.pac_private_algorithms.series import Study
from reproductions.pac_private_algorithms.svm import machine

Floats = npt.NDArray[np.float64]
STEP, PRECISION = 10, 1e-6
HEAD = ("figure", "data", "algorithm", "worlds", "change", "stopped", "variances_off_by")
ALGORITHMS: dict[str, Callable[[Split], Study]] = {
    "K-Means": clusters,
    "SVM, C = 1": lambda split: machine(split, 1.0),
    "SVM, C = .05": lambda split: machine(split, 0.05),
    "decision tree": lambda split: trees(split, Trees(1, 3, seed=2)),
}


def measured(name: str, split: Split, most: int) -> list[tuple[Any, ...]]:
    """A line for every ten worlds: how much the first variance moved, and what the rule did in the end."""
    study = ALGORITHMS[name](split)
    kernel = kernel_of(study.answer)
    assert kernel is not None
    worlds = independent_worlds(len(split.x), most, np.random.default_rng(0))
    answers = np.array([study.natural(row) for row in kernel(study.columns, Units.of(len(split.x), None), worlds)])
    sizes = np.arange(STEP, most + 1, STEP)
    count = np.arange(1, most + 1)[:, None]
    running = (answers**2).cumsum(axis=0) / count - (answers.cumsum(axis=0) / count) ** 2
    moved = np.abs(np.diff(running[sizes - 1], axis=0))
    stopped = _stop(answers, split)
    off = float(np.abs(running[stopped - 1] / np.maximum(running[-1], 1e-12) - 1).max())
    return [
        ("12", split.name, name, int(size), float(change), stopped, off)
        for size, change in zip(sizes[1:], moved[:, 0], strict=True)
    ]


def _stop(answers: Floats, split: Split) -> int:
    """The number of worlds at which the rule stops, or all of them: leakcap's own run of it on these answers."""
    from leakcap.caps import as_caps
    from leakcap.cores import Machine
    from leakcap.modes import Settings, empirical

    worlds = independent_worlds(len(split.x), len(answers), np.random.default_rng(0))
    settings = Settings("linear", 0.0, None, None, Machine(), True, (), ())
    certificate = empirical(
        answers, worlds, as_caps(lc.mutual_information(0.5)), settings, lambda _: None, lambda _: worlds.mask(0), PRECISION
    )[1]
    return int(certificate.worlds)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    options = arguments(str(__doc__), given)
    most = 200 if options.quick else 20_000
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
