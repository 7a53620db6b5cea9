"""Figure 8: one principal component; the restoration error of the test part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.cifar import pictures
from reproductions.pac_private_algorithms.data import cifar10, dry_bean, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.pca import components
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    yield lambda: components(rice(settings.rows), 1)
    yield lambda: components(dry_bean(settings.rows), 1)
    yield lambda: pictures(cifar10(settings.rows), 1)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("8", "one principal component", panels, "restoration error", given)


if __name__ == "__main__":
    main()
