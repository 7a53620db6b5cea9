"""How many cores there are for us, and who may use them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["one_blas_thread", "threads"]


def threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Where our own threads or processes share the work, numerical libraries must not start more."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]
