"""Locks on files that fall with whoever took them: also where a process was forked meanwhile.

A child shares the open files of its parent, and with them the locks: it lets go of them at once.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["held"]

_handles: set[int] = set()


@contextmanager
def held(path: Path, how: int, mode: int = 0o600) -> Iterator[int]:
    """An open file to take a lock on, which is unlocked and closed at the end; an OSError where it does not open."""
    handle = os.open(path, how | os.O_CLOEXEC, mode)
    _handles.add(handle)
    try:
        yield handle
    finally:
        if handle in _handles:  # otherwise this is a child, in which it is closed
            _handles.discard(handle)
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # to close it is not enough while a child shares it
            os.close(handle)


def _let_go() -> None:
    for handle in _handles:
        with suppress(OSError):
            os.close(handle)  # unlike unlocking, this leaves the parent's lock alone
    _handles.clear()


os.register_at_fork(after_in_child=_let_go)
