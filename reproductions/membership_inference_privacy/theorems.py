"""Theorems 5 and 7: an algorithm that is eta-MIP for any eta, and neither DP nor any relative of it.

`A(D)` says whether `D` is one certain half. Over random halves that is almost never so, and nobody learns much; two
halves that differ in one person are told apart with certainty nevertheless. Everything is counted here: all halves of
pools of up to 14, and the formula beyond.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from reproductions.membership_inference_privacy.output import arguments
from reproductions.pac_private_algorithms.picture import listed

__all__ = ["Row", "advantage", "counted", "main", "neighbours_apart", "rows"]

COUNTED, SIZES = 14, (4, 6, 8, 10, 12, 14, 20, 40, 100)


@dataclass(frozen=True)
class Row:
    """One size of the pool."""

    n: int
    eta: float  # the best attacker's success, less 1/2
    counted: bool  # over all halves, or by the formula
    neighbours: float  # total variation between the certain half and one that differs in one person: delta of DP
    renyi: float  # Renyi divergence between them, of any order above 1


def counted(n: int) -> float:
    """The best attacker's advantage against the most exposed person, over all halves."""
    halves = list(itertools.combinations(range(n), n // 2))
    masks = np.zeros((len(halves), n), dtype=bool)
    masks[np.arange(len(halves))[:, None], halves] = True
    says = masks[:, : n // 2].all(axis=1)  # whether it is the certain half
    success = np.zeros(n)
    for answer in (True, False):
        inside = masks[says == answer].sum(axis=0)
        success += np.maximum(inside, (says == answer).sum() - inside)
    return float(success.max() / len(halves) - 0.5)


def advantage(n: int) -> float:
    """In closed form: half the chance that a half with the person in it is the certain one."""
    return 0.5 / math.comb(n - 1, n // 2 - 1)


def neighbours_apart(n: int) -> tuple[float, float]:
    """Total variation and Renyi divergence between the answers on the certain half and on a neighbour of it."""
    certain, other = set(range(n // 2)), {*range(1, n // 2), n // 2}
    assert len(certain ^ other) == 2
    laws = [{float(half == certain): 1.0} for half in (certain, other)]  # deterministic
    apart = 0.5 * sum(abs(laws[0].get(y, 0.0) - laws[1].get(y, 0.0)) for y in (0.0, 1.0))
    missing = any(laws[1].get(y, 0.0) == 0 for y in laws[0])
    return apart, math.inf if missing else 0.0


def rows(sizes: Sequence[int] = SIZES) -> list[Row]:
    """Counted while there are few halves."""
    return [Row(n, counted(n) if n <= COUNTED else advantage(n), n <= COUNTED, *neighbours_apart(n)) for n in sizes]


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`theorems.csv`, and a table."""
    options = arguments("Theorems 5 and 7: MIP without DP", given)
    table = rows(SIZES[:4] if options.quick else SIZES)
    listed([field.name for field in fields(Row)], [astuple(row) for row in table], options.out / "theorems.csv")
    print("    n      eta           delta of any DP    Renyi divergence of neighbours")
    for row in table:
        print(f"{row.n:>5}      {row.eta:<12.4g}  {row.neighbours:>15g}    {row.renyi:>30}")
    return table


if __name__ == "__main__":
    main()
