"""Example 1: one of n records, each of them one of 100 values, from a release that tells one nat about all of them.

Theorem 1 bounds the success whatever n is; Theorem 2, for independent records and a mechanism that does not care for
their order, by less the more records there are. The paper prints .36 for any n, .17 for n = 10 and .06 for n = 50. The
last is rounded down. The second is no root of the divergence that the theorem names: it is what Fano's inequality gives
in its place (column `by Fano`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from matplotlib.figure import Figure

from leakcap import convert
from reproductions.pac_privacy.output import arguments, written
from reproductions.pac_private_algorithms.picture import saved

__all__ = ["Row", "by_fano", "main", "rows"]

VALUES, NATS = 100, 1.0
SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
PRINTED = {1: 0.36, 10: 0.17, 50: 0.06}


@dataclass(frozen=True)
class Row:
    """One number of records."""

    n: int
    prior: float
    theorem_1: float
    theorem_2: float
    by_fano: float
    printed: float | None


def by_fano(n: int) -> float:
    """The mean over j of `(mi + log 2)/log(1/prior)`, where it is below 1: what the paper's .17 is."""
    chance = [Fraction(math.comb(n, hits) * (VALUES - 1) ** (n - hits), VALUES**n) for hits in range(n + 1)]
    tails = [sum(chance[j:], Fraction(0)) for j in range(1, n + 1)]
    logs = [math.log(tail.numerator) - math.log(tail.denominator) for tail in tails]
    return sum(min(1.0, (NATS + math.log(2)) / -log) if log else 1.0 for log in logs) / n


def rows(sizes: Sequence[int] = SIZES) -> list[Row]:
    """Bounds for each number of records."""
    prior = 1 / VALUES
    first = float(convert.one_record(NATS, [prior] * VALUES))
    return [Row(n, prior, first, float(convert.each_record(NATS, prior, n)), by_fano(n), PRINTED.get(n)) for n in sizes]


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`example_1.csv`, a picture, and a table."""
    options = arguments("Example 1 of PAC Privacy", given)
    table = rows()
    written("example1", table, options)
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes = [row.n for row in table]
    axes.plot(sizes, [row.theorem_1 for row in table], "--", color="0.4", label="Theorem 1, any n")
    axes.plot(sizes, [row.theorem_2 for row in table], "o-", color="#1d3557", label="Theorem 2")
    axes.plot(sizes, [row.by_fano for row in table], ":", color="#d1495b", label="by Fano's inequality")
    printed = [(row.n, row.printed) for row in table if row.printed is not None]
    axes.plot(*zip(*printed, strict=True), "x", color="#d1495b", label="printed in the paper")
    axes.plot(sizes, [row.prior for row in table], "-", color="0.8", label="without the release")
    axes.set(xscale="log", yscale="log", xlabel="records, n", ylabel="success at one record, at most")
    axes.legend(fontsize=8)
    saved(figure, options.out / "example_1")
    print("    n     Theorem 1  Theorem 2    by Fano    printed")
    for row in table:
        told = "" if row.printed is None else f"{row.printed:.2f}"
        ends = [math.ceil(1e5 * bound) / 1e5 for bound in (row.theorem_1, row.theorem_2, row.by_fano)]
        print(f"{row.n:>5}    {ends[0]:>9.5f}  {ends[1]:>9.5f}  {ends[2]:>9.5f}  {told:>9}")
    return table


if __name__ == "__main__":
    main()
