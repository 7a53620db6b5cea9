"""Figure 14: forests on Dry Bean, naive and regularised (p = .01), three trees of depth 4.

The weights are those in the title that the public code's earlier notebook gives the figure, (p, w1, w2) = (.01, .25,
.4), the features those that its seed draws; each tree has one vote. The depth is stated nowhere: with 3 the naive
forest is right about 72.6 % of beans, with 4 about 84.4 %, where the paper has 82 % and that notebook 83.6 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.data import dry_bean
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    drawn = ((7, 3, 12, 10), (13, 9, 12, 10), (15, 10, 7, 11))
    naive = Trees(3, 4, features=drawn, votes=True)
    regularised = Trees(3, 4, p=0.01, w1=0.25, w2=0.4 / 0.6, features=drawn, relative=True, votes=True)
    yield lambda: trees(dry_bean(settings.rows), naive, "Dry Bean, naive")
    yield lambda: trees(dry_bean(settings.rows), regularised, "Dry Bean, regularised")


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("14", "forests on Dry Bean", panels, given=given)


if __name__ == "__main__":
    main()
