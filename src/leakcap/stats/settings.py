"""Statistics take rows first and settings after them: what to write where rows or settings are forgotten.

In other libraries `quantile(0.5)` makes a function that waits for rows. Here the function itself is handed to `plan`,
with its settings bound by `functools.partial`. Messages show settings of their own as examples, never what was given.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from leakcap.errors import InputError, UnknownArgument

__all__ = ["refuse_unset", "takes_rows"]

Function = TypeVar("Function", bound=Callable[..., Any])

MEANT = {
    "axis": "every column has a number of its own: leave it out",
    "bins": "it takes the edges of the bins, such as edges=[0, 18, 65, 120]. They must not come from the data",
    "ddof": "it divides by the number of rows less one: leave it out",
    "range": "it takes the edges of the bins, such as edges=[0, 18, 65, 120]. They must not come from the data",
    "skipna": "missing values are not skipped: hand over rows.dropna()",
}


@dataclass(frozen=True)
class _Call:
    """How a statistic is called."""

    name: str
    parameters: tuple[str, ...]  # rows first
    needed: tuple[str, ...]  # settings without a default
    example: str  # settings that work

    def refuse(self, arguments: tuple[Any, ...], settings: Mapping[str, Any]) -> None:
        """An error that says what to write, for whatever keeps the call from being made."""
        first = self.parameters[0]
        given = {*self.parameters[: len(arguments)], *settings}
        self.refuse_unknown(settings)
        rows = arguments[0] if arguments else settings.get(first)
        if first not in given or isinstance(rows, (bool, int, float, np.number)):
            example = self.example if given or self.needed else ""
            here = f"lc.stats.{self.name}({', '.join(filter(None, [first, example]))})"
            raise InputError(f"lc.stats.{self.name} takes the rows first: {here}. {self.released(example)}")
        self.refuse_missing(given)

    def refuse_unknown(self, settings: Mapping[str, Any]) -> None:
        """For a setting that it does not have."""
        for name in settings:
            if name not in self.parameters:
                words = MEANT.get(name, f"it takes {' and '.join(self.parameters)}")
                raise UnknownArgument(f"lc.stats.{self.name} has no argument {name!r}: {words}")

    def refuse_missing(self, given: Collection[str]) -> None:
        """For a setting that it cannot do without."""
        missing = [name for name in self.needed if name not in given]
        if missing:
            raise InputError(
                f"lc.stats.{self.name} needs {' and '.join(missing)}, which must not come from the data, such as "
                f"{self.example}. {self.released(self.example)}"
            )

    def released(self, example: str) -> str:
        """How it is handed over."""
        if not example:
            return f"To release it, hand over the function itself: lc.plan(lc.stats.{self.name}, rows, cap=0.55)"
        bound = f"functools.partial(lc.stats.{self.name}, {example})"
        return f"To release it, bind its settings: lc.plan({bound}, rows, cap=0.55)"


def takes_rows(example: str = "") -> Callable[[Function], Function]:
    """Mark a statistic of rows; `example` has settings as they are written."""

    def mark(function: Function) -> Function:
        known = inspect.signature(function).parameters
        needed = tuple(name for name, one in list(known.items())[1:] if one.default is one.empty)
        call = _Call(function.__name__, tuple(known), needed, example)

        @functools.wraps(function)
        def checked(*arguments: Any, **settings: Any) -> Any:
            call.refuse(arguments, settings)
            return function(*arguments, **settings)

        checked.called = call  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return mark


def refuse_unset(function: Any) -> None:
    """Refuse a statistic that lacks settings, or has others than it takes, before anything is run."""
    settings, bound = dict[str, Any](), False
    while isinstance(function, functools.partial):
        settings, bound = {**function.keywords, **settings}, bound or bool(function.args)
        function = function.func
    call = getattr(function, "called", None)
    if not isinstance(call, _Call):
        return
    call.refuse_unknown(settings)
    if bound:
        raise InputError(
            f"functools.partial puts what has no name in the place of the rows. {call.released(call.example)}"
        )
    call.refuse_missing(settings)
