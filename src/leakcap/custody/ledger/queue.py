"""A queue of writers: a lock on a file, for which the system wakes the next one as soon as it is free.

Waiting by a timer, as SQLite does, leaves a busy database idle most of the time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakcap.errors import InputError

__all__ = ["queued"]


@contextmanager
def queued(path: Path) -> Iterator[None]:
    """Alone, among all processes and threads that queue at this file. The lock falls with its process."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = error.strerror
        handle = -1
    if handle < 0:
        raise InputError(f"cannot write {path} ({reason}): make room, or choose a folder on a local disk of your own")
    try:
        failed = _locked(handle)
        if failed:  # some network file systems have no locks
            raise InputError(f"cannot lock {path} ({failed}): a ledger needs locks. Choose a folder on a local disk")
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> str:
    """Wait for the lock; in words why there is none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        return error.strerror or "no locks"
    return ""
