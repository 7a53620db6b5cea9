"""Numbers as people write them in forms."""

from __future__ import annotations

import math

from leakcap.server.refusals import Refusal

__all__ = ["number_in", "share_in"]


def number_in(text: str, what: str) -> float:
    """A number above 0."""
    try:
        found = float(text.replace("%", "").strip())
    except ValueError:
        found = math.nan
    if not 0 < found < 1e15:
        raise Refusal(400, f"Write a number above 0 for {what}.")
    return found


def share_in(text: str, what: str) -> float | None:
    """A share of a clock, written in per cent; None where nothing is written."""
    if not text.strip():
        return None
    found = number_in(text, what) / 100
    if found > 1:
        raise Refusal(400, f"Write at most 100 % for {what}.")
    return found
