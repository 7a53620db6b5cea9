"""Put what was measured into docs/reproductions-learnable-obfuscation.md, and draw its two pictures.

From the records in `measured/`, unless `--out` names another folder. What has no record is left empty and listed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reproductions.learnable_obfuscation import beside, figure_1, figure_2, told
from reproductions.learnable_obfuscation.cells import MEASURED
from reproductions.learnable_obfuscation.figures import figure_1_table, figure_2_table
from reproductions.learnable_obfuscation.told import Measured
from reproductions.marked import filled_marks

__all__ = ["PAGE", "PICTURES", "filled", "main"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reproductions-learnable-obfuscation.md"
PICTURES = {figure_1.FILE: "obfuscation-figure-1.svg", figure_2.FILE: "obfuscation-figure-2.svg"}
PARTS: dict[str, Callable[[Measured], str]] = {
    "missing": told.missing,
    "trials": told.trials,
    "figure_1": figure_1_table,
    "figure_2": figure_2_table,
    "accuracy": partial(told.accuracy, first=1, second=3),
    "unencoded": told.unencoded,
    "accuracy_public": partial(told.accuracy, first=2, second=5),
    "shared_out": told.shared_out,
    "table_1": partial(told.reconstruction, table=1),
    "table_2": partial(told.reconstruction, table=2),
    "printed": lambda _: told.printed_figures(),
    "table_3": partial(told.one_member, table=3),
    "table_5": partial(told.one_member, table=5),
    "table_4": told.attacked,
    "attacked_words": told.attacked_words,
    "attacked_again": told.attacked_again,
    "comparators": beside.comparators,
    "without_a_mask": beside.without_a_mask,
    "larger_mixes": beside.larger_mixes,
    "learnable": beside.learnable,
    "learnable_words": beside.learnable_words,
    "mask": beside.mask_itself,
}


def filled(text: str, folder: Path = MEASURED) -> str:
    """The page with a table, or a finding in words, between each pair of marks."""
    records = Measured(folder)
    return filled_marks(text, lambda name: PARTS[name](records))


def main(given: Sequence[str] | None = None) -> None:
    """Rewrite the page and its pictures; and store the records that docs/benchmarks.md shows."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, default=MEASURED, help="folder of the records")
    folder = parser.parse_args(given).out
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), folder), encoding="utf-8")
    from reproductions.learnable_obfuscation import pictures  # noqa: PLC0415  # matplotlib is not needed for the text

    for name, draw in ((figure_1.FILE, pictures.figure_one), (figure_2.FILE, pictures.figure_two)):
        if (folder / name).is_file():
            pictures.save_svg(draw(folder), DOCS / "images" / PICTURES[name])
    if folder == MEASURED:
        from reproductions.learnable_obfuscation.records import store  # noqa: PLC0415  # benchmarks are not always there

        store()
    print(f"written: {PAGE.name}")
