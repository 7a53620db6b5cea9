"""Figure 1: the noise of Proposition 11's example, by DP, by the paper's MIP, and by a first moment.

The paper has two definitions of the example. The text's, `A(D) = 1 / sum of x`, is the one that its proof and its data
set are about, and the one used here. The appendix prints `A(D) = sum of 1/x`, under which that data set moves by less
than 1 whoever is swapped and DP needs next to no noise (column `sensitivity, appendix`).

The pool is the powers of two from 1 to 2^(n-2), and one number that brings the sum of the smallest half close to 0: one
half in C(n, n/2) gives a huge answer, all others an answer of at most 1. Its first moment about 0 is tiny.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from leakcap import convert
from reproductions.membership_inference_privacy.output import arguments, keep
from reproductions.membership_inference_privacy.paper import dp_scale, mip_scale
from reproductions.pac_private_algorithms.picture import listed, saved

__all__ = ["Example", "Row", "best_attack", "main", "rows"]

SIZES = (24, 36, 40, 44, 48)
ENUMERATED = 12  # units, 924 halves: the best attacker is computed there
ETAS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.49)


@dataclass(frozen=True)
class Example:
    """The example with an even number of units."""

    n: int

    @property
    def halves(self) -> int:
        return math.comb(self.n, self.n // 2)

    @property
    def odd_one(self) -> float:
        """The number that makes the sum of the smallest half `halves^-1/2`."""
        return self.halves**-0.5 - (2 ** (self.n // 2 - 1) - 1)

    @property
    def sensitivity(self) -> float:
        """Largest change of `1/sum` between halves that differ in one unit: the rare one, with the largest power in
        the place of the odd number.
        """
        return math.sqrt(self.halves) - 1 / (2 ** (self.n - 2) + 2 ** (self.n // 2 - 1) - 1)

    @property
    def sensitivity_of_appendix(self) -> float:
        """The same of `sum of 1/x`, exactly: two reciprocals are exchanged."""
        reciprocals = [2.0**-i for i in range(self.n - 1)] + [1 / self.odd_one]
        return max(reciprocals) - min(reciprocals)

    @property
    def first_moment(self) -> float:
        """A bound on `E|A(D)|`: the rare half exactly, every other by its largest power of two."""
        m, k = self.n - 1, self.n // 2
        without = sum(Fraction(math.comb(a, k - 1), math.comb(m, k)) / 2**a for a in range(k - 1, m))
        # With the odd one in, the sum is at least half of the largest power, unless it is the rare half.
        beside = sum(Fraction(math.comb(a, k - 2), math.comb(m, k - 1)) / 2 ** (a - 1) for a in range(k - 1, m))
        return float((without + beside) / 2) * (1 + 1e-12) + self.halves**-0.5

    @property
    def deviation(self) -> float:
        """A bound on the standard deviation of `A(D)`: the rare half has a share of 1 in the second moment."""
        m, k = self.n - 1, self.n // 2
        without = sum(Fraction(math.comb(a, k - 1), math.comb(m, k)) / 4**a for a in range(k - 1, m))
        beside = sum(Fraction(math.comb(a, k - 2), math.comb(m, k - 1)) / 4 ** (a - 1) for a in range(k - 1, m))
        return math.sqrt(1 + float((without + beside) / 2)) * (1 + 1e-12)

    def answers(self) -> tuple[np.ndarray, np.ndarray]:
        """All halves, `(halves, n)`, and their answers; for small pools."""
        pool = [2.0**i for i in range(self.n - 1)] + [self.odd_one]
        chosen = list(itertools.combinations(range(self.n), self.n // 2))
        masks = np.zeros((len(chosen), self.n), dtype=bool)
        masks[np.arange(len(chosen))[:, None], chosen] = True
        return masks, np.array([1 / math.fsum(pool[u] for u in half) for half in chosen])


def best_attack(example: Example, scale: float) -> float:
    """Success of the best attacker against the most exposed unit, under Laplace noise of this scale.

    Between neighbouring answers the difference of the two densities is a sum of two exponentials, with one change of
    sign at most: the integral of its size is exact.
    """
    masks, answers = example.answers()
    order = np.argsort(answers)
    signs, ends = np.where(masks[order], 1.0, -1.0), answers[order] / scale  # (halves, n)
    left, right = (
        np.empty_like(signs),
        np.empty_like(signs),
    )  # what comes from the answers on each side, at each of them
    gaps = np.diff(ends)
    left[0], right[-1] = signs[0], signs[-1]
    for i, fall in enumerate(np.exp(-gaps)):
        left[i + 1] = left[i] * fall + signs[i + 1]
    for i in range(len(gaps) - 1, -1, -1):
        right[i] = right[i + 1] * math.exp(-gaps[i]) + signs[i]
    area = np.abs(right[0]) + np.abs(left[-1])  # beyond the outermost answers
    for width, first, last in zip(gaps, left[:-1], right[1:], strict=True):
        with np.errstate(divide="ignore"):
            ratio = np.log(np.abs(first)) - np.log(np.abs(last))
        turn = np.clip((width + np.nan_to_num(ratio, posinf=np.inf, neginf=-np.inf)) / 2, 0, width)
        parts = [_integral(first, last, width, a, b) for a, b in ((0 * turn, turn), (turn, 0 * turn + width))]
        area += np.where(first * last >= 0, np.abs(parts[0] + parts[1]), np.abs(parts[0]) + np.abs(parts[1]))
    return float(0.5 + 0.25 * (area / 2 / (len(answers) / 2)).max())


def _integral(first: np.ndarray, last: np.ndarray, width: float, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Of `first exp(-t) + last exp(-(width - t))`, from start to end."""
    return first * (np.exp(-start) - np.exp(-end)) + last * (np.exp(end - width) - np.exp(start - width))


