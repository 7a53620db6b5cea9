"""How a function says what it answers when one person takes another's place: faster than being run again.

As with kernels, the core never asks which function it is, only whether it says so; and what it is told is compared
with the function's own answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.worlds import Units

__all__ = ["Swapper", "SwapperMaker", "answers_swaps", "swapped_masks", "swapper_of"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Swapper(Protocol):
    """Answers in one world, and in those that differ from it by one swap; custodian side."""

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        """`(1 + p, d)`: the answer in a world; then with `out[i]`, a unit of it, replaced by `into[i]`, which is none.

        A row that is not finite says that there is no answer.
        """
        ...


# From `(data, units)` to a swapper; None where these data are not served.
SwapperMaker: TypeAlias = Callable[..., Swapper | None]


def answers_swaps(maker: SwapperMaker) -> Callable[[Function], Function]:
    """Mark a function: what `maker` makes gives the function's answers after swaps."""

    def mark(function: Function) -> Function:
        function.swapped = maker  # type: ignore[attr-defined]
        return function

    return mark


def swapped_masks(mask: Bools, out: Ints, into: Ints) -> Iterator[Bools]:
    """The worlds that swaps make of a world, one after the other."""
    for gone, come in zip(out.tolist(), into.tolist(), strict=True):
        swapped = mask.copy()
        swapped[gone], swapped[come] = False, True
        yield swapped


def swapper_of(function: Any, data: tuple[Any, ...], units: Units) -> Swapper | None:
    """The swapper that a function offers for these data; also of `functools.partial`, with what it binds by name."""
    known: dict[str, Any] = {}
    while isinstance(function, functools.partial) and not function.args:
        known = {**function.keywords, **known}
        function = function.func
    maker = getattr(function, "swapped", None)
    return maker(data, units, **known) if callable(maker) else None
