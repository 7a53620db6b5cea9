"""`X'X` and `X'y`: sums of products, from which whoever receives them fits linear models of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels import offers
from leakcap.kernels.bounded import Bounded, ColumnNames, Declared, Extent, in_half_widths, unit_sums
from leakcap.kernels.contributions import Contributions, adds_up
from leakcap.kernels.moments import grams
from leakcap.kernels.moments.swapped import SwappedGrams
from leakcap.kernels.swapping import Swapper, answers_swaps
from leakcap.stats.cells import numbers
from leakcap.stats.named import SecondAxis, table_form
from leakcap.stats.products import product_rows, split_products, symmetric
from leakcap.stats.settings import takes_rows
from leakcap.worlds import Units, Worlds

__all__ = ["gram"]

MAX_CELLS = 2**28  # numbers that all units bring together
LEAST_WEIGHT = 1e-12  # of a number that does not matter: where bounds lie about 0, sums and the count do not


@dataclass(frozen=True)
class _Form:
    """How many columns and targets there are, and whether each came as a single one without an axis."""

    d: int
    t: int  # 0 without targets
    flat: bool
    flat_target: bool
    # As a table of the library that X came in, with the names of columns and targets; None for arrays.
    square: Callable[[Floats], Any] | None = None
    cross: Callable[[Floats], Any] | None = None

    def made(self, xx: Floats, xy: Floats) -> Any:
        """The answer: matrices, less the axes that the arguments did not have."""
        square = np.asarray(xx[0, 0] if self.flat else xx)
        if self.square is not None:
            square = self.square(square)
        if not self.t:
            return square
        beside = xy[:, 0] if self.flat_target else xy
        beside = np.asarray(beside[0] if self.flat else beside)
        return {"xx": square, "xy": beside if self.cross is None else self.cross(beside)}


def _cells(data: tuple[Any, ...]) -> tuple[Floats, _Form]:
    """Columns and targets side by side."""
    if len(data) > 2:
        raise InputError("gram takes a table X, or X and y")
    parts = [numbers(part) for part in data]
    if len({len(part) for part in parts}) > 1:
        raise InputError("X and y must have equally many rows")
    flat = [part.ndim == 1 for part in parts]
    columns = [part[:, None] if part.ndim == 1 else part for part in parts]
    table = np.hstack(columns)
    if not np.isfinite(table).all():
        raise InputError("sums of products need numbers without missing or infinite values: fill them in, or leave out")
    t = columns[1].shape[1] if len(columns) > 1 else 0
    square = table_form(data[0], SecondAxis("column"))
    cross = table_form(data[0], _targets(data[1], flat[1])) if t else None
    return table, _Form(columns[0].shape[1], t, flat[0], flat[-1], square=square, cross=cross)


def _targets(y: Any, flat: bool) -> SecondAxis | None:
    """Targets, by their names where they have some; None for a single one without an axis."""
    if flat:
        return None
    return SecondAxis("target", tuple(getattr(y, "columns", range(np.shape(y)[1]))))


def _worlds(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats:
    table, form = _cells(data)
    found, d = grams(table, worlds, units), form.d
    parts = [found[:, :d, :d].reshape(worlds.m, -1), found[:, :d, d:].reshape(worlds.m, -1)]
    return np.concatenate(parts, axis=1)


def _brought(data: tuple[Any, ...], units: Units) -> Contributions:
    table, form = _cells(data)
    wanted = form.d * (form.d + 1) // 2 + form.d * form.t
    _refuse_too_many(units.count, wanted)
    each = product_rows(table[:, : form.d], table[:, form.d :])[:, :wanted]
    values = unit_sums(each, units.of_row, units.count)
    return Contributions(values, averaged=False, finish=partial(_made, form=form))


def _made(total: Floats, *, form: _Form) -> Any:
    pairs = form.d * (form.d + 1) // 2
    return form.made(symmetric(total[:pairs]), total[pairs:].reshape(form.d, form.t))


def _bounded(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    table, form = _cells(data)
    cells, (low, high), cut = declared.cut(table, ColumnNames(_names(data, form)))
    middle, half = (low + high) / 2, (high - low) / 2
    z, d = in_half_widths(cells, low, high), form.d
    weights = _weights(middle / half, d)
    _refuse_too_many(units.count, len(weights))
    values = unit_sums(product_rows(z[:, :d], z[:, d:]), units.of_row, units.count)
    extent = Extent.together(np.full(len(weights), float(declared.rows)), weights)
    return Bounded(values, extent, partial(_unscaled, form=form, middle=middle, half=half), cut)


def _unscaled(total: Floats, *, form: _Form, middle: Floats, half: Floats) -> Any:
    """Products in the columns' own units, from those in half-widths about the middle."""
    d, t = form.d, form.t
    parts = split_products(total, d, t)
    place, aim = middle[:d] / half[:d], middle[d:] / half[d:]
    beside = np.outer(place, parts.sums)
    xx = parts.products + beside + beside.T + parts.count * np.outer(place, place)
    xy = parts.cross + np.outer(place, parts.targets) + np.outer(parts.sums, aim) + parts.count * np.outer(place, aim)
    return form.made(xx * np.outer(half[:d], half[:d]), xy * np.outer(half[:d], half[d:]))