@dataclass(frozen=True)
class Row:
    """One eta for one size of the pool: scales of Laplace noise."""

    n: int
    eta: float
    dp: float
    paper: float
    ours: float
    sensitivity: float
    sensitivity_of_appendix: float
    first_moment: float


def rows(sizes: Sequence[int] = SIZES, etas: Sequence[float] = ETAS) -> list[Row]:
    """Every point of the figure."""
    found = []
    for n in sizes:
        one = Example(n)
        for eta in etas:
            found.append(
                Row(
                    n,
                    eta,
                    dp=dp_scale(eta, one.sensitivity),
                    paper=mip_scale(eta, 2) * one.deviation,
                    ours=float(convert.scale_for_mip(one.first_moment, eta)),
                    sensitivity=one.sensitivity,
                    sensitivity_of_appendix=one.sensitivity_of_appendix,
                    first_moment=one.first_moment,
                )
            )
    return found


def drawn(table: Sequence[Row]) -> Figure:
    """Noise against eta: DP dotted, the paper's MIP solid, ours dashed."""
    figure = Figure(figsize=(7.4, 4.8), layout="constrained")
    axis = figure.subplots()
    sizes = list(dict.fromkeys(row.n for row in table))
    for shade, n in zip(np.linspace(0.75, 0.2, len(sizes)), sizes, strict=True):
        here = [row for row in table if row.n == n]
        etas = [row.eta for row in here]
        axis.plot(etas, [row.dp for row in here], ":", color=(0.8, shade, shade), label=f"DP, n = {n}")
        axis.plot(etas, [row.ours for row in here], "--", color=(shade, shade, 0.8), label=f"first moment, n = {n}")
    here = [row for row in table if row.n == sizes[-1]]
    axis.plot(
        [row.eta for row in here], [row.paper for row in here], color="0.1", label="the paper's MIP, M = 2, any n"
    )
    axis.set_yscale("log")
    axis.set_xlabel("eta")
    axis.set_ylabel("scale of the Laplace noise")
    axis.set_title("Figure 1: 1 / sum of x, on the pool of Proposition 11", fontsize=11)
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`figure_1.csv`, `.svg` and `.png`; of a small pool also the best attacker against ours."""
    options = arguments("Figure 1: noise of Proposition 11", given)
    table = rows(SIZES[:2], ETAS[::4]) if options.quick else rows()
    listed([field.name for field in fields(Row)], [astuple(row) for row in table], options.out / "figure_1.csv")
    saved(drawn(table), options.out / "figure_1")
    small = Example(8 if options.quick else ENUMERATED)
    attacked = [
        (eta, scale, best_attack(small, scale))
        for eta in ((0.1,) if options.quick else (0.01, 0.1, 0.4))
        for scale in [float(convert.scale_for_mip(small.first_moment, eta))]
    ]
    listed(["eta", "scale", "success of the best attacker"], attacked, options.out / "figure_1_attacked.csv")
    if not options.quick:
        at = {(row.n, row.eta): row for row in table}
        first, last = at[36, 0.01], at[48, 0.1]
        keep(
            "figure1",
            "figure-1",
            claim="Figure 1 (1/sum of x, the text's definition of Proposition 11): scale of the noise",
            asked="MIP below DP from n = 36 on, for eta of at least .01",
            seen=(
                f"n = 36, eta .01: DP {first.dp:.3g}, the paper's MIP {first.paper:.3g}, a first moment "
                f"{first.ours:.3g}; n = 48, eta .1: {last.dp:.3g}, {last.paper:.3g}, {last.ours:.3g}. Over all "
                f"{small.halves} halves of a pool of {small.n}, the best attacker against ours reaches "
                + ", ".join(f"{success:.4f} (claimed {0.5 + eta:g})" for eta, _, success in attacked)
            ),
        )
    return table


if __name__ == "__main__":
    main()
