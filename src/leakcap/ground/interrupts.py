"""Ctrl-C of the user's, told apart from a KeyboardInterrupt that somebody's function raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["interrupts_heard"]


@contextmanager
def interrupts_heard(stops: list[bool]) -> Iterator[None]:
    """Notes down every Ctrl-C of the user's; it ends what runs, as always."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts go to the main thread alone
        return

    def heard(number: int, frame: Any) -> None:
        stops.append(True)
        before(number, frame)

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
