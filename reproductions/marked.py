"""Pages of which parts are made from what was measured: between `<!-- name -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["NOT_RUN", "filled_marks", "grid"]

MARKS = re.compile(r"(<!-- (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
NOT_RUN = "*Not run in full yet.*\n"


def filled_marks(text: str, made: Callable[[str], str | None]) -> str:
    """The page with what `made` gives for each name between its marks; None leaves what is there."""

    def between(found: re.Match[str]) -> str:
        new = made(found[2])
        return found[0] if new is None else f"{found[1]}\n{new}\n{found[4]}"

    return MARKS.sub(between, text)


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    every = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in every)
