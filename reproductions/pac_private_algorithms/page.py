"""`python -m reproductions.pac_private_algorithms.page`: put what was measured into docs/reproductions.md.

The page holds a pair of marks for each figure; what is between them is made from the CSV file of that figure, of those
that are kept in `measured/` unless `--out` names another folder. Tables without a kept file stay as they are.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from reproductions.marked import NOT_RUN, filled_marks, grid
from reproductions.pac_private_algorithms.figure import FOLDER, arguments
from reproductions.pac_private_algorithms.paper import SPREADS
from reproductions.pac_private_algorithms.series import SERIES
from reproductions.pac_private_algorithms.words import told

__all__ = ["MEASURED", "PAGE", "filled"]

MEASURED = Path(__file__).parent / "measured"
PAGE = Path(__file__).parents[2] / "docs" / "reproductions.md"
BUDGETS = {"1/128": 2**-7, "1/32": 2**-5, "1/8": 2**-3, "1/2": 2**-1, "2": 2.0, "4": 4.0}
THREE, PICTURES = ("Iris", "Rice", "Dry Bean"), ("Rice", "Dry Bean", "CIFAR-10")
PANELS = {
    **dict.fromkeys(("figure_3", "figure_4", "figure_5", "figure_6"), THREE),
    **dict.fromkeys(("figure_7", "figure_8", "figure_9"), PICTURES),
    **dict.fromkeys(("figure_10", "figure_11"), THREE[:2]),
    "figure_14": ("Dry Bean, naive", "Dry Bean, regularised"),
}
ERRORS = ("figure_8", "figure_9")
Lines = Sequence[dict[str, str]]


def filled(text: str, folder: Path, keep: bool = False) -> str:
    """The page with a table between each pair of marks; with `keep`, the one that is there if there is no file."""

    def table(name: str) -> str | None:
        if name == "words":
            head, *lines = told(folder)
            return grid(head, lines) if lines or not keep else None
        path = folder / f"{name}.csv"
        if not path.is_file():
            return None if keep else NOT_RUN
        with path.open(encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        made = _table(name, lines)
        missing = [data for data in PANELS.get(name, ()) if all(line["data"] != data for line in lines)]
        if missing:
            made += f"\n*Not run in full yet: {', '.join(missing)}.*\n"
        return made

    return filled_marks(text, table)


def _table(name: str, lines: Lines) -> str:
    if name == "table_2":
        return _means(lines)
    if name == "baselines":
        return _baselines(lines)
    if name == "figure_13":
        return _attacked(lines)
    if name == "figure_7":
        return _shares(lines)
    if name == "figure_12":
        return _stops(lines)
    return _spreads(lines) if name == "appendix_b3" else _series(lines, name in ERRORS)


def _series(lines: Lines, errors: bool) -> str:
    rows = []
    for data in dict.fromkeys(line["data"] for line in lines):
        for series in SERIES:
            here = {float(li["mutual_information"]): li for li in lines if (li["data"], li["series"]) == (data, series)}
            cells = [float(here[b]["mean"]) if b in here else None for b in BUDGETS.values()]
            if here:
                rows.append([data, series, *("" if c is None else f"{c:.3g}" if errors else f"{c:.1%}" for c in cells)])
    return grid(["data", "series", *BUDGETS], rows)


def _shares(lines: Lines) -> str:
    rows = []
    for data in dict.fromkeys(line["data"] for line in lines):
        here = [line for line in lines if line["data"] == data]
        first = here[0]
        told = f"{float(first['released']):.1%} ± {float(first['spread']):.1%}"
        rows.append([data, f"{float(first['share']):.1%}", f"{sum(float(li['share']) for li in here):.1%}", told])
    return grid(["data", "first component", "first 20, or all", "the first, released at 56.2 %"], rows)


def _means(lines: Lines) -> str:
    rows = []
    for data, method in dict.fromkeys((line["data"], line["method"]) for line in lines):
        cells = []
        for line in (line for line in lines if (line["data"], line["method"]) == (data, method)):
            paper = f" (paper {line['paper_before_noise']}, {line['paper_total']})" if line["paper_total"] else ""
            cells.append(f"{float(line['before_noise']):.2g}, {float(line['total']):.2g}{paper}")
        rows.append([data, method, *cells])
    return grid(["data", "method", "1/4", "1/16", "1/64"], rows)


def _attacked(lines: Lines) -> str:
    rows = []
    for data, series in dict.fromkeys((line["data"], line["series"]) for line in lines):
        here = {float(li["mutual_information"]): li for li in lines if (li["data"], li["series"]) == (data, series)}
        cells = [here.get(budget) for budget in BUDGETS.values()]
        rows.append(
            [data, series]
            + [
                f"{float(c['mean']):.1%}, {float(c['most_exposed']):.1%}" if c and c["most_exposed"] else ""
                for c in cells
            ]
        )
    return grid(["mechanism", "series", *BUDGETS], [row for row in rows if any(row[2:])])


def _baselines(lines: Lines) -> str:
    rows = []
    for line in lines:
        found = f"{float(line['mean']):.1%} ({float(line['least']):.1%} to {float(line['largest']):.1%})"
        said = f"{line['says']} {float(line['stated']):.3g}: {line['place']}" if line["stated"] else ""
        rows.append([line["data"], line["way"], found, said])
    return grid(["data", "forest", f"plain accuracy, {lines[0]['splits']} splits", "stated"], rows)


def _stops(lines: Lines) -> str:
    last = {line["algorithm"]: line for line in lines}
    most = max(int(line["worlds"]) for line in lines)
    rows = [
        [
            name,
            f"{int(line['stopped']):,}" + (" (not yet)" if int(line["stopped"]) >= most else ""),
            f"{float(line['variances_off_by']):.0%}",
        ]
        for name, line in last.items()
    ]
    return grid(["algorithm", "worlds at the stop", f"a variance is off by (against {most:,} worlds)"], rows)


def _spreads(lines: Lines) -> str:
    rows = []
    for line in lines:
        said = next((v for (n, m), v in SPREADS.items() if line["paper_least"] and (n, m) == _key(line)), None)
        ours = f"{float(line['least']):.3g} to {float(line['largest']):.3g}"
        rows.append([line["algorithm"], f"{int(line['worlds']):,}", ours, f"{said[0]} to {said[1]}" if said else ""])
    return grid(["algorithm", "worlds", "least to largest of 100", "the paper"], rows)


def _key(line: dict[str, str]) -> tuple[str, int]:
    return line["algorithm"].split(",")[0], int(line["worlds"])


def main() -> None:
    """Rewrite the page."""
    given = arguments(str(__doc__)).out
    folder = MEASURED if given == FOLDER else given
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), folder, keep=folder == MEASURED), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
