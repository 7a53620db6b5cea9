"""Figure 9: more principal components: 6 of 7 (Rice), 8 of 16 (Dry Bean), 3 of 3,072 (CIFAR-10).

The numbers for Rice and Dry Bean are those of the paper's public code; the text does not state them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reproductions.pac_private_algorithms.cifar import pictures
from reproductions.pac_private_algorithms.data import cifar10, dry_bean, rice
from reproductions.pac_private_algorithms.figure import make
from reproductions.pac_private_algorithms.pca import components
from reproductions.pac_private_algorithms.series import Settings, Study


def panels(settings: Settings) -> Iterator[Callable[[], Study]]:
    yield lambda: components(rice(settings.rows), 6)
    yield lambda: components(dry_bean(settings.rows), 8)
    yield lambda: pictures(cifar10(settings.rows), 3)


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    make("9", "more principal components", panels, "restoration error", given)


if __name__ == "__main__":
    main()
