"""Figure 10: naive forests: Iris one tree, Rice three trees, depth 3.

The features of each level are those that the seed of the paper's public code draws, and each tree has one vote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.data import iris, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    yield lambda: trees(iris(settings.rows), Trees(1, 3, features=((0, 2, 1),), votes=True))
    drawn = ((4, 2, 0), (5, 4, 3), (5, 1, 3))
    yield lambda: trees(rice(settings.rows), Trees(3, 3, features=drawn, votes=True))


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("10", "naive forests", panels, given=given)


if __name__ == "__main__":
    main()
