"""How a function says that it only adds up what every unit brings: then a swap of two people moves it in a known way.

Such functions can be released with `mode="individual"`. As with kernels, the core never asks which function it is, only
whether it says so; and it checks what it was told against the function's own answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from leakcap.errors import InputError, NumericalError, OutputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded, Declared, unit_sums
from leakcap.kernels.moments.sums import masked_sums
from leakcap.worlds import Units, Worlds

__all__ = [
    "Brings",
    "Contributions",
    "Finish",
    "Informed",
    "adds_up",
    "averages",
    "bounded_contributions",
    "contributions",
    "is_a_sum",
    "is_total",
    "sums",
]

Function = TypeVar("Function", bound=Callable[..., Any])
LARGEST = 1e150  # that a unit may bring: squares of it are still numbers
AGREE = 1e-9  # relative to the largest contribution: rounding of sums


@dataclass(frozen=True, eq=False)
class Finish:
    """What is made of noised sums in two steps: numbers, and the table in which people get them."""

    numbers: Callable[[Floats], Floats]
    form: Callable[[Floats], Any]

    def __call__(self, total: Floats) -> Any:
        return self.form(self.numbers(total))


@dataclass(frozen=True, eq=False)
class Informed:
    """What is made of noised sums by whoever knows how large the noise is, which is no secret: floors at its level."""

    make: Callable[[Floats, Floats], Any]  # of sums, and of the deviation of the noise in each of them
    deviations: Floats | None = None

    def __call__(self, total: Floats) -> Any:
        return self.make(total, np.zeros(len(total)) if self.deviations is None else self.deviations)

    def knowing(self, deviations: Floats) -> Informed:
        return replace(self, deviations=deviations)


@dataclass(frozen=True, eq=False)
class Contributions:
    """`values[u]` is what unit `u` brings; the answer in a world is their sum over its units, or their mean."""

    values: Floats  # (n, d)
    averaged: bool
    # The answer, from noised sums on the scale of the whole pool: it is this by definition, also where the function on
    # a part of the pool is no sum.
    finish: Callable[[Floats], Any] | None = None
    cut: int = 0  # entries outside what was declared

    def in_worlds(self, worlds: Worlds) -> Floats:
        """The answers that follow, in all worlds."""
        found = masked_sums(self.values, worlds, Units(worlds.n, worlds.n))
        return found / worlds.sizes()[:, None] if self.averaged else found

    def check(self, outputs: Floats, worlds: Worlds) -> None:
        """Refuse a function whose answers are not what its contributions add up to."""
        if outputs.shape[1] != self.values.shape[1]:
            raise OutputError("the function brings contributions of another length than its answer")
        scale = np.abs(self.values).max() * (1 if self.averaged else worlds.n)
        if not (np.abs(outputs - self.in_worlds(worlds)) <= AGREE * scale).all():
            raise OutputError(
                "the function's answers are not the mean or the sum of what it says every unit brings: correct its "
                "contributions, or use mode='exact', which asks for none"
            )


# From `(data, units)` to what each unit brings.
Brings: TypeAlias = Callable[..., Contributions]


def adds_up(
    brings: Brings, bounded: Callable[..., Bounded] | None = None, *, total: bool = False, needs: str = ""
) -> Callable[[Function], Function]:
    """Mark a function: in every world its answer is the sum, or the mean, of what `brings` gives for each unit.

    `bounded`, of `(data, units, declared)`, gives the sums that make the same answer under a pool cap. A `total` grows
    with the rows: what is found on a part of the pool is released on the scale of all of it. `needs` names an argument
    without which the function is no sum.
    """

    def mark(function: Function) -> Function:
        function.adjacent, function.bounded, function.total = brings, bounded, total  # type: ignore[attr-defined]
        function.needs = needs  # type: ignore[attr-defined]
        return function

    return mark


def contributions(function: Any, data: tuple[Any, ...], units: Units) -> Contributions:
    """What every unit brings to the function's answer; also of `functools.partial`, with what it binds by name."""
    brings, known = _marked(function, "adjacent")
    if not callable(brings):
        raise InputError(
            "design='bits' is for functions that add up what every unit brings, such as leakcap.stats.mean, sum, "
            "count, share, covariance, gram, histogram, categories and group_by, quantile with a grid, or "
            "leakcap.additive(...). For any other, leave the design out, or use leakcap.blocks"
        )
    found = brings(data, units, **known)
    assert isinstance(found, Contributions)
    if found.values.ndim != 2 or len(found.values) != units.count or not np.isfinite(found.values).all():
        raise InputError("the contributions of units must be finite, one row for each unit")
    if np.abs(found.values).max(initial=0.0) > LARGEST:
        raise NumericalError(
            "what people bring is too large to add up safely: rescale the columns, or cut them to bounds of your own "
            "before you hand them over; sums over people take no clip"
        )
    return found


def is_a_sum(function: Any) -> bool:
    """Whether the function says what every unit brings, and has what it needs for that."""
    brings, known = _marked(function, "adjacent")
    needs = _marked(function, "needs")[0]
    return callable(brings) and (not needs or known.get(needs) is not None)


def is_total(function: Any) -> bool:
    """Whether the function's answer grows with the rows it is given."""
    return bool(_marked(function, "total")[0])


def bounded_contributions(function: Any, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    """What every unit brings under a pool cap, within declared bounds."""
    brings, known = _marked(function, "bounded")
    if not callable(brings):
        raise InputError(
            "a pool cap is for functions that add up what every person brings, within bounds: leakcap.stats.mean, sum, "
            "count, share, covariance, gram, histogram, categories and group_by, quantile with a grid, or "
            "leakcap.additive(...). For any other function, leakcap.audit.universe measures how well somebody's "
            "presence shows"
        )
    found = brings(data, units, declared, **known)
    assert isinstance(found, Bounded)
    return found


def _marked(function: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """What a function says of itself, and what `functools.partial` binds by name."""
    known: dict[str, Any] = {}
    while isinstance(function, functools.partial) and not function.args:
        known = {**function.keywords, **known}
        function = function.func
    return getattr(function, name, None), known


def sums(table: Floats, units: Units) -> Contributions:
    """Every unit brings the sum of its rows."""
    if units.of_row is None:
        return Contributions(table, False)
    return Contributions(unit_sums(table, units.of_row, units.count), False)


def averages(table: Floats, units: Units) -> Contributions:
    """Every unit brings the mean of its rows; where some have more rows than others, its part of the pool's mean."""
    total = sums(table, units).values
    rows = 1 if units.of_row is None else np.bincount(units.of_row)
    if np.min(rows) == np.max(rows):
        return Contributions(total / np.max(rows), True)
    centre = table.mean(axis=0)
    apart = sums((table - centre) / len(table), units).values
    return Contributions(apart, averaged=False, finish=functools.partial(np.add, centre))
