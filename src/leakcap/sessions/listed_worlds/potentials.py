"""What a clock measures: the best success of somebody who may still see one more observation.

A unit's clock shows `M`. Its potential `G(q, M)` is what an attacker who believes `q` attains at best after one more
observation, normal with means `sqrt(M)` apart. `G` at the start is the cap; `G(q, 0)` is what is capped. An answer may
not raise its expectation: what an answer tells is paid with `M` (docs/proofs/clock.md).

All caps on one person have the same form: a linear function of `q` less `mistakes`, the weighted probability of a wrong
guess. They differ in the weights of the two mistakes alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import entr, ndtr, ndtri

from leakcap.caps import Cap, Membership, TruePositiveRate
from leakcap.errors import CapError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = [
    "RESERVE",
    "InformationClock",
    "MembershipClock",
    "Potential",
    "RecognitionClock",
    "WeighedClock",
    "mistakes",
    "potentials_of",
]

RESERVE = 1e-7  # of success, kept back from every cap for the rounding errors of a whole session
DOWN = 1 - 4e-12  # relative: what the normal quantile may be off by, with room to spare


class Potential(Protocol):
    """What the clocks of one cap measure."""

    @property
    def start(self) -> float:
        """What every unit's clock shows at first, rounded down."""
        ...

    def value(self, q: npt.ArrayLike, left: npt.ArrayLike) -> Floats:
        """`G(q, M)`, for a belief `q` that the unit takes part and a clock that shows `M = left`."""
        ...


