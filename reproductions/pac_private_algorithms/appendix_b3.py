"""Appendix B.3: how much the paper's noise depends on the draw of the worlds, for 2, 128 and 1,024 of them.

Shown is the sum of the noise variances, |diag(Sigma_B)|_1 = (sum_j sqrt(v_j))^2 / (2 beta), at mutual information 1/2
over 100 sets of complementary worlds. The paper names no data set; this is Iris. For decision trees it is given for
thresholds alone, as the paper's code noises them, and with the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from leakcap.kernels import kernel_of
from leakcap.worlds import Units, draw_worlds
from reproductions.pac_private_algorithms.data import iris
from reproductions.pac_private_algorithms.figure import arguments
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.kmeans import clusters
from reproductions.pac_private_algorithms.paper import SPREADS
from reproductions.pac_private_algorithms.picture import listed, saved
from reproductions.pac_private_algorithms.series import Study, papers_rule

Floats = npt.NDArray[np.float64]
BUDGET, SETS, SIZES = 0.5, 100, (2, 128, 1024)
HEAD = ("appendix", "algorithm", "worlds", "sets", "least", "middle", "largest", "paper_least", "paper_largest")


def spread(study: Study, size: int, sets: int, outputs: slice = slice(None)) -> Floats:
    """The sum of the noise variances for each set of worlds."""
    kernel = kernel_of(study.answer)
    assert kernel is not None
    n, found = len(study.columns[0]), np.empty(sets)
    for i in range(sets):
        worlds = draw_worlds(n, size, np.random.default_rng(i))
        planned = np.asarray(kernel(study.columns, Units.of(n, None), worlds))
        answers = np.array([study.natural(row) for row in planned])
        found[i] = (papers_rule(answers[:, outputs], BUDGET) ** 2).sum()
    return found


def measured(sets: int, sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """A line for each algorithm and number of worlds."""
    how = Trees(1, 3, seed=2)
    cases = (
        ("K-Means", clusters(iris()), slice(None), "K-Means"),
        ("decision tree, thresholds", trees(iris(), how), slice(2**how.depth - 1), "decision tree"),
        ("decision tree, thresholds and leaves", trees(iris(), how), slice(None), ""),
    )
    for name, study, outputs, said in cases:
        for size in sizes:
            found = spread(study, size, sets, outputs)
            low, high = SPREADS.get((said, size), (None, None))
            print(
                f"{name}, {size:,} worlds: {found.min():.3g} to {found.max():.3g}; the paper: {low} to {high}",
                flush=True,
            )
            yield "B.3", name, size, sets, found.min(), np.median(found), found.max(), low, high


def main(given: Sequence[str] | None = None) -> None:
    """Write the table."""
    options = arguments(str(__doc__), given)
    rows = list(measured(5, SIZES[:2]) if options.quick else measured(SETS, SIZES))
    listed(HEAD, rows, options.out / "appendix_b3.csv")
    saved(_picture(rows), options.out / "appendix_b3")


def _picture(rows: Sequence[tuple[Any, ...]]) -> Figure:
    names = list(dict.fromkeys(row[1] for row in rows))
    figure = Figure(figsize=(3.6 * len(names), 3.4), layout="constrained")
    for name, axis in zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True):
        here = [row for row in rows if row[1] == name]
        place = np.arange(len(here))
        middle = np.array([row[5] for row in here])
        off = [middle - [row[4] for row in here], [row[6] for row in here] - middle]
        axis.errorbar(place, middle, off, fmt="o", capsize=4, color="#d1495b", label="least, middle, largest")
        for x, row in zip(place, here, strict=True):
            if row[7] is not None:
                axis.plot([x + 0.15] * 2, [row[7], row[8]], color="0.5", linewidth=4, alpha=0.6, label="the paper")
        axis.set_xticks(place, [f"{row[2]:,}" for row in here])
        axis.set(title=name, xlabel="worlds")
        axis.set_ylim(0)
        labels = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        axis.legend(labels.values(), labels.keys(), fontsize=7, frameon=False)
    figure.axes[0].set_ylabel("sum of noise variances")
    figure.suptitle("Appendix B.3: noise over 100 sets of worlds, mutual information 1/2", fontsize=11)
    return figure


if __name__ == "__main__":
    main()
