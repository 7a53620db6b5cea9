"""Inputs that were given: one of a list is used, by chances that the attacker knows. They are worlds without people.

Chances are whole numbers, so that the secret is drawn by exactly the prior that every figure is computed with.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.worlds.worldset import Worlds

__all__ = ["GIVEN_INPUTS", "MAX_INPUTS", "TOLERANCE", "GivenInputs"]

GIVEN_INPUTS = "given inputs"
MAX_INPUTS = 2**14
TOLERANCE = Fraction(1, 10**6)  # by which the sum of a prior may miss 1; it is then divided by its sum, exactly


@dataclass(frozen=True, eq=False, repr=False)
class GivenInputs(Worlds):
    """`m` possible inputs, with nobody in them; `chances` are whole numbers, None where all are alike."""

    chances: tuple[int, ...] | None = field(default=None)
    items: tuple[Any, ...] = field(default=())  # the inputs themselves; none where a stored plan does without

    @staticmethod
    def of(items: Sequence[Any], prior: npt.ArrayLike | Sequence[Any] | None = None) -> GivenInputs:
        """Inputs under a prior; an InputError that quotes no number where it is none."""
        m = len(items)
        if m < 2:
            raise InputError("there must be two inputs at least: with one there is nothing to hide")
        if m > MAX_INPUTS:
            raise InputError(f"{MAX_INPUTS:,} inputs at most: every one of them is a run of the function")
        chances = None if prior is None else _chances(prior, m)
        alike = chances is not None and min(chances) == max(chances)
        return GivenInputs(
            packed=np.empty((m, 0), dtype=np.uint8),
            n=0,
            share=Fraction(1),
            paired=False,
            design=GIVEN_INPUTS,
            chances=None if alike else chances,
            items=tuple(items),
        )

    def without_items(self) -> GivenInputs:
        """The same for a stored plan, which has no use for the inputs themselves."""
        return replace(self, items=())

    @property
    def proof(self) -> str:
        return "given-inputs"

    @cached_property
    def shares(self) -> Floats | None:  # type: ignore[override]  # of worlds it is None
        """The chance of each input; None where all are alike."""
        if self.chances is None:
            return None
        total = sum(self.chances)
        return np.array([float(Fraction(one, total)) for one in self.chances])

    @property
    def likeliest(self) -> Fraction:
        """The chance of the likeliest input: how often it is named without the release."""
        return Fraction(1, self.m) if self.chances is None else Fraction(max(self.chances), sum(self.chances))

    @property
    def entropy(self) -> float:
        """Of the prior, in nats: all that a release can tell."""
        shares = self.shares
        return math.log(self.m) if shares is None else float(-(shares * np.log(shares)).sum())

    @property
    def numbers(self) -> int:
        """How many equally likely numbers a secret is drawn from."""
        return self.m if self.chances is None else sum(self.chances)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.chances or ()))

    @proves("given-inputs")
    def drawn(self, number: int) -> int:
        """The input that a uniform number from 0 to `numbers - 1` stands for."""
        return number if self.chances is None else bisect_right(self._ends, number)

    def listed(self) -> Any:
        if not self.items:
            raise InputError("a task that is a function of the inputs needs them: call plan() with them again")
        return list(self.items)

    def __repr__(self) -> str:
        return f"GivenInputs(m={self.m}, prior={'uniform' if self.chances is None else 'given'})"


def _chances(prior: Any, m: int) -> tuple[int, ...]:
    """A prior in whole numbers without a common factor."""
    try:
        given = [_fraction(one) for one in prior]
    except (TypeError, ValueError, OverflowError):
        given = []
    if len(given) != m:
        raise InputError(f"prior must hold one probability for each of the {m:,} inputs, or be None: all alike")
    if min(given) <= 0:
        raise InputError("every probability of the prior must be above 0: leave inputs out that cannot be")
    total = sum(given, Fraction(0))
    if abs(total - 1) > TOLERANCE:
        raise InputError("the prior does not add up to 1, within a millionth: divide it by its sum")
    common = math.lcm(*(one.denominator for one in given))
    whole = [one.numerator * (common // one.denominator) for one in given]
    factor = math.gcd(*whole)
    return tuple(one // factor for one in whole)


def _fraction(chance: Any) -> Fraction:
    """A probability as it was written: 0.1 is a tenth. ValueError for what is none."""
    if isinstance(chance, Fraction) or (isinstance(chance, (int, np.integer)) and not isinstance(chance, bool)):
        return Fraction(int(chance)) if not isinstance(chance, Fraction) else chance
    if isinstance(chance, (float, np.floating)) and math.isfinite(chance):
        return Fraction(repr(float(chance)))
    raise ValueError
