"""Compiled functions: numba's, without the interpreter's lock, kept on disk where some folder can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(fastmath: set[str]) -> Callable[[Any], Any]:
    """A decorator; `fastmath` names what the compiler may assume about numbers."""

    def compile_one(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, fastmath=fastmath)(function)
        except RuntimeError:  # no folder to keep the machine code in: compile again in every process
            return njit(nogil=True, fastmath=fastmath)(function)

    return compile_one
