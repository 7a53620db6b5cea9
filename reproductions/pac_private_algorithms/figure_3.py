"""Figure 3: K-Means, the accuracy of clusters read as classes.

Differs from the paper: the order of centres comes from the pool's own centres, not from the true labels of each world,
which would leave with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from reproductions.pac_private_algorithms.data import dry_bean, iris, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.kmeans import clusters
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    for load in (iris, rice, dry_bean):
        yield partial(lambda load: clusters(load(settings.rows)), load)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("3", "K-Means", panels, given=given)


if __name__ == "__main__":
    main()
