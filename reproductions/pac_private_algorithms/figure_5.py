"""Figure 5: linear support vector machines with little regularisation, C = 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from reproductions.pac_private_algorithms.data import dry_bean, iris, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.series import Settings, Study
from reproductions.pac_private_algorithms.svm import machine


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    for load in (iris, rice, dry_bean):
        yield partial(lambda load: machine(load(settings.rows), C=1.0), load)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("5", "linear SVM, C = 1", panels, given=given)


if __name__ == "__main__":
    main()
