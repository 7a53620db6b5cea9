"""Several functions as one: their answers side by side, in one world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakcap.kernels.contributions import is_total

__all__ = ["Stacked", "scale_of"]


@dataclass(frozen=True)
class Stacked:
    """Runs every function on the same rows; the answer is the tuple of theirs."""

    functions: tuple[Callable[..., Any], ...]

    def __call__(self, *rows: Any) -> tuple[Any, ...]:
        return tuple(function(*rows) for function in self.functions)


def scale_of(function: Callable[..., Any], rate: float) -> float | tuple[float, ...]:
    """From answers on a part of the pool to the scale of all of it: sums and counts grow with the rows."""
    if isinstance(function, Stacked):
        return tuple(1 / rate if is_total(one) else 1.0 for one in function.functions)
    return 1 / rate if is_total(function) else 1.0
