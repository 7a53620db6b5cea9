"""What is made of sums over people: estimators under `design="bits"` and under pool caps.

With a coin for everybody the pool is known, so that what a person brings is by how much the pool's own fit moves with
the person, to first order. Under a pool cap nothing but declarations may be known: sums of products or squares, about
the middle of declared bounds, in half-widths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded, ColumnNames, Declared, Extent, in_half_widths, unit_sums
from leakcap.kernels.contributions import Contributions, Finish, Informed
from leakcap.stats.declared import APART
from leakcap.stats.products import product_rows, split_products
from leakcap.worlds import Units

__all__ = ["MAX_CELLS", "ByClass", "ClassSums", "Moved", "OfAll", "ProductSums", "Products"]

Moves = Callable[..., Floats]  # from some rows of the data to by how much each of them moves an answer, `(rows, d)`
Named = dict[str, Floats]
MAX_CELLS = 2**28  # numbers that all units bring together


@dataclass(frozen=True, eq=False)
class Moved:
    """An answer on the whole pool, and by how much every row moves it, to first order: for `design="bits"`.

    All of `answer`, and what `moves` holds, are statistics of the whole pool. What rows move adds up to 0 over it.
    """

    answer: Mapping[str, Floats]
    moves: Moves

    def __call__(self, *rows: Any) -> Named:
        """The pool's answer, moved by some rows."""
        return self._formed(self._numbers(self.moves(*rows).sum(axis=0)))

    def adjacent(self, data: tuple[Any, ...], units: Units) -> Contributions:
        """By how much every unit moves the answer."""
        width = sum(part.size for part in self.answer.values())
        if len(data[0]) * width > MAX_CELLS:
            raise InputError(f"{width:,} numbers are too many for {len(data[0]):,} rows: release fewer")
        values = unit_sums(self.moves(*data), units.of_row, units.count)
        return Contributions(values, averaged=False, finish=Finish(self._numbers, self._formed))

    def _numbers(self, total: Floats) -> Floats:
        return np.concatenate([part.ravel() for part in self.answer.values()]) + total

    def _formed(self, numbers: Floats) -> Named:
        ends = np.cumsum([part.size for part in self.answer.values()])[:-1]
        parts = zip(self.answer.items(), np.split(numbers, ends), strict=True)
        return {name: own.reshape(part.shape) for (name, part), own in parts}


@dataclass(frozen=True, eq=False)
class Products:
    """Released moments of columns and targets, in half-widths about the middle of their bounds.

    Counts are at least 2, means within the bounds. `level` is how far noise moves an eigenvalue of `covariance`, about.
    """

    count: float
    mean: Floats  # (d,)
    covariance: Floats  # (d, d); as released: it may have negative eigenvalues
    target_mean: Floats  # (t,)
    cross: Floats  # (d, t): covariances of columns and targets
    middle: Floats  # (d + t,): of the bounds, in their own units
    half: Floats  # (d + t,)
    deviation: float  # of the noise in an entry of `covariance`

    @property
    def level(self) -> float:
        """About the largest eigenvalue of the noise in `covariance`."""
        return 2 * self.deviation * float(np.sqrt(len(self.mean)))


class OfAll:
    """What only a pool cap asks for: sums over everybody, never an answer of some rows."""

    def __call__(self, *rows: Any) -> Any:
        raise InputError("under a pool cap sums over everybody are released: there is no answer of some rows")


@dataclass(frozen=True, eq=False)
class ProductSums(OfAll):
    """Products of all pairs of columns, their sums and the number of rows, under a pool cap.

    Data are a table, or a table and targets `(rows, t)`. `make` is given the released `Products`.
    """

    make: Callable[[Products], Named]
    names: tuple[str, ...]
    target_bounds: Any = None

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """What every unit brings, within the declared bounds."""
        z, (low, high), cut = declared.cut(data[0], ColumnNames(self.names))
        v, d = np.empty((len(z), 0)), z.shape[1]
        if len(data) > 1:
            v, (lowest, highest), outside = Declared(self.target_bounds).cut(data[1], None)
            low, high, cut = np.append(low, lowest), np.append(high, highest), cut + outside
        middle, half = (low + high) / 2, (high - low) / 2
        z, v = in_half_widths(z, low[:d], high[:d]), in_half_widths(v, low[d:], high[d:])
        weights = _weights(d, v.shape[1])
        _refuse_too_many(len(z), len(weights))
        each = product_rows(z, v)
        extent = Extent.together(np.full(len(weights), float(declared.rows)), weights)
        finish = Informed(partial(self._made, middle=middle, half=half, d=d))
        return Bounded(unit_sums(each, units.of_row, units.count), extent, finish, cut)

    def _made(self, total: Floats, deviations: Floats, *, middle: Floats, half: Floats, d: int) -> Named:
        t, pairs = len(half) - d, d * (d + 1) // 2
        count = max(float(total[-1]), 2.0)
        shares = split_products(np.clip(total / count, -1.0, 1.0), d, t)
        mean, target = shares.sums, shares.targets
        noise = deviations / count
        # An entry of the covariance has the noise of its product, and of two means, each times the other mean.
        size = float(np.sqrt((mean**2).mean()))
        own = float(np.sqrt((noise[:pairs] ** 2).mean()))
        beside = 2 * size * float(np.sqrt((noise[-1 - t - d : -1 - t] ** 2).mean())) + size**2 * float(noise[-1])
        return self.make(
            Products(
                count=count,
                mean=mean,
                covariance=shares.products - np.outer(mean, mean),
                target_mean=target,
                cross=shares.cross - np.outer(mean, target),
                middle=middle,
                half=half,
                deviation=float(np.hypot(own, beside)),
            )
        )


