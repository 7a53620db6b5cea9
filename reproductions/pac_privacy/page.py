"""Put what was measured into docs/reproductions-pac-privacy.md: a table between each pair of marks.

From the CSV files that are kept in `measured/`, unless `--out` names another folder. A table without a file says so.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from leakcap.certificates.layout import rounded_up
from reproductions.marked import NOT_RUN, filled_marks, grid
from reproductions.pac_privacy.example_4 import PAPER
from reproductions.pac_privacy.output import FOLDER, MEASURED, arguments
from reproductions.pac_privacy.records import store

__all__ = ["PAGE", "filled", "main"]

PAGE = Path(__file__).parents[2] / "docs" / "reproductions-pac-privacy.md"
Lines = Sequence[dict[str, str]]


def filled(text: str, folder: Path = MEASURED) -> str:
    """The page with a table between each pair of marks."""

    def table(name: str) -> str:
        path = folder / f"{name}.csv"
        if not path.is_file():
            return NOT_RUN
        with path.open(encoding="utf-8") as file:
            return TABLES.get(name, _norms)(list(csv.DictReader(file)))

    return filled_marks(text, table)


def _number(text: str, digits: int = 3) -> str:
    return f"{float(text):.{digits}g}" if text else ""


def _norms(lines: Lines) -> str:
    """Games, rules and norms: Examples 2, 3 and 6."""
    rows = [
        [
            line["game"],
            line["rule"],
            _number(line["nats"]),
            _long(line["noise_norm"]),
            _long(line["paper"]),
            line["bounds"],
        ]
        for line in lines
    ]
    return grid(["game", "rule", "nats", "norm of the noise", "the paper", "bounds"], rows)


def _long(text: str) -> str:
    """Four digits, and whole numbers from a thousand on."""
    if not text:
        return ""
    return f"{float(text):,.0f}" if float(text) >= 1000 else f"{float(text):.4g}"


def _example_1(lines: Lines) -> str:
    names = ("theorem_1", "theorem_2", "by_fano")
    rows = [
        [line["n"], *(f"{rounded_up(float(line[name]), 5):.5f}" for name in names), line["printed"]]
        for line in lines
        if int(line["n"]) in (1, 2, 5, 10, 20, 50, 100)
    ]
    return grid(["n", "Theorem 1", "Theorem 2", "by Fano", "the paper"], rows)


def _example_4(lines: Lines) -> str:
    rows = [["", "the paper", f"{PAPER['noise_norm']}", f"{PAPER['before']:.1%}", f"{PAPER['after']:.1%}", "", ""]]
    rows += [
        [
            line["pixels"],
            line["rule"],
            _long(line["noise_norm"]),
            f"{float(line['before']):.1%}",
            f"{float(line['after']):.1%}",
            line["certified"],
            f"{float(line['seconds']):.0f} s" if line.get("seconds") else "",
        ]
        for line in lines
    ]
    return grid(["pixels", "rule", "norm of the noise", "before", "after", "certified", "took"], rows)


def _example_5(lines: Lines) -> str:
    columns = {
        "nats": "nats",
        "all_records_paper": "all records, the paper's rule",
        "all_records_least": "all records, log-det",
        "one_record_least": "one record, least",
        "difference": "first less third",
        "equation_14": "(14), covariance of the mean",
        "equation_14_as_printed": "(14) as printed",
        "known_half": "which half",
        "known_half_optimised": "`optimize_noise`",
        "known_half_lower_bound": "no less than",
        "one_person": "one person",
    }
    return grid(list(columns.values()), [[_number(line[name]) for name in columns] for line in lines])


def _composition(lines: Lines) -> str:
    rows = [
        [
            line["analyst"],
            _number(line["charged_for_each"]),
            _number(line["told_by_each"]),
            f"{float(line['success']):.1%}",
            f"{float(line['charged']):.0f}",
            f"{float(line['told_at_least']):.0f}",
            line["session_answers"],
        ]
        for line in lines
    ]
    heads = [
        "an analyst who",
        "charged for each",
        "told by each",
        "coins right",
        "charged",
        "told, at least",
        "a session",
    ]
    return grid(heads, rows)


def _runs(lines: Lines) -> str:
    return grid(
        ["file", "command", "machine", "date"],
        [[line["file"], f"`{line['command']}`", line["machine"], line["date"]] for line in lines],
    )


TABLES: dict[str, Callable[[Lines], str]] = {
    "example_1": _example_1,
    "example_4": _example_4,
    "example_5": _example_5,
    "composition": _composition,
    "runs": _runs,
}


def main(given: Sequence[str] | None = None) -> None:
    """Rewrite the page; and store the records that docs/benchmarks.md shows, by `python -m benchmarks page`."""
    folder = arguments(str(__doc__), given).out
    PAGE.write_text(
        filled(PAGE.read_text(encoding="utf-8"), MEASURED if folder == FOLDER else folder), encoding="utf-8"
    )
    if folder == FOLDER:
        store()
    print(f"written: {PAGE.name}")


if __name__ == "__main__":
    main()
