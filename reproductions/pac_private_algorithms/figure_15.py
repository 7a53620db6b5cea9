"""Figure 15: the chance to get at least k of 100 secret bits right without any release, and with one.

    python -m reproductions.pac_private_algorithms.figure_15 [--out FOLDER]

The paper draws the prior for fair, independent bits. Added: the prior for who is in a uniform half (another law, as
memberships are not independent), and what one nat allows from either.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from leakcap import convert

__all__ = ["BITS", "PRINTED", "main", "rows"]

FOLDER = Path(__file__).parents[1] / "out" / "pac_private_algorithms"
BITS, NATS = 100, 1.0
HEADS = ("at least", "prior, fair bits", "prior, a half", "one nat, fair bits", "one nat, a half")
PRINTED = (  # what the paper's text says about fair bits
    ("the prior drops below 5 % for k of 59 and more", lambda found: found[59][0] < 0.05 <= found[58][0]),
    ("at k = 63 the prior is below 1 %", lambda found: found[63][0] < 0.01 <= found[62][0]),
    ("at k = 70 and one nat, at most 13.81 %", lambda found: abs(found[70][2] - 0.1381) < 1e-4),
)


def rows() -> list[tuple[int, float, float, float, float]]:
    """For every k: both priors, and what one nat makes of them."""
    k = np.arange(BITS // 2, BITS + 1)
    fair = np.asarray(convert.bits_right(BITS, k))
    half = np.asarray(convert.bits_right(BITS, k, design="half"))
    after = [np.where(p < 1, convert.posterior(NATS, np.minimum(p, 1 - 1e-12)), 1.0) for p in (fair, half)]
    return [tuple(map(float, line)) for line in zip(k, fair, half, *after, strict=True)]  # type: ignore[misc]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Figure 15: at least k of 100 bits")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the CSV file and the pictures")
    out: Path = parser.parse_args(given).out
    out.mkdir(parents=True, exist_ok=True)
    table = rows()
    with (out / "figure_15.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(HEADS)
        lines.writerows((int(line[0]), *line[1:]) for line in table)
    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    axis = figure.subplots()
    for column, style in enumerate(("-", "--", "-", "--"), start=1):
        colour = "#1d3557" if column < 3 else "#d1495b"
        axis.plot(
            [line[0] for line in table], [line[column] for line in table], style, color=colour, label=HEADS[column]
        )
    axis.axhline(0.05, color="0.6", linewidth=0.8)
    axis.set_xlabel(f"at least k of {BITS} right")
    axis.set_ylabel("probability, at most")
    axis.legend(frameon=False)
    axis.set_title("Figure 15: many bits at once")
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "leakcap"}):
        figure.savefig(out / "figure_15.svg", metadata={"Date": None})
        figure.savefig(out / "figure_15.png", dpi=150)
    found = {int(line[0]): line[1:] for line in table}
    for k in (50, 55, 59, 63, 70, 80):
        print(f"k = {k}: " + ", ".join(f"{head} {100 * x:.4g} %" for head, x in zip(HEADS[1:], found[k], strict=True)))
    for words, holds in PRINTED:
        print(f"the paper: {words}: {'yes' if holds(found) else 'NO'}")


if __name__ == "__main__":
    main()
