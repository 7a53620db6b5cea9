"""Table 1: mutual information as the best attacker's success, from prior success 50 % and 1 %.

    python -m reproductions.pac_private_algorithms.table_1 [--out FOLDER]

Nothing is random. The paper searched a grid of step 0.001 % from below; ours are bounds, rounded up. Figures agree when
they differ by less than one unit of the last decimal before rounding.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from leakcap import convert

__all__ = ["PRINTED", "main", "rows"]

FOLDER = Path(__file__).parents[1] / "out" / "pac_private_algorithms"
PRIORS = (0.5, 0.01)
PRINTED = {  # in per cent; our copy of the paper has lost the names of the rows of 1 and 4 nats
    Fraction(1, 128): (56.241, 2.477),
    Fraction(1, 64): (58.815, 3.213),
    Fraction(1, 32): (62.434, 4.364),
    Fraction(1, 16): (67.490, 6.200),
    Fraction(1, 8): (74.464, 9.171),
    Fraction(1, 4): (83.789, 14.057),
    Fraction(1, 2): (95.181, 22.177),
    Fraction(1): (100.0, 35.729),
    Fraction(2): (100.0, 58.103),
    Fraction(4): (100.0, 92.582),
}
HEADS = ("mutual information", "prior", "ours (%)", "the paper (%)", "agrees")


def rows() -> list[tuple[str, float, float, float, bool]]:
    """Every entry of the table: ours, the paper's, and whether they are the same up to rounding."""
    found = []
    for nats, printed in PRINTED.items():
        for prior, theirs in zip(PRIORS, printed, strict=True):
            ours = 100 * float(convert.posterior(float(nats), prior))
            found.append((str(nats), prior, math.ceil(ours * 1000 - 1e-9) / 1000, theirs, abs(ours - theirs) < 1e-3))
    return found


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Table 1: mutual information and success")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the CSV file")
    out: Path = parser.parse_args(given).out
    out.mkdir(parents=True, exist_ok=True)
    table = rows()
    with (out / "table_1.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(HEADS)
        lines.writerows(table)
    print(f"{HEADS[0]:>20}{HEADS[1]:>8}{HEADS[2]:>12}{HEADS[3]:>15}  {HEADS[4]}")
    for nats, prior, ours, theirs, agrees in table:
        print(f"{nats:>20}{prior:>8g}{ours:>12.3f}{theirs:>15.3f}  {'yes' if agrees else 'NO'}")


if __name__ == "__main__":
    main()
