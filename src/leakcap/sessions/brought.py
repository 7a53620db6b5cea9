"""What everybody brings to a question: a sum over people, how far one of them can move it, and what the sums make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.kernels.blocks import InBlocks
from leakcap.kernels.bounded import Bounded, Extent
from leakcap.kernels.contributions import Contributions
from leakcap.noise import OperatingSystem
from leakcap.noise.bounded import charge, least_deviations
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import GRAINS, charges, exact_sums
from leakcap.simulate.silence import unheard

__all__ = [
    "NOBODY",
    "BesidesNobody",
    "Brought",
    "BroughtInBlocks",
    "Length",
    "LikeOther",
    "Limits",
    "OfPool",
    "Sums",
    "Totals",
    "Within",
    "around_pool",
    "within",
]

NOBODY = 2  # people with a row each who are made up
ROUNDING = 1e-12  # relative: what sums of squares lose, with room to spare
# Exact sums in whole numbers of grains, how many of these a step of the answer's grid has, and what is to be added to
# the noised sums.
Totals: TypeAlias = tuple[Ints, Ints | int, Floats | float]


class Limits(Protocol):
    """How far one person can move the sums."""

    def worst(self, deviations: Floats) -> float:
        """Squared distance in noise deviations, at most; rounded up."""
        ...

    def least(self, square: float) -> Floats:
        """Deviations of the least noise for which that is at most `square`."""
        ...


@dataclass(frozen=True, eq=False)
class Within:
    """Declared limits of every number."""

    extent: Extent

    def worst(self, deviations: Floats) -> float:
        return charge(self.extent, deviations)

    def least(self, square: float) -> Floats:
        return least_deviations(self.extent, square)


@dataclass(frozen=True)
class Length:
    """A declared limit of the length of what one person brings."""

    norm: float
    numbers: int

    def worst(self, deviations: Floats) -> float:
        return float((self.norm / deviations.min()) ** 2) * (1 + ROUNDING)

    def least(self, square: float) -> Floats:
        return np.full(self.numbers, self.norm / np.sqrt(square) * (1 + ROUNDING))


@dataclass(frozen=True, eq=False)
class OfPool:
    """What people of this pool really bring: not for those who must not know the pool."""

    values: Floats

    def worst(self, deviations: Floats) -> float:
        return float(((self.values / deviations) ** 2).sum(axis=1).max()) * (1 + ROUNDING)

    def least(self, square: float) -> Floats:
        """Deviations as the sizes of what people bring: the same noise for every number, in its own units."""
        size = np.sqrt((self.values**2).mean(axis=0))
        if not size.any():
            return np.ones(len(size))
        shape = np.where(size > 0, size, size[size > 0].min())
        return shape * np.sqrt(self.worst(shape) / square) * (1 + ROUNDING)


class Sums(Protocol):
    """A question as sums over people; custodian side."""

    @property
    def limits(self) -> Limits:
        """The most that one person moves the sums by."""
        ...

    @property
    def public(self) -> bool:
        """Whether nothing but the sums depends on the data."""
        ...

    @property
    def scale(self) -> Floats | float | None:
        """What a noise of 1 in the answer is in the sums; None where it is no noise of theirs."""
        ...

    @property
    def finish(self) -> Callable[[Floats], Any]:
        """The answer, from noised sums."""
        ...

    @property
    def halving(self) -> Callable[[Floats], Floats] | None:
        """Variance that is due to coins, at most, from released sums; None where nothing is known of it."""
        ...

    @property
    def numbers(self) -> int:
        """How many sums there are."""
        ...

    def factor(self, everybody: bool) -> float:
        """By how much more a person moves the sums than `limits` say."""
        ...

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """What the question costs everybody, in ticks."""
        ...

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        """Deviations, no smaller, for which sums are exact."""
        ...

    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Sums over those who pay and whose coin says so."""
        ...


