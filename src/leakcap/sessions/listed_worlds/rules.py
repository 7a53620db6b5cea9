"""Other rules for the same sessions: weaker ones, a stricter one, and one that is broken.

They are there to compare with, and for tests. Each spends a budget of its own, or none, in ticks, and is asked like
`Clocks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.sessions.listed_worlds.charges import REFUSED, Ticks, whole_ticks
from leakcap.sessions.listed_worlds.prospects import Prospect

__all__ = [
    "AdditiveRule",
    "AlwaysRule",
    "BrokenRealisedRule",
    "SquaredRule",
    "UnitInformationRule",
    "WorldInformationRule",
    "budget_in_nats",
]

CLOSED = 2.0  # deviations: where `AlwaysRule` has its outer cells begin


def budget_in_nats(success: float) -> float:
    """Information about one fair bit that leaves no guess with more success."""
    return math.log(2) + float(xlogy(success, success) + xlogy(1 - success, 1 - success))


@dataclass(frozen=True)
class _Spending:
    """A rule that adds up an amount for every unit until a budget is spent."""

    success: float
    rows: ClassVar[int] = 1
    leaning: ClassVar[bool] = False

    def budget(self) -> float:
        raise NotImplementedError

    def amounts(self, prospect: Prospect) -> Floats:
        raise NotImplementedError

    def price(self, prospect: Prospect, left: Ticks) -> Ticks:
        share = (self.amounts(prospect) + 16 * prospect.rounding) / self.budget()
        return whole_ticks(np.maximum(share, 0.0), left[0])[None]


class AdditiveRule(_Spending):
    """Adds up by how much each answer raises the best success on average. It holds, and gives few answers."""

    def budget(self) -> float:
        return self.success - 0.5

    def amounts(self, prospect: Prospect) -> Floats:
        return expected_success(prospect) - np.maximum(prospect.members, prospect.others)


class SquaredRule(_Spending):
    """Adds up the variances of each unit's posterior: the square of the advantage is at most their sum."""

    def budget(self) -> float:
        return (self.success - 0.5) ** 2

    def amounts(self, prospect: Prospect) -> Floats:
        cells = prospect.cells[:, None]
        moved = prospect.inside - cells * prospect.members
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(cells > 0, moved**2 / cells, 0.0).sum(axis=0))


class UnitInformationRule(_Spending):
    """Adds up the information of each answer about each unit."""

    def budget(self) -> float:
        return budget_in_nats(self.success)

    def amounts(self, prospect: Prospect) -> Floats:
        pairs = ((prospect.inside, prospect.members), (prospect.outside, prospect.others))
        return np.asarray(sum(_divergence(joint, prospect.cells[:, None] * before) for joint, before in pairs))


class WorldInformationRule(_Spending):
    """Adds up the information of each answer about the whole secret, once for everybody."""

    def budget(self) -> float:
        return budget_in_nats(self.success)

    @proves("log-m")
    def amounts(self, prospect: Prospect) -> Floats:
        """The same amount for all units. Guarantee: over a session they add up to at most `log m` on average."""
        before = prospect.worlds.sum(axis=0)
        nats = _divergence(prospect.worlds, prospect.cells[:, None] * before).sum()
        return np.full(len(prospect.members), nats)


@dataclass(frozen=True)
class AlwaysRule:
    """For every transcript: refuses unless every possible answer leaves everybody between `1 - cap` and `cap`.

    To be asked with cells whose tails begin early (`ListedWorlds(..., reach=CLOSED)`): the outermost answers decide.
    """

    success: float
    rate: float = 0.5
    rows: ClassVar[int] = 1
    leaning: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rate != 0.5:
            raise CapError("the rule for every transcript is for a rate of 1/2: leave rate out")

    @proves("every-transcript")
    def price(self, prospect: Prospect, left: Ticks) -> Ticks:
        """Nothing, or more than there is.

        Guarantee: whatever is drawn, everybody's posterior stays within the cap, also that of a person who is picked
        afterwards; rounded outwards.
        """
        most = self.success / (1 - self.success) * (1 - 4 * prospect.rounding - 1e-15)
        inside, outside = prospect.inside, prospect.outside
        keeps = (inside <= most * outside) & (outside <= most * inside)
        return np.where(keeps.all(axis=0), np.int64(0), REFUSED)[None]


@dataclass(frozen=True)
class BrokenRealisedRule:
    """BROKEN, for tests: answers while the next answer's expected success, from the posterior as it is, is in the cap.

    Whoever was lucky stops, and whoever was not starts again: docs/proofs/realised-rule.md.
    """

    success: float
    rows: ClassVar[int] = 1
    leaning: ClassVar[bool] = False

    @proves("realised-rule")
    def price(self, prospect: Prospect, left: Ticks) -> Ticks:
        """Nothing, or more than there is. It promises nothing."""
        return np.where(expected_success(prospect) <= self.success, np.int64(0), REFUSED)[None]


def expected_success(prospect: Prospect) -> Floats:
    """Of the best guess about each unit after the answer, on average over its cells."""
    return np.asarray(np.maximum(prospect.inside, prospect.outside).sum(axis=0))


def _divergence(joint: Floats, product: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(joint > 0, joint / product, 1.0)
    return np.asarray((joint * np.log(ratio)).sum(axis=0))
