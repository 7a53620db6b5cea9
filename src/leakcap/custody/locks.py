"""Locks on files that fall with whoever took them: also where a process was forked meanwhile.

A child shares the open files of its parent, and with them the locks: it lets go of them at once. What else must not be
shared, such as a connection to a database, is put aside at that moment, too: later would be too late, since threads of
the child may be at it already.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forking", "forks", "held"]

_handles: set[int] = set()


class Forking(Protocol):
    """Something that is not shared with a forked child."""

    def forked(self) -> None:
        """Called in the child, before anything else is."""


_forking: WeakSet[Forking] = WeakSet()


def forks(thing: Forking) -> None:
    """Tell a thing when it finds itself in a child."""
    _forking.add(thing)


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
    for thing in list(_forking):
        thing.forked()


os.register_at_fork(after_in_child=_let_go)
