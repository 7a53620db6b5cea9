"""The kinds of caps: plain data. `leakage/measures.py` knows how each is measured, its maker checks its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = [
    "AnyInference",
    "Cap",
    "Identification",
    "Membership",
    "MutualInformation",
    "NameAMember",
    "PoolMembership",
    "Precision",
    "Task",
    "TruePositiveRate",
]


@dataclass(frozen=True)
class Cap:
    """One limit on what an adversary can do. All caps of a plan hold together."""

    @property
    def limit(self) -> float:
        """The highest value that the capped quantity may take: a probability, or nats for `MutualInformation`."""
        raise NotImplementedError

    def describe(self) -> str:
        """The cap in plain words, as certificates print it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Membership(Cap):
    """What `membership` and `mip` make.

    Attributes:
        success: highest probability of a right guess about one person's participation, above 0.5.
    """

    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        return f"guess whether a person named in advance took part: at most {100 * self.success:.6g} %"


@dataclass(frozen=True)
class NameAMember(Cap):
    """What `name_a_member` makes.

    Attributes:
        success: highest probability that the person whom the attacker names took part.
    """

    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        return f"name any one person who took part: right at most {100 * self.success:.6g} % of the time"


@dataclass(frozen=True)
class Precision(Cap):
    """What `precision` makes.

    Attributes:
        claims: least share of releases in which the attacker makes the claim.
        at_most: highest share of these claims that are right.
    """

    claims: float
    at_most: float

    @property
    def limit(self) -> float:
        return self.at_most

    def describe(self) -> str:
        return (
            f"claim that a given person took part, in at least {100 * self.claims:.6g} % of releases: "
            f"right at most {100 * self.at_most:.6g} % of the time"
        )


@dataclass(frozen=True)
class Identification(Cap):
    """What `identification` makes.

    Attributes:
        success: highest probability of naming the whole secret world.
    """

    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        return f"name the secret world (everybody's participation at once): at most {100 * self.success:.6g} %"


@dataclass(frozen=True)
class AnyInference(Cap):
    """What `any_inference` makes.

    Attributes:
        prior: probability of a right guess without the release.
        success: highest probability of a right guess with the release.
    """

    prior: float
    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        chance = f"{100 * self.prior:.6g} %"
        return f"any guess that succeeds {chance} of the time without the release: at most {100 * self.success:.6g} %"


@dataclass(frozen=True)
class MutualInformation(Cap):
    """What `mutual_information` makes.

    Attributes:
        nats: most information about the secret world, in nats.
    """

    nats: float

    @property
    def limit(self) -> float:
        return self.nats

    def describe(self) -> str:
        return f"information about the secret world: at most {self.nats:.4g} nats"


@dataclass(frozen=True)
class TruePositiveRate(Cap):
    """What `true_positive_rate` makes.

    Attributes:
        fpr: share of the other people whom the attacker accuses.
        at_most: highest share of participants whom the attacker recognises.
    """

    fpr: float
    at_most: float

    @property
    def limit(self) -> float:
        return self.at_most

    def describe(self) -> str:
        alarms = f"{100 * self.fpr:.6g} %"
        return f"recognise a participant while accusing {alarms} of the others: at most {100 * self.at_most:.6g} %"


@dataclass(frozen=True, eq=False)
class Task(Cap):
    """What `task` makes.

    Attributes:
        wins: `(m, guesses)` table of winning probabilities, or a function of the `(m, n)` masks that returns it.
        success: highest probability that the attacker wins.
    """

    wins: npt.NDArray[np.float64] | Callable[[npt.NDArray[np.bool_]], npt.ArrayLike] = field(repr=False)
    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        return f"the custodian's own task: at most {100 * self.success:.6g} %"


@dataclass(frozen=True)
class PoolMembership(Cap):
    """What `pool_membership` makes.

    Attributes:
        success: highest probability of a right guess whether one person is in the data at all, above 0.5.
    """

    success: float

    @property
    def limit(self) -> float:
        return self.success

    def describe(self) -> str:
        return f"guess whether a person is in the data at all: at most {100 * self.success:.6g} %"
