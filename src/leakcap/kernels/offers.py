"""How a function offers a kernel: the core never asks which function it is, only whether it has one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from leakcap.errors import OutputError
from leakcap.ground.arrays import Floats
from leakcap.worlds import Units, Worlds

__all__ = [
    "Costs",
    "Kernel",
    "WeightedKernel",
    "deviation_of",
    "forecast_of",
    "kernel",
    "kernel_of",
    "offers",
    "tolerance_of",
]

Function = TypeVar("Function", bound=Callable[..., Any])
ROUNDING = 1e-9  # relative
DENSE = 2**25  # weights, of all rows in some worlds, that are made at a time


# From `(data, units, worlds)` to all worlds' answers, flattened, as rows; None where it does not serve these data.
Kernel: TypeAlias = Callable[..., Floats | None]


@dataclass(frozen=True)
class Costs:
    """What all worlds cost by a kernel and by the loop over the function; counted, never measured.

    Kernel and loop agree to a tolerance and not to the last digit, so which of them runs must be the same each time
    that a run is made or resumed. A clock could not promise that.
    """

    kernel: float  # nanoseconds of one core
    loop: float
    bytes: int = 0  # that the kernel needs beside the data and the answers

    def kernel_serves(self, memory: int) -> bool:
        """Whether the kernel is not the slower of the two, and fits into memory."""
        return self.kernel <= self.loop and self.bytes <= memory


def offers(
    serves: Kernel,
    tolerance: float = ROUNDING,
    *,
    forecast: Callable[..., Costs] | None = None,
    deviation: Callable[..., float] | None = None,
) -> Callable[[Function], Function]:
    """Mark a function: `serves` gives in all worlds at once what the function gives in each.

    `serves` is a function of `(data, units, worlds)`, or one of weighted rows that `kernel` has marked. Both may differ
    by rounding, or by as much as is stated for what is found step by step. A kernel that has a parameter `memory` is
    given the bytes that it may use.

    `forecast`, of `(data, units, worlds, memory)`, gives the `Costs`; without it the kernel is always taken.
    `deviation`, of `(found, expected, rows)`, says how far two answers for the rows of one world are apart, for
    functions whose answer is not unique; without it all numbers are compared.
    """
    served = getattr(serves, "kernel", serves)

    def mark(function: Function) -> Function:
        function.kernel, function.tolerance = served, tolerance  # type: ignore[attr-defined]
        function.forecast, function.deviation = forecast, deviation  # type: ignore[attr-defined]
        return function

    return mark


def kernel_of(function: Any, device: str | None = None, memory: int | None = None) -> Kernel | None:
    """The kernel that a function offers; of `functools.partial` too, with what it binds by name.

    Kernels that take a `device` are given it; the others stay on the CPU. The same goes for `memory`.
    """
    found = _offered(function, "kernel")
    if found is None:
        return None
    known = inspect.signature(found).parameters
    given = {"device": device, "memory": memory}
    wanted = {name: value for name, value in given.items() if value is not None and name in known}
    return functools.partial(found, **wanted) if wanted else found


def forecast_of(function: Any) -> Callable[..., Costs] | None:
    """What tells the costs of a function's kernel and of its loop, if anything does."""
    return _offered(function, "forecast")


def deviation_of(function: Any) -> Callable[..., float] | None:
    """What tells how far two answers of a function are apart; None where all numbers are compared."""
    return _offered(function, "deviation")


def _offered(function: Any, what: str) -> Callable[..., Any] | None:
    """Something that a function offers, with what a `functools.partial` of it binds by name."""
    if isinstance(function, functools.partial) and not function.args:
        inner = _offered(function.func, what)
        return None if inner is None else functools.partial(inner, **function.keywords)
    found = getattr(function, what, None)
    return found if callable(found) else None


def tolerance_of(function: Any) -> float:
    """How far a function and its kernel may be apart, relative to the largest answer."""
    if isinstance(function, functools.partial):
        return tolerance_of(function.func)
    return float(getattr(function, "tolerance", ROUNDING))


def kernel(function: Callable[..., Any]) -> WeightedKernel:
    """Mark a function that computes all worlds at once from weighted rows.

    The result can be given to `leakcap.plan` like any function of the rows of one world.
    `leakcap.testing.check_kernel` compares it with a plain one.

    Args:
        function: takes the data arguments and `weights`, `(w, n)`: 1 for rows in the world and 0 for others. It returns
            `(w, d)`, a row for each world.

    Returns:
        The marked function. It answers for one world when called with that world's rows.

    Examples:
        >>> @kernel
        ... def mean(table, weights):
        ...     return weights @ table / weights.sum(axis=1, keepdims=True)
        >>> mean(np.array([[1.0], [3.0]]))
        array([2.])
    """
    return WeightedKernel(function)


class WeightedKernel:
    """A user's function of weighted rows."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        functools.update_wrapper(self, function)

    def __call__(self, *rows: Any) -> Floats:
        """The answer on the rows of one world."""
        return self._answers(rows, np.ones((1, len(rows[0]))))[0]

    def kernel(self, data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats:
        """The answers in all worlds, some worlds at a time."""
        step = max(1, DENSE // units.rows)
        tables = []
        for start in range(0, worlds.m, step):
            masks = np.stack([worlds.mask(w) for w in range(start, min(start + step, worlds.m))])
            weights = masks if units.of_row is None else masks[:, units.of_row]
            tables.append(self._answers(data, weights.astype(np.float64)))
        return np.concatenate(tables)

    def _answers(self, data: tuple[Any, ...], weights: Floats) -> Floats:
        found = np.asarray(self.__wrapped__(*data, weights=weights), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(weights):
            raise OutputError(
                f"the kernel must return a row for each of {len(weights)} worlds, not shape {found.shape}"
            )
        return found
