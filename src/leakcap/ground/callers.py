"""Who called the package: warnings point there, not into our own code."""

from __future__ import annotations

import sys
from types import FrameType

__all__ = ["frames_of_ours"]


def frames_of_ours() -> int:
    """How many callers in a row belong to the package, from that of this function on: a stack level for warnings."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "leakcap":
        frame, depth = frame.f_back, depth + 1
    return depth
