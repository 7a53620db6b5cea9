"""Masks as words of 64 rows, for the compiled loops on bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_words", "picked", "place_of", "turned"]

Words = npt.NDArray[np.uint64]


def as_words(packed: npt.NDArray[np.uint8]) -> Words:
    """`(worlds, words)` of masks, with empty worlds up to a multiple of eight.

    Masks keep the first row of a byte in its highest bit, and words count bits from the lowest: `place_of` says where
    a row is.
    """
    m, width = packed.shape
    padded = np.zeros((-(-m // 8) * 8, -(-width // 8) * 8), dtype=np.uint8)
    padded[:m, :width] = packed
    return padded.view(np.uint64)


def place_of(row: Any) -> Any:
    """The bit of a row, and the row of a bit."""
    return row ^ 7


def turned(place: Any) -> Any:
    """Where a place is once eight worlds lie side by side: the compiled `turned_place`, of arrays."""
    return place & ~63 | (place & 7) << 3 | place >> 3 & 7


def picked(packed: npt.NDArray[np.uint8], units: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    """The bits of every world at some units, in their order, packed as masks are."""
    from leakcap.kernels.bits._loops import gather_bits

    words = -(-packed.shape[1] // 8)
    at = np.full(-(-len(units) // 64) * 64, 64 * words, dtype=np.uint32)  # where no bit is set
    at[place_of(np.arange(len(units)))] = turned(place_of(units))
    found = np.empty((len(packed), -(-len(units) // 8)), dtype=np.uint8)
    own = np.empty((8, len(at) // 64), dtype=np.uint64)
    for world in range(0, len(packed), 8):  # eight at a time: no second list of all of them
        some = packed[world : world + 8]
        gather_bits(as_words(some), at, own)
        found[world : world + 8] = own.view(np.uint8)[: len(some), : found.shape[1]]
    return found
