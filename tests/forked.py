"""What a forked process says: it has a copy of everything, and its end must not be that of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["said_by_a_fork"]


def said_by_a_fork(work: Callable[[], str]) -> str:
    """What `work` returns in a child; of an error that it raises, the kind and the words."""
    told, tells = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(tells, work().encode())
        except BaseException as error:
            os.write(tells, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(tells)
    os.waitpid(child, 0)
    with os.fdopen(told, "rb") as pipe:
        return pipe.read().decode()
