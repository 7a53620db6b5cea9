"""How certificates are set as text: figures rounded up, headings, paragraphs and lists."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

__all__ = ["NO_BOUND", "WIDTH", "heading", "listed", "most", "percent", "rounded_up", "section", "table_row"]

WIDTH = 96
NO_BOUND = "no bound"


def percent(success: float, digits: int = 2) -> str:
    """A bound in per cent, rounded up."""
    return f"{min(rounded_up(100 * success, digits), 100):.{digits}f} %"


def rounded_up(bound: float, digits: int) -> float:
    """A bound at a few decimals, never below itself."""
    return math.ceil(bound * 10**digits - 1e-9) / 10**digits


def most(success: float) -> str:
    """A bound on success in per cent, rounded up; what may succeed always is not bounded."""
    return NO_BOUND if success >= 1 else percent(success)


def table_row(what: str, before: str, after: str) -> str:
    """A line of the table of attacks."""
    return f"{what:<52}{before:>14}{after:>20}"


def heading(title: str) -> Iterator[str]:
    """A line of its own, underlined."""
    yield title
    yield "-" * WIDTH


def section(title: str, text: str) -> Iterator[str]:
    """A paragraph under a heading."""
    yield from heading(title)
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""


def listed(title: str, items: tuple[str, ...]) -> Iterator[str]:
    """A list under a heading."""
    yield from heading(title)
    for item in items:
        yield from textwrap.wrap(item, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    yield ""
