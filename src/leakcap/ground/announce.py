"""A word to whoever watches, before something slow that happens once: compiling. Nobody watches unless they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["compiling", "heard_by"]

_listeners: list[Callable[[float], None]] = []


@contextmanager
def heard_by(listener: Callable[[float], None]) -> Iterator[None]:
    """Inside, the listener is told about how many seconds compiling will take, each time that it begins."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def compiling(seconds: float) -> None:
    """Inner loops are about to be compiled, which takes about so many seconds."""
    for listener in tuple(_listeners):
        listener(seconds)
