"""How many cores there are for us."""

from __future__ import annotations

import os

__all__ = ["threads"]


def threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