def mistakes(inside: npt.ArrayLike, outside: npt.ArrayLike, left: npt.ArrayLike) -> Floats:
    """The least weighted probability of a mistake of whoever may see one more observation, `sqrt(left)` apart.

    `inside` and `outside` are the weights of missing a member and of accusing somebody else. It is concave, grows with
    both weights and with their common factor, and is accurate to a few units in the last place, also where one of the
    weights is tiny. At `left` 0 it is the smaller weight.
    """
    a, b, m = np.broadcast_arrays(*(np.asarray(given, dtype=np.float64) for given in (inside, outside, left)))
    apart = np.sqrt(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = (np.log(a) - np.log(b)) / apart
        found = a * ndtr(-apart / 2 - turn) + b * ndtr(turn - apart / 2)
    least = np.minimum(a, b)
    return np.where((m > 0) & (least > 0), np.minimum(found, least), least)


@dataclass(frozen=True)
class WeighedClock:
    """A potential made of weighed mistakes.

    Attributes:
        rate: probability that a unit takes part, before any answer.
        start: what the clock shows at first.
    """

    rate: float
    start: float

    @property
    def weights(self) -> tuple[float, float]:
        """Of missing a member, and of accusing somebody else, each per probability of the case."""
        raise NotImplementedError

    @property
    def most(self) -> float:
        """The largest value that the weighed mistakes can take."""
        missing, accusing = self.weights
        return missing * accusing / (missing + accusing)

    def value(self, q: npt.ArrayLike, left: npt.ArrayLike) -> Floats:
        share = np.asarray(q, dtype=np.float64)
        missing, accusing = self.weights
        return self.best(share) - mistakes(missing * share, accusing * (1 - share), left)

    def best(self, q: Floats) -> Floats:
        """What somebody attains who never makes a mistake: linear in `q`, so that no answer changes its mean."""
        raise NotImplementedError


@dataclass(frozen=True)
class MembershipClock(WeighedClock):
    """Success of a guess whether a person takes part; at rates other than 1/2, the balanced success."""

    @property
    def weights(self) -> tuple[float, float]:
        return 0.5 / self.rate, 0.5 / (1 - self.rate)

    def best(self, q: Floats) -> Floats:
        missing, accusing = self.weights
        return missing * q + accusing * (1 - q)

    @classmethod
    @proves("clock")
    def at(cls, success: float, rate: float) -> MembershipClock:
        """For a cap on the success.

        Guarantee: `value(rate, start)` is at most the cap less `RESERVE`.
        """
        if success >= 1:
            raise CapError("a success of 1 caps nothing: choose a cap below 1, such as 0.55")
        apart = 2 * float(ndtri(success - RESERVE))
        if not apart > 0:
            raise CapError("this cap is too close to a coin flip for a session: choose a larger one, such as 0.55")
        return cls(rate, apart**2 * DOWN)


@dataclass(frozen=True)
class RecognitionClock(WeighedClock):
    """`TPR - ratio * FPR` of claims about a person, "took part" or "was left out", at best.

    Attributes:
        ratio: how many true claims one false claim must bring: the likelihood ratio from which on claims are made.
        members: whether the claims are "took part".
    """

    ratio: float
    members: bool

    @property
    def weights(self) -> tuple[float, float]:
        if self.members:
            return 1 / self.rate, self.ratio / (1 - self.rate)
        return self.ratio / self.rate, 1 / (1 - self.rate)

    def best(self, q: Floats) -> Floats:
        return q / self.rate if self.members else (1 - q) / (1 - self.rate)

    @classmethod
    @proves("clock")
    def at(cls, cap: TruePositiveRate, rate: float, members: bool) -> RecognitionClock:
        """For a cap on the true positive rate at a false positive rate.

        Guarantee: `value(rate, start)` is at most `at_most - ratio * fpr`, less what is kept for rounding errors: so
        nobody has a true positive rate above `at_most` at a false positive rate of at most `fpr`.
        """
        if cap.at_most >= 1:
            raise CapError("a true positive rate of 1 caps nothing: choose a smaller at_most")
        rough = cls(rate, 0.0, ratio=_ratio(cap.at_most, cap.fpr), members=members)
        kept = 2.001 * rough.most * RESERVE  # the ratio below is not quite the rough one
        apart = float(ndtri(cap.at_most - kept) - ndtri(cap.fpr))
        if not apart > 0:
            raise CapError("at_most is too close to fpr for a session: choose a larger one")
        return cls(rate, apart**2 * DOWN, ratio=_ratio(cap.at_most - kept, cap.fpr), members=members)


def _ratio(tpr: float, fpr: float) -> float:
    """The likelihood ratio from which on the best test between two normal laws with these rates accuses."""
    apart = float(ndtri(tpr) - ndtri(fpr))
    return math.exp(-apart * float(ndtri(fpr)) - apart**2 / 2)


@dataclass(frozen=True)
class InformationClock:
    """Information about one person's participation, in nats: the clock shows how much of it is left.

    Attributes:
        rate: probability that a unit takes part, before any answer.
        start: most nats about one person.
    """

    rate: float
    start: float

    def value(self, q: npt.ArrayLike, left: npt.ArrayLike) -> Floats:
        share = np.asarray(q, dtype=np.float64)
        before = entr(self.rate) + entr(1 - self.rate)
        return np.asarray(before - entr(share) - entr(1 - share) + np.asarray(left, dtype=np.float64))

    @classmethod
    @proves("clock")
    def at(cls, nats: float, rate: float) -> InformationClock:
        """For a cap on the information about one person, rounded down."""
        return cls(rate, checks.positive(nats=nats) * DOWN)


OTHER_CAPS = (
    "a session on listed worlds caps what is learnt about one person named beforehand, and {kind} is not about that: "
    "use leakcap.membership(...), mip(...) or true_positive_rate(...), or one release, leakcap.plan(...), for this cap"
)
POOL = (
    "a session on listed worlds says who of the pool took part, and nothing about being in the pool: for "
    "leakcap.pool_membership(...) use a session with design='bits' over all rows"
)


def potentials_of(caps: Iterable[Cap], rate: float) -> tuple[WeighedClock, ...]:
    """The clocks that keep all caps together: one for a membership cap, two for a true positive rate.

    A cap on the true positive rate holds for claims "took part" and for claims "was left out", each by a clock of its
    own. Information about one person (`InformationClock`) has no cap that users write; `mip` is a membership cap.

    Raises:
        CapError: a cap is not about one person named beforehand, or cannot be kept.
    """
    checks.fraction(rate=rate)
    found: list[WeighedClock] = []
    for cap in caps:
        if isinstance(cap, Membership):
            found.append(MembershipClock.at(cap.success, rate))
        elif isinstance(cap, TruePositiveRate):
            found += [RecognitionClock.at(cap, rate, members) for members in (True, False)]
        else:
            kind = type(cap).__name__
            raise CapError(POOL if kind == "PoolMembership" else OTHER_CAPS.format(kind=kind))
    if not found:
        raise CapError("a session needs a cap, such as leakcap.membership(0.55)")
    return tuple(found)
