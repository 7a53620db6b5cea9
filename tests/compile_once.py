"""Processes that test beside each other compile each loop once: the second one waits, and reads it from the disk.

Numba keeps machine code on the disk but takes no lock while it compiles: on a new machine two workers that begin with
the same loops would each spend the same half minute on them.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

_this_thread = threading.local()


def take_turns() -> None:
    """From now on this process compiles what is kept on the disk only while no other one does."""
    compile_one = Dispatcher.compile

    def compile_in_turn(dispatcher: Any, signature: Any) -> Any:
        # What a loop calls is compiled within it, and belongs to the same turn.
        if getattr(_this_thread, "has_the_turn", False) or isinstance(dispatcher._cache, NullCache):
            return compile_one(dispatcher, signature)
        with _turn():
            return compile_one(dispatcher, signature)

    Dispatcher.compile = compile_in_turn  # type: ignore[method-assign]


@contextmanager
def _turn() -> Iterator[None]:
    with open(__file__) as lock:  # any file will do: processes of one checkout see the same one
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends when the file is closed, and with the process
        _this_thread.has_the_turn = True
        try:
            yield
        finally:
            _this_thread.has_the_turn = False
