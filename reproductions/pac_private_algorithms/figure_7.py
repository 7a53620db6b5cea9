"""Figure 7: how much of the variance each principal component explains.

The paper publishes these shares as they are. Beside them, a private release of the shares at the membership cap that
mutual information 1/128 stands for: 56.25 %.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

import leakcap as lc
from leakcap import kernels
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import Split, cifar10, dry_bean, rice
from reproductions.pac_private_algorithms.figure import arguments, settings_of
from reproductions.pac_private_algorithms.pca import Frame
from reproductions.pac_private_algorithms.picture import listed, saved
from reproductions.pac_private_algorithms.series import Settings, cap_of

Floats = npt.NDArray[np.float64]
BUDGET = 2.0**-7
TOP = 20  # components that are shown
HEAD = ("figure", "data", "component", "share", "released", "spread", "membership_cap", "certified_membership")


def measured(split: Split, settings: Settings) -> Iterator[tuple[Any, ...]]:
    """A line for each component."""
    frame = Frame.of(split.x, 1)
    shares = frame.variances / frame.variances.sum()
    # Along the pool's own directions a world's variances are sums, and need no eigenvectors.
    basis = frame.directions[:TOP]
    spread = np.concatenate([some @ basis.T for some in np.array_split(split.x - frame.centre, 16)])
    data = np.column_stack([spread**2, ((split.x - frame.centre) ** 2).sum(axis=1, dtype=np.float64)])
    cap = cap_of(BUDGET)
    plan = lc.plan(
        functools.partial(_shares, shown=len(basis)),
        data / frame.variances.sum(),
        cap=lc.membership(cap),
        worlds=settings.worlds,
        seed=settings.seed,
        weights="equal",
        draws=settings.draws,
        pool_public=("Directions along which variances are told, their centre and total: of the whole pool.",),
    )
    drawn: list[Floats] = []

    def keep(value: Any) -> float:
        drawn.append(np.asarray(value))
        return 0.0

    plan.expected(keep, settings.releases, settings.seed)
    noised = np.array(drawn[: settings.releases])
    for i in range(len(basis)):
        certified = plan.certificate.membership_success
        yield "7", split.name, i + 1, shares[i], noised[:, i].mean(), noised[:, i].std(), cap, certified


def _all_shares(data: tuple[Any, ...], units: Units, worlds: Worlds, *, shown: int) -> Floats:
    sums = kernels.masked_sums(data[0], worlds.over_rows(units))
    return np.asarray(sums[:, :shown] / sums[:, shown:])


@kernels.offers(_all_shares)
def _shares(rows: Floats, *, shown: int) -> Floats:
    """Of the total variance of a world, along the first directions."""
    sums = rows.sum(axis=0)
    return np.asarray(sums[:shown] / sums[shown:])


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    options = arguments(str(__doc__), given)
    settings = settings_of(options)
    rows: list[tuple[Any, ...]] = []
    for load in (rice, dry_bean, cifar10)[: 1 if options.quick else None]:
        rows += measured(load(settings.rows), settings)
        print(f"Figure 7, {rows[-1][1]}: the first {TOP} explain {sum(r[3] for r in rows if r[1] == rows[-1][1]):.1%}")
    listed(HEAD, rows, options.out / "figure_7.csv")
    saved(_picture(rows), options.out / "figure_7")


def _picture(rows: Sequence[tuple[Any, ...]]) -> Figure:
    names = list(dict.fromkeys(row[1] for row in rows))
    figure = Figure(figsize=(4.1 * len(names) + 0.4, 3.4), layout="constrained")
    for name, axis in zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True):
        here = [row for row in rows if row[1] == name]
        number = [row[2] for row in here]
        axis.bar(number, [row[3] for row in here], color="0.8", label="as it is")
        axis.errorbar(
            number,
            [row[4] for row in here],
            [2 * row[5] for row in here],
            fmt="o",
            color="#1d3557",
            markersize=3,
            label=f"ours, membership {here[0][6]:.1%}: mean, two deviations",
        )
        axis.set_title(name)
        axis.set_xlabel("principal component")
        axis.legend(fontsize=7, frameon=False)
    figure.axes[0].set_ylabel("share of the variance")
    figure.suptitle("Figure 7: explained variance", fontsize=11)
    return figure


if __name__ == "__main__":
    main()
