"""Figure 14: forests on Dry Bean, naive (three trees of depth 3) and regularised (three of depth 5, p = .05).

Depths and weights are those of the paper's public code; the text does not state them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.data import dry_bean
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    regularised = Trees(3, 5, p=0.05, w1=0.35, w2=0.25 / 0.75, seed=2)
    yield lambda: trees(dry_bean(settings.rows), Trees(3, 3, seed=2), "Dry Bean, naive")
    yield lambda: trees(dry_bean(settings.rows), regularised, "Dry Bean, regularised")


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("14", "forests on Dry Bean", panels, given=given)


if __name__ == "__main__":
    main()
