"""Whether a CSV file is a table: readers guess their way through what is not, and take two rows for one."""

from __future__ import annotations

import csv
from pathlib import Path

from leakcap.errors import InputError

__all__ = ["refuse_no_table"]

BETWEEN = ",;\t|"
CURE = "put cells with commas or line ends into quotes, and save the file as CSV once more"


def refuse_no_table(path: Path) -> None:
    """An `InputError` where rows have more or fewer cells than the first, a quote has no end, or names repeat."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline()
        file.seek(0)
        rows = csv.reader(file, delimiter=max(BETWEEN, key=first.count), strict=True)
        line, wrong = 1, False
        try:
            names = next(rows, [])
            for row in rows:
                if row and len(row) != len(names):
                    wrong = True
                    break
                line = rows.line_num + 1
        except csv.Error:
            wrong = True
    if wrong:
        raise InputError(f"the file cannot be read from line {line} on: {CURE}")
    if len({one.strip().lower() for one in names}) < len(names):
        raise InputError("two columns of the file have the same name, large and small letters being equal: rename one")
