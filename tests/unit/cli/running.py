"""Commands in this process."""

from __future__ import annotations

from leakcap.cli import main

__all__ = ["leakcap"]


def leakcap(*arguments: str) -> int:
    """The exit code of a command."""
    try:
        main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0
