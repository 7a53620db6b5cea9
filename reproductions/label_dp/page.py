"""`python -m reproductions.label_dp.page`: the kept runs as table and picture of docs/reproductions-labels.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproductions.label_dp import tables
from reproductions.label_dp.__main__ import picture
from reproductions.marked import filled_marks

__all__ = ["MEASURED", "PAGE", "filled"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reproductions-labels.md"
MEASURED = Path(__file__).parent / "measured"


def filled(text: str, runs: Sequence[tables.Run]) -> str:
    """The page with the table in short between its marks."""
    return filled_marks(text, lambda _: tables.short(runs))


def main() -> None:
    """Rewrite the page and its picture."""
    runs = tables.read([MEASURED])
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), runs), encoding="utf-8")
    stem = DOCS / "images" / "private-labels"
    picture(runs, stem)
    stem.with_suffix(".svg").unlink()  # the page shows the PNG


if __name__ == "__main__":
    main()
