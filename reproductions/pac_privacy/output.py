"""What every example does: read the command line, write rows as a CSV file, and keep those of a full run."""

from __future__ import annotations

import argparse
import csv
import datetime
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from leakcap.ground.cores import threads

__all__ = ["FOLDER", "MEASURED", "RUNS", "Row", "arguments", "bars", "printed", "written"]

FOLDER = Path(__file__).parents[1] / "out" / "pac_privacy"
MEASURED = Path(__file__).parent / "measured"
RUNS = "runs.csv"  # in the same folder: which command made which file, where and when


@dataclass(frozen=True)
class Row:
    """One noise: in which game, by which rule, how much, what the paper prints, and what it bounds."""

    game: str
    rule: str
    nats: float | None
    noise_norm: float
    paper: float | None
    bounds: str


def arguments(about: str, given: Sequence[str] | None = None, **further: str) -> argparse.Namespace:
    """The options that all examples share, and `further` ones by name and help."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="toy size where it takes long; keeps nothing")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the CSV file and the pictures")
    parser.add_argument("--keep", action="store_true", help="store the CSV file in measured/, for the page")
    for name, words in further.items():
        parser.add_argument(f"--{name}", type=Path, default=None, help=words)
    found = parser.parse_args(given)
    if found.keep and (found.quick or any(getattr(found, name) for name in further)):
        parser.error("--keep is for full runs on the usual data")
    found.out.mkdir(parents=True, exist_ok=True)
    return found


def written(part: str, table: Sequence[Any], options: argparse.Namespace, *, machine: str | None = None) -> None:
    """`example_N.csv`; where it is kept, also which command made it, where and when."""
    name = part.replace("example", "example_") + ".csv"
    heads = [field.name for field in fields(table[0])]
    folders = [options.out, MEASURED] if options.keep else [options.out]
    for folder in folders:
        _listed(heads, [astuple(row) for row in table], folder / name)
    if options.keep:
        path = MEASURED / RUNS
        runs = {}
        if path.is_file():
            with path.open(encoding="utf-8") as file:
                runs = {line["file"]: line for line in csv.DictReader(file)}
        runs[name] = {
            "file": name,
            "command": f"python -m reproductions.pac_privacy {part}",
            "machine": machine or f"{threads()} cores",
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        }
        lines = [list(runs[key].values()) for key in sorted(runs)]
        _listed(["file", "command", "machine", "date"], lines, path)


def _listed(heads: Sequence[str], lines: Sequence[Sequence[Any]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads, *lines])


def printed(table: Sequence[Row]) -> None:
    """The rows as lines."""
    wide = max(len(f"{row.game}: {row.rule}") for row in table)
    print(f"{'noise':<{wide}}   nats       norm      paper  bounds")
    for row in table:
        nats = "" if row.nats is None else f"{row.nats:g}"
        paper = "" if row.paper is None else f"{row.paper:g}"
        told = f"{row.game}: {row.rule}"
        print(f"{told:<{wide}}  {nats:>5}  {row.noise_norm:>9.4g}  {paper:>9}  {row.bounds}")


def bars(table: Sequence[Row], title: str, stem: Path) -> None:
    """A bar for each row, and a cross where the paper prints a figure."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # a GPU machine may have none

    from reproductions.pac_private_algorithms.picture import saved  # noqa: PLC0415

    figure = Figure(figsize=(8, 0.34 * len(table) + 1.3), layout="constrained")
    axis = figure.subplots()
    places = range(len(table))
    colours = ["#1d3557" if row.bounds.startswith("certified") else "0.7" for row in table]
    axis.barh(places, [row.noise_norm for row in table], color=colours, height=0.65)
    crosses = [(row.paper, place) for place, row in zip(places, table, strict=True) if row.paper is not None]
    if crosses:
        axis.plot(*zip(*crosses, strict=True), "x", color="#d1495b", label="printed in the paper")
        axis.legend(fontsize=8, loc="lower right")
    axis.set_yticks(places, [f"{row.game}: {row.rule}" for row in table], fontsize=8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="norm of the noise (dark: certified by leakcap)", title=title)
    saved(figure, stem)