@dataclass(frozen=True, eq=False)
class Brought:
    """What everybody brings, as a row of numbers each."""

    values: Floats  # (units, d): to sums over everybody
    limits: Limits
    finish: Callable[[Floats], Any]
    centre: Floats | None = None  # the pool's own sums, where coins move the answer around them
    scale: Floats | float | None = 1.0
    halving: Callable[[Floats], Floats] | None = None
    declared: bool = True  # whether values are made of each person's own rows and of declarations alone

    @property
    def public(self) -> bool:
        return self.declared and self.centre is None

    @property
    def numbers(self) -> int:
        return self.values.shape[1]

    def factor(self, everybody: bool) -> float:
        """Where half of all take part, each counts twice."""
        return 1.0 if everybody else 2.0

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return charges(self.values, deviations / self.factor(everybody), clock)

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        factor = self.factor(everybody)
        found = exact_sums(self.values, deviations / factor, pays, coins)
        if self.centre is None:
            return found, GRAINS, 0.0
        # Whoever pays moves the answer up or down by a half of what they bring, about the pool's own.
        return found, GRAINS, self.centre - factor / 2 * self.values[pays].sum(axis=0)


@dataclass(frozen=True, eq=False)
class BroughtInBlocks:
    """Any function in blocks of people: one of them moves the answer of one block, within declared bounds."""

    made: InBlocks
    watched: bool = False  # whether somebody who must not know the coins may see how long an answer takes
    public: bool = True
    halving: None = None

    @property
    def limits(self) -> Limits:
        return Within(self.made.of.extent)

    @property
    def scale(self) -> float:
        return float(self.made.of.blocks)  # the answer is their average

    @property
    def finish(self) -> Callable[[Floats], Any]:
        return self.made.of.finish

    @property
    def numbers(self) -> int:
        return len(self.made.of.extent.limits)

    def factor(self, everybody: bool) -> float:
        return 1.0

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """The same for everybody: what the function makes of one person's rows is not looked at."""
        furthest = self.made.of.extent.limits[None]
        return np.full(self.made.units.count, charges(furthest, deviations, clock)[0])

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return deviations

    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        # A word, a warning or an error that is heard only now would tell about the coins.
        found = unheard(lambda: self._answers(pays & coins, everybody))
        answers = np.zeros((1, self.numbers)) if found is None else found
        blocks = np.ones(len(answers), dtype=bool)
        return exact_sums(answers, deviations, blocks, blocks), GRAINS, 0.0

    def _answers(self, mask: Bools, everybody: bool) -> Floats:
        if everybody or not self.watched:
            return self.made.answers(mask)
        later = OperatingSystem().bits().integers(0, 2, size=self.made.of.blocks, dtype=np.bool_)
        return self.made.answers_beside(mask, later)


class LikeOther(ABC):
    """Sums that are declared as others are, charges and totals apart."""

    @property
    @abstractmethod
    def other(self) -> Sums:
        """Whose declarations these are."""

    @property
    def limits(self) -> Limits:
        return self.other.limits

    @property
    def public(self) -> bool:
        return self.other.public

    @property
    def scale(self) -> Floats | float | None:
        return self.other.scale

    @property
    def finish(self) -> Callable[[Floats], Any]:
        return self.other.finish

    @property
    def halving(self) -> Callable[[Floats], Floats] | None:
        return self.other.halving

    @property
    def numbers(self) -> int:
        return self.other.numbers

    def factor(self, everybody: bool) -> float:
        return self.other.factor(everybody)

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return self.other.rounded(deviations, everybody)

    @abstractmethod
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints: ...

    @abstractmethod
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals: ...


@dataclass(frozen=True, eq=False)
class BesidesNobody(LikeOther):
    """Sums of which the last people are made up, and never take part: there so that there are rows, whoever else is."""

    made: Sums

    @property
    def other(self) -> Sums:
        return self.made

    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        return self.made.charges(deviations, clock, everybody)[:-NOBODY]

    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        nobody = np.zeros(NOBODY, dtype=bool)
        return self.made.totals(deviations, np.append(pays, nobody), np.append(coins, nobody), everybody)


def within(made: Bounded, halving: Callable[[Floats], Floats] | None = None, scale: float | None = 1.0) -> Brought:
    """Sums within declared limits."""
    return Brought(made.values, Within(made.extent), made.finish, halving=halving, scale=scale)


def around_pool(
    brings: Contributions, finish: Callable[[Floats], Any] | None = None, scale: float | None = 1.0
) -> Brought:
    """What coins move, about the mean over people: that is shortest, and the pool is known in this game.

    `finish` makes the answer where the contributions do not say how.
    """
    each = brings.values / len(brings.values) if brings.averaged else brings.values
    values, made = each - each.mean(axis=0), brings.finish or finish
    assert made is not None
    return Brought(values, OfPool(values), made, centre=each.sum(axis=0), scale=scale)
