"""Figure 6: linear support vector machines with strong regularisation, C = .05 (Iris, Rice) and .005 (Dry Bean)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from reproductions.pac_private_algorithms.data import dry_bean, iris, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.series import Settings, Study
from reproductions.pac_private_algorithms.svm import machine


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    for load, C in ((iris, 0.05), (rice, 0.05), (dry_bean, 0.005)):
        yield partial(lambda load, C: machine(load(settings.rows), C=C), load, C)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("6", "linear SVM, C = .05 (Dry Bean .005)", panels, given=given)


if __name__ == "__main__":
    main()
