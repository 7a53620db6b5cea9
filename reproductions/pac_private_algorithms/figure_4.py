"""Figure 4: K-Means with balanced classes.

Differs from the paper: classes are balanced by weights inside each world, not by rows made up between rows (SMOTE),
which would let one person's row stand in several places.
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
        yield partial(lambda load: clusters(load(settings.rows), balance=True), load)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("4", "K-Means with balanced classes", panels, given=given)


if __name__ == "__main__":
    main()
