"""`python -m reproductions.pac_private_algorithms`: all figures, and an overview of what was written.

Takes hours on two cores; `--quick` takes minutes. Options are those of the figures.
"""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path

from reproductions.pac_private_algorithms.figure import arguments

CHEAP_FIRST = ("appendix_b3", "figure_12", "figure_7", "figure_10", "figure_11")
FIGURES = (
    *CHEAP_FIRST,
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_13",
    "figure_14",
    "figure_8",
    "figure_9",
)


def overview(folder: Path) -> str:
    """A Markdown table for each figure: the means of all series at every budget."""
    parts = ["# PAC-Private Algorithms: what was measured\n"]
    for name in sorted(FIGURES, key=lambda name: (name[0] == "a", int(name.split("_")[1]) if name[0] == "f" else 0)):
        path = folder / f"{name}.csv"
        if not path.is_file():
            parts.append(f"## {name}\n\nnot run\n")
            continue
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        parts.append(f"## {name}\n\n" + (_series(rows) if "series" in rows[0] else _plain(rows[:40])))
    return "\n".join(parts)


def _series(rows: list[dict[str, str]]) -> str:
    """A line for each data set and series, a column for each budget."""
    budgets = sorted({float(row["mutual_information"]) for row in rows})
    lines = ["| data | series | " + " | ".join(f"{budget:.4g}" for budget in budgets) + " |"]
    lines.append("|" + " --- |" * (2 + len(budgets)))
    for data, series in dict.fromkeys((row["data"], row["series"]) for row in rows):
        here = {float(r["mutual_information"]): r for r in rows if (r["data"], r["series"]) == (data, series)}
        cells = []
        for budget in budgets:
            found = here.get(budget)
            sign = "" if not found or found["says"] == "=" else found["says"] + " "
            cells.append(f"{sign}{float(found['mean']):.3g}" if found else "")
        lines.append(f"| {data} | {series} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _plain(rows: list[dict[str, str]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    return "\n".join(lines + ["| " + " | ".join(row.values()) + " |" for row in rows]) + "\n"


def main() -> None:
    options = arguments(str(__doc__))
    for name in FIGURES:
        importlib.import_module(f"reproductions.pac_private_algorithms.{name}").main(sys.argv[1:])
    path = options.out / "overview.md"
    path.write_text(overview(options.out), encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
