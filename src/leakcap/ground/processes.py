"""Which process this is: a forked child has a copy of everything, and may not go on with all of it."""

from __future__ import annotations

import os

from leakcap.errors import LeakcapError

__all__ = ["refuse_copy", "this_process"]

_process = [object()]  # another in every process; numbers of processes come again


def this_process() -> tuple[int, object]:
    """The same as long as this process lasts, and another in its children."""
    return os.getpid(), _process[0]


def refuse_copy(process: tuple[int, object]) -> None:
    """A LeakcapError where something that was begun in a process goes on in its child: it goes on in both."""
    if process != this_process():
        raise LeakcapError(
            "this process was forked off while an answer was being made, and its parent goes on with it: nothing was "
            "answered here. Ask again, and let no function of rows fork"
        )


def _in_a_child() -> None:
    _process[0] = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_child)