@dataclass(frozen=True, eq=False)
class ByClass:
    """Released counts, means and variances by class, in half-widths about the middle of the bounds.

    Counts are at least 1, means within the bounds, variances as released: they may be below 0.
    """

    count: Floats  # (classes,)
    mean: Floats  # (classes, d)
    variance: Floats  # (classes, d); empty where no squares were added up
    middle: Floats  # (d,)
    half: Floats
    noise: Floats  # (classes, d): deviation of the noise in the variances


@dataclass(frozen=True, eq=False)
class ClassSums(OfAll):
    """The number of rows of each class, sums of their columns and, where wanted, of squares, under a pool cap.

    Data are a table and the class of each row, a number from 0 on; -1 where it is none of those declared. `make` is
    given what was released.
    """

    make: Callable[[ByClass], Named]
    names: tuple[str, ...]
    classes: int = 1
    squares: bool = True
    raw: bool = False  # whether errors count in the columns' own units, not in half-widths

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """What every unit brings, within the declared bounds: to the numbers of a row's own class."""
        cells, (low, high), cut = declared.cut(data[0], ColumnNames(self.names))
        middle, half = (low + high) / 2, (high - low) / 2
        z, d = in_half_widths(cells, low, high), len(half)
        # Squares lie between 0 and 1, so that about 1/2 nobody moves them by more than 1/2.
        parts = [z, z**2 - 0.5] if self.squares else [z]
        each = np.hstack([*parts, np.ones((len(z), 1))])
        owner = np.arange(units.rows) if units.of_row is None else units.of_row
        width = each.shape[1]
        _refuse_too_many(units.count, self.classes * width)
        inside = data[1] >= 0
        place = owner[inside] * self.classes + data[1][inside]
        values = unit_sums(each[inside], place, units.count * self.classes).reshape(units.count, -1)
        matters = half**2 / (half**2).mean() if self.raw else np.ones(d)
        limits = np.concatenate([np.ones(d), *([np.full(d, 0.5)] if self.squares else []), [1.0]])
        weights = np.concatenate([matters, *([SQUARES * matters] if self.squares else []), [APART * matters.sum()]])
        extent = Extent(
            declared.rows * np.tile(limits, self.classes),
            np.zeros(self.classes * width, dtype=np.intp),
            np.repeat(np.arange(self.classes), width),
            np.tile(weights, self.classes),
        )
        return Bounded(values, extent, Informed(partial(self._made, middle=middle, half=half)), cut)

    def _made(self, total: Floats, deviations: Floats, *, middle: Floats, half: Floats) -> Named:
        d = len(half)
        sums, noise = total.reshape(self.classes, -1), deviations.reshape(self.classes, -1)
        count = np.maximum(sums[:, -1:], 1.0)
        mean = np.clip(sums[:, :d] / count, -1.0, 1.0)
        variance = told = np.empty((self.classes, 0))
        if self.squares:
            variance = np.clip(sums[:, d:-1] / count + 0.5, 0.0, 1.0) - mean**2
            told = np.hypot(noise[:, d:-1], 2 * np.abs(mean) * noise[:, :d]) / count
        return self.make(ByClass(count[:, 0], mean, variance, middle=middle, half=half, noise=told))


SQUARES = 4.0  # how much an error in a square counts beside an equal one in a mean: variances are the smaller numbers


def _weights(d: int, targets: int) -> Floats:
    """How much noise in each sum matters: products, products with targets, sums, sums of targets, the count."""
    i, j = np.triu_indices(d)
    products = np.where(i == j, 1.0, 2.0)
    if not targets:
        # An error in a mean moves a covariance by twice that mean, one in the count by their product.
        return np.concatenate([products, np.full(d, 1 + 4 * APART * d), [APART**2 * d * d]])
    # A coefficient is off by the error of its product with the target, and by those of products times coefficients,
    # whose squares add up to about 1; a prediction by that over the variance of a column, APART, and by its intercept.
    return np.concatenate(
        [
            products / d,
            np.ones(d * targets),
            np.full(d, 5 * APART),
            np.full(targets, APART * d + APART),
            [APART**2 * d * (1 + targets)],
        ]
    )


def _refuse_too_many(units: int, numbers: int) -> None:
    if units * numbers > MAX_CELLS:
        raise InputError(f"{numbers:,} sums are too many for {units:,} units: leave out columns")
