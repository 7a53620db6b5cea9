"""Bins that people can read: as wide as 1, 2 or 5 with noughts, so that each begins at a round number."""

from __future__ import annotations

import math

__all__ = ["bin_width"]


def bin_width(low: float, high: float, bins: int) -> str:
    """A round width, as it is written in a question, that makes about so many bins of a range."""
    raw = (high - low) / bins
    size = 10.0 ** math.floor(math.log10(raw))
    width = next(size * one for one in (1, 2, 5, 10) if size * one >= raw * 0.999)
    return f"{width:g}" if width < 1e15 else f"{width:.0f}"
