"""What the printed figures say: the nats behind each, by the paper's own conversion, and what these nats do bound.

The paper turns nats about one member into a failure of positive identification as if a claim "sampled" were a guess
with the prior q. It is not: a release that tells everything about the bit carries no more than the bit's entropy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from leakcap import convert
from leakcap.obfuscation.comparators import entropy_of_bit
from reproductions.learnable_obfuscation.published import POOL, TABLES, Setting

__all__ = ["PrintedMember", "nats_behind", "papers_failure", "printed_members", "right_failure"]


def nats_behind(failure: float, prior: float) -> float:
    """Nats from which the paper's conversion gives this failure: the divergence of the success from the prior."""
    pairs = ((1 - failure, prior), (failure, 1 - prior))
    return sum(p * math.log(p / q) for p, q in pairs if p > 0)


def papers_failure(nats: float, rate: float) -> float:
    """The paper's conversion, which bounds nothing about one member: a guess whose prior is the rate."""
    return 1 - float(convert.posterior(nats, rate))


def right_failure(nats: float, rate: float) -> float:
    """Least share of wrong ones among claims "this row was sampled" that are as frequent as sampled rows are."""
    return 1 - float(convert.precision(nats, rate, rate))


@dataclass(frozen=True)
class PrintedMember:
    """One cell of Table 3 or 5 as it is printed."""

    table: int
    setting: Setting
    noise: float
    failure: float

    @property
    def rate(self) -> float:
        return self.setting[0] / POOL

    @property
    def nats(self) -> float:
        return nats_behind(self.failure, self.rate)

    @property
    def entropy(self) -> float:
        """Of the bit whether the row was sampled: nothing tells more about it."""
        return entropy_of_bit(self.rate)


def printed_members() -> Iterator[PrintedMember]:
    """All 36 cells."""
    for table in (3, 5):
        for setting, row in TABLES[table].items():
            for noise, cell in row.items():
                if cell.failure is not None:
                    yield PrintedMember(table, setting, noise, cell.failure)
