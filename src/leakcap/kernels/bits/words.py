"""Masks as words of 64 rows, for the compiled loops on bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_words", "place_of"]

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