def _weights(places: Floats, d: int) -> Floats:
    """By how much an error in each total moves the squares of all entries, in half-widths; `places` of the middles."""
    place, aim = places[:d] ** 2, places[d:] ** 2
    i, j = np.triu_indices(d)
    sums = 2 * (place.sum() - place) + 4 * place + aim.sum()
    count = place.sum() ** 2 + place.sum() * aim.sum()
    parts = [np.where(i == j, 1.0, 2.0), np.ones(d * len(aim)), sums, np.full(len(aim), place.sum()), [count]]
    return np.maximum(np.concatenate(parts), LEAST_WEIGHT)


def _names(data: tuple[Any, ...], form: _Form) -> tuple[str, ...]:
    """Of columns and targets, for bounds by name; none where a table has none."""
    columns = [str(name) for name in getattr(data[0], "columns", [])]
    if form.t:
        own = getattr(data[1], "columns", None)
        columns += [str(getattr(data[1], "name", None) or "y")] if own is None else [str(name) for name in own]
    return tuple(columns)


def _refuse_too_many(units: int, wanted: int) -> None:
    if units * wanted > MAX_CELLS:
        raise InputError(f"{wanted:,} sums are too many for {units:,} units: leave out columns")


def _swapped(data: tuple[Any, ...], units: Units) -> Swapper | None:
    if units.of_row is not None:
        return None
    table, form = _cells(data)
    return SwappedGrams(table[:, : form.d], table[:, form.d :])


@takes_rows()
@answers_swaps(_swapped)
@adds_up(_brought, _bounded, total=True)
@offers(_worlds)
def gram(X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Any:
    """Sums of products of columns, `X'X`, and with a target `X'y`: all that least squares asks of the data.

    A release is on the scale of the whole pool, also where a part of it takes part. For an intercept, give X a column
    of ones. Under a pool cap `bounds` are those of the columns of X and of y: `(low, high)` for all of them, arrays
    with one for each (y last), or by name, y under its own name or "y".

    Args:
        X: numbers, `(rows,)` or `(rows, columns)`.
        y: numbers, `(rows,)` or `(rows, targets)`.

    Returns:
        `X'X`, `(columns, columns)`; with a target `{"xx": X'X, "xy": X'y}`. Of a DataFrame they are tables of the same
        library, with the names of its columns.

    Raises:
        InputError: the rows hold text or dates, missing or infinite values, or X and y differ in length.

    Examples:
        >>> gram([[1, 2], [1, 4]], [3, 5])["xy"]
        array([ 8., 26.])
    """
    table, form = _cells((X,) if y is None else (X, y))
    products = table[:, : form.d].T @ table
    return form.made(products[:, : form.d], products[:, form.d :])
