"""A warm start: the answer on the whole pool, given to the function in every world.

Iterative fits end sooner when they begin near their answer. The start is the same in every world and knows nothing
of the secret; it is pool-public, and the certificate says so.
"""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

from leakcap.errors import OutputError
from leakcap.simulate.shared_memory import pickled

__all__ = ["Started", "as_start", "takes_start"]


def takes_start(fn: Callable[..., Any], arguments: int) -> bool:
    """Whether a function of so many data arguments asks for a start.

    It does by a parameter named `start` that is None unless given: `def fit(x, y, start=None)` or
    `def fit(x, y, *, start)`. One that has another value already, by default or bound to it, is the function's own.
    """
    if isinstance(fn, functools.partial) and "start" in fn.keywords:
        return False
    try:
        parameters = inspect.signature(fn, follow_wrapped=False).parameters
    except (TypeError, ValueError):  # compiled functions may have none
        return False
    asked = parameters.get("start")
    if asked is None:
        return False
    if asked.kind is asked.KEYWORD_ONLY:
        return asked.default is None or asked.default is asked.empty
    # Where data reach so far, it is an argument for data.
    return (
        asked.kind is asked.POSITIONAL_OR_KEYWORD
        and asked.default is None
        and list(parameters).index("start") >= arguments
    )


class Started:
    """A function with its start; every call gets a copy, so what one world does to it no other world sees."""

    def __init__(self, fn: Callable[..., Any], start: bytes | None = None) -> None:
        self._fn, self._start = fn, start

    def __call__(self, *rows: Any) -> Any:
        return self._fn(*rows, start=None if self._start is None else pickle.loads(self._start))


def as_start(answer: Any) -> bytes:
    """An answer as a start."""
    try:
        return pickled(answer)
    except Exception as error:  # the text may quote the data
        kind = type(error).__name__
    raise OutputError(
        f"the answer on the whole pool cannot be copied for every world ({kind}): return plain values, arrays or an "
        "estimator, or leave the parameter start= out"
    )
