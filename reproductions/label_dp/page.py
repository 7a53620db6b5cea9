"""`python -m reproductions.label_dp.page`: the kept runs as table and picture of docs/reproductions-labels.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproductions.label_dp import figure1, tables, told
from reproductions.label_dp.__main__ import picture
from reproductions.label_dp.central.told import table
from reproductions.marked import filled_marks

__all__ = ["MEASURED", "PAGE", "filled"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reproductions-labels.md"
MEASURED = Path(__file__).parent / "measured"


def filled(text: str, runs: Sequence[tables.Run]) -> str:
    """The page with its tables between their marks."""
    made = {"short": tables.short, "gaussian": told.gaussian_table, "table5": told.table_5, "curator": curator_table}
    return filled_marks(text, lambda name: made[name](runs))


def curator_table(runs: Sequence[tables.Run]) -> str:
    """Runs with a curator have a folder of their own."""
    return table() + "\n"


def main() -> None:
    """Rewrite the page and its pictures."""
    runs = tables.read([MEASURED])
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), runs), encoding="utf-8")
    stem = DOCS / "images" / "private-labels"
    picture(runs, stem)
    stem.with_suffix(".svg").unlink()  # the page shows the PNG
    figure1.draw([run for run in runs if run.recipe.canaries], DOCS / "images" / "planted-labels.png")


if __name__ == "__main__":
    main()
