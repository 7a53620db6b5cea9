"""Functions that add up what every person brings: an idea of its own, because so much more can be promised for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.slices import take_alone, take_own
from leakcap.kernels.bounded import Bounded, Declared, Extent, unit_sums
from leakcap.kernels.contributions import Contributions
from leakcap.kernels.moments.sums import masked_sums
from leakcap.worlds import Units, Worlds

__all__ = ["Additive", "additive"]

EACH = ("unit", "row")
AGREE = 1e-9  # relative: rounding
ALONE = 16  # units that are asked about alone
LOOKS_AT_OTHERS = (
    "what a person brings changes with other people's rows: contributions must be made of one person's rows alone. "
    "Scale or centre by numbers that you write down, or use design='worlds', where any function may be released"
)


@dataclass(frozen=True, eq=False)
class Additive:
    """What `additive` makes: a function of rows, which are added up, that says so.

    Attributes:
        contributions: what one person, or every row, brings.
        finish: the answer, from the sums.
        each: whether `contributions` is asked "unit" by unit, or for every "row" at once.
    """

    contributions: Callable[..., Any]
    finish: Callable[[Any], Any] | None = None
    each: str = "unit"

    def __call__(self, *rows: Any) -> Any:
        """The answer on these rows, each of which is a unit of its own."""
        first = rows[0]
        count = int(first.shape[0]) if hasattr(first, "shape") else len(first)
        values, shape = self._asked(rows, Units(count, count))
        return self._finished(values.sum(axis=0), shape)

    def kernel(self, data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
        """The answers in all worlds, flattened; None where they are not numbers or arrays."""
        values, shape = self._asked(data, units)
        answers = [self._finished(total, shape) for total in masked_sums(values, worlds, Units(worlds.n, worlds.n))]
        if not all(isinstance(one, (int, float, np.ndarray, np.floating)) for one in answers):
            return None
        return np.stack([np.asarray(one, dtype=np.float64).ravel() for one in answers])

    def adjacent(self, data: tuple[Any, ...], units: Units) -> Contributions:
        """What every unit brings."""
        values, shape = self._asked(data, units)
        if self.each == "row":
            self._refuse_company(data, units, values)
        return Contributions(values, averaged=False, finish=partial(self._finished, shape=shape))

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """What every unit brings, asked alone, within the declared bounds of what it may bring."""
        if declared.bounds is None or isinstance(declared.bounds, dict):
            raise InputError(
                "a pool cap needs the bounds of what one person brings, such as bounds=(0, 1): a pair of numbers, or "
                "of arrays with one for each number that `contributions` returns"
            )
        values, shape = self._one_by_one(data, units, summed=self.each == "row", taken=take_own)
        inside, (low, high), cut = declared.cut(values, None)
        limits = np.maximum(np.abs(low), np.abs(high))
        return Bounded(inside, Extent.together(limits, limits**-2.0), partial(self._finished, shape=shape), cut)

    def _finished(self, total: Floats, shape: tuple[int, ...]) -> Any:
        form = total.reshape(shape)
        return form if self.finish is None else self.finish(form)

    def _asked(self, data: tuple[Any, ...], units: Units) -> tuple[Floats, tuple[int, ...]]:
        if self.each == "unit":
            return self._one_by_one(data, units)
        found = np.asarray(self.contributions(*data), dtype=np.float64)
        if found.ndim == 0 or len(found) != units.rows:
            raise InputError("contributions of each='row' must return as many entries as there are rows")
        return unit_sums(found.reshape(len(found), -1), units.of_row, units.count), found.shape[1:]

    def _one_by_one(
        self, data: tuple[Any, ...], units: Units, *, summed: bool = False, taken: Callable[..., Any] = take_alone
    ) -> tuple[Floats, tuple[int, ...]]:
        found, shapes = [], set()
        for own in _rows_of_units(units):
            one = np.array(self.contributions(*(taken(part, own) for part in data)), dtype=np.float64)  # may be reused
            one = one.sum(axis=0) if summed else one
            found.append(one.ravel())
            shapes.add(one.shape)
        if len(shapes) != 1:
            raise InputError("contributions must be numbers of one shape for every person, and there must be somebody")
        values = np.stack(found)
        if not values.size:
            raise InputError("contributions must return at least one number of one shape for every person")
        if not np.isfinite(values).all():
            raise InputError("contributions must be finite: give rows that bring nothing a fixed value, such as 0")
        return values, shapes.pop()

    def _refuse_company(self, data: tuple[Any, ...], units: Units, values: Floats) -> None:
        """An error where a unit brings something else when others are away."""
        scale = AGREE * max(1e-300, float(np.abs(values).max()))
        rng = np.random.default_rng(0)
        order = rng.permutation(units.count)
        parts = [order[::2], order[1::2], *rng.integers(units.count, size=(ALONE, 1))]
        for part in (part for part in parts if len(part)):
            mask = np.zeros(units.count, dtype=bool)
            mask[part] = True
            some = units.rows_in(mask)
            found = np.asarray(self.contributions(*(take_alone(one, some) for one in data)), dtype=np.float64)
            own = None if units.of_row is None else units.of_row[some]
            again = unit_sums(found.reshape(len(some), -1), own, units.count)
            if (np.abs((again if own is None else again[mask]) - values[mask]) > scale).any():
                raise InputError(LOOKS_AT_OTHERS)


def additive(
    contributions: Callable[..., Any], finish: Callable[[Any], Any] | None = None, *, each: str = "unit"
) -> Additive:
    """A function that adds up what every person brings, to be released with `leakcap.plan`.

    For such functions the strongest promises are cheap: `design="bits"` caps what is learnt about one person by
    somebody who knows about everybody else, a `pool_membership` cap hides whether a person is in the data at all. Both
    noise the sums; `finish` makes the answer of the noised sums.

    Args:
        contributions: function of the rows of one unit, sliced alike from every data argument, that returns a number
            or an array, of the same shape for every unit. It may use numbers that you write down, and nothing of other
            people's rows.
        finish: function of the sums over all units (of the whole pool's size, also where half of them take part), an
            array of the shape of one contribution; it returns the answer, in any form that `plan` takes. It must look
            at its argument alone. None: the sums themselves.
        each: "unit" calls `contributions` unit by unit. "row" calls it for all rows at once, which is faster: it then
            returns one entry for each row, and a unit brings the sum over its rows. That nobody's entry changes with
            other people's rows is tried out on some of them; under a pool cap units are asked one by one all the same.

    Returns:
        A function for `leakcap.plan`.

    Raises:
        InputError: an argument cannot be used.

    Examples:
        >>> import leakcap as lc
        >>> import numpy as np
        >>> spent = np.random.default_rng(0).gamma(2, 50, size=1000)
        >>> over_100 = additive(lambda rows: float(rows.sum() > 100))
        >>> made = lc.plan(over_100, spent, cap=lc.membership(0.6), design="bits", seed=1)
        >>> made.certificate.whoever_is_known
        True
    """
    checks.choice(EACH, each=each)
    if not callable(contributions) or (finish is not None and not callable(finish)):
        raise InputError("contributions must be a function of one person's rows, and finish one of the sums, or None")
    return Additive(contributions, finish, each)


def _rows_of_units(units: Units) -> list[Ints]:
    if units.of_row is None:
        return list(np.arange(units.count)[:, None])
    order = np.argsort(units.of_row, kind="stable")
    return np.split(order, np.cumsum(np.bincount(units.of_row, minlength=units.count))[:-1])
