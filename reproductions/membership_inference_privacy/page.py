"""Put what was measured into docs/reproductions-mip.md: a table between each pair of marks, from the CSV files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from reproductions.marked import NOT_RUN, filled_marks, grid
from reproductions.membership_inference_privacy.output import arguments

__all__ = ["PAGE", "filled", "main"]

PAGE = Path(__file__).parents[2] / "docs" / "reproductions-mip.md"
Lines = Sequence[dict[str, str]]


def filled(text: str, folder: Path) -> str:
    """The page with a table between each pair of marks."""

    def table(name: str) -> str:
        path = folder / f"{name}.csv"
        if not path.is_file():
            return NOT_RUN
        with path.open(encoding="utf-8") as file:
            return TABLES[name](list(csv.DictReader(file)))

    return filled_marks(text, table)


def _number(text: str, digits: int = 3) -> str:
    return f"{float(text):.{digits}g}"


def _figure_1(lines: Lines) -> str:
    shown = [line for line in lines if float(line["eta"]) in (0.01, 0.1, 0.4)]
    columns = ("dp", "paper", "ours")
    rows = [[line["n"], line["eta"], *(_number(line[name]) for name in columns)] for line in shown]
    return grid(["n", "eta", "DP", "the paper's MIP", "a first moment"], rows)


def _figure_1_attacked(lines: Lines) -> str:
    rows = [
        [line["eta"], f"{0.5 + float(line['eta']):g}", f"{float(line['success of the best attacker']):.4f}"]
        for line in lines
    ]
    return grid(["eta", "claimed", "the best attacker"], rows)


def _figure_2(lines: Lines) -> str:
    etas = list(dict.fromkeys(line["eta"] for line in lines if line["series"] != "no noise"))
    rows = []
    for series in dict.fromkeys(line["series"] for line in lines):
        here = {line["eta"]: line for line in lines if line["series"] == series}
        if series == "no noise":
            (line,) = here.values()
            here = dict.fromkeys(etas, line)
        rows.append([series, *(_number(here[eta]["error"], 2) if eta in here else "" for eta in etas)])
    return grid(["relative error", *(f"eta {eta}" for eta in etas)], rows)


def _attacks(lines: Lines) -> str:
    rows = []
    for line in lines:
        exact = "" if line["exact"] == "nan" else f"{float(line['exact']):.4f}"
        seen = f"{float(line['measured']):.3f} ({float(line['low']):.3f} to {float(line['high']):.3f})"
        rows.append(
            [line["attack"], line["noise"], line["eta"], line["claimed"], seen, exact, f"{int(line['trials']):,}"]
        )
    return grid(["attack", "noise", "eta", "claimed", "success, 99 % interval", "by an integral", "releases"], rows)


def _true_positives(lines: Lines) -> str:
    rows = []
    for line in lines:
        apart = float(line["true_positives"]) - float(line["false_positives"])
        interval = f"{float(line['low']):.3f} to {float(line['high']):.3f}"
        rows.append([line["noise"], line["eta"], f"{2 * float(line['eta']):g}", f"{apart:.3f}", interval])
    return grid(["noise", "eta", "2 eta", "TPR - FPR", "99 % interval"], rows)


def _theorems(lines: Lines) -> str:
    how = {"True": "counted", "False": "formula"}
    rows = [
        [line["n"], _number(line["eta"]), how[line["counted"]], line["neighbours"], line["renyi"]] for line in lines
    ]
    return grid(["n", "eta", "how", "delta of any DP", "Renyi divergence of neighbours"], rows)


TABLES: dict[str, Callable[[Lines], str]] = {
    "figure_1": _figure_1,
    "figure_1_attacked": _figure_1_attacked,
    "figure_2": _figure_2,
    "attacks": _attacks,
    "true_positives": _true_positives,
    "theorems": _theorems,
}


def main(given: Sequence[str] | None = None) -> None:
    """Rewrite the page."""
    folder = arguments(str(__doc__), given).out
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), folder), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
