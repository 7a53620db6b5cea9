"""How a function says that it only adds up what every unit brings: then a swap of two people moves it in a known way.

Such functions can be released with `mode="individual"`. As with kernels, the core never asks which function it is, only
whether it says so; and it checks what it was told against the function's own answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from leakcap.errors import InputError, OutputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.moments.sums import masked_sums
from leakcap.worlds import Units, Worlds

__all__ = ["Brings", "Contributions", "adds_up", "averages", "contributions", "sums"]

Function = TypeVar("Function", bound=Callable[..., Any])
AGREE = 1e-9  # relative to the largest contribution: rounding of sums


@dataclass(frozen=True, eq=False)
class Contributions:
    """`values[u]` is what unit `u` brings; the answer in a world is their sum over its units, or their mean."""

    values: Floats  # (n, d)
    averaged: bool

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


def adds_up(brings: Brings) -> Callable[[Function], Function]:
    """Mark a function: in every world its answer is the sum, or the mean, of what `brings` gives for each unit."""

    def mark(function: Function) -> Function:
        function.adjacent = brings  # type: ignore[attr-defined]
        return function

    return mark


def contributions(function: Any, data: tuple[Any, ...], units: Units) -> Contributions:
    """What every unit brings to the function's answer; also of `functools.partial`, with what it binds by name."""
    known: dict[str, Any] = {}
    while isinstance(function, functools.partial) and not function.args:
        known = {**function.keywords, **known}
        function = function.func
    brings = getattr(function, "adjacent", None)
    if not callable(brings):
        raise InputError(
            "mode='individual' and design='bits' are for functions that add up what every unit brings, such as "
            "leakcap.stats.mean, sum, histogram and categories. For any other, leave the design out: mode='exact'"
        )
    found = brings(data, units, **known)
    assert isinstance(found, Contributions)
    if found.values.ndim != 2 or len(found.values) != units.count or not np.isfinite(found.values).all():
        raise InputError("the contributions of units must be finite, one row for each unit")
    return found


def sums(table: Floats, units: Units) -> Contributions:
    """Every unit brings the sum of its rows."""
    if units.of_row is None:
        return Contributions(table, False)
    values = np.zeros((units.count, table.shape[1]))
    np.add.at(values, units.of_row, table)
    return Contributions(values, False)


def averages(table: Floats, units: Units) -> Contributions:
    """Every unit brings the mean of its rows; all need equally many, otherwise the mean of rows is another one."""
    total = sums(table, units).values
    rows = 1 if units.of_row is None else np.bincount(units.of_row)
    if np.min(rows) != np.max(rows):
        raise InputError(
            "mode='individual' and design='bits' take means where every unit has equally many rows: otherwise the size "
            "of a world depends on who is in it. Average each unit's rows first, release leakcap.stats.sum, or use "
            "mode='exact' without a design"
        )
    return Contributions(total / np.max(rows), True)
