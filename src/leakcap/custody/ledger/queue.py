"""A queue of writers: a lock on a file, for which the system wakes the next one as soon as it is free.

Waiting by a timer, as SQLite does, leaves a busy database idle most of the time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakcap.custody.locks import held
from leakcap.errors import InputError

__all__ = ["queued"]


@contextmanager
def queued(path: Path) -> Iterator[None]:
    """Alone, among all processes and threads that queue at this file. The lock falls with its process."""
    waiting = True
    try:
        with held(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            waiting = False
            yield
        return
    except OSError as error:
        if not waiting:
            raise
        reason = error.strerror or "no locks"
    # Some network file systems have no locks.
    raise InputError(
        f"cannot write and lock {path} ({reason}), and a ledger needs that: make room, or choose a folder of your own "
        "on a local disk"
    )
