"""The questions of a session: what each is in words, and what everybody brings to it.

Where bounds are declared everything but the sums is public. Otherwise the pool's own statistic is the centre around
which coins move the answer: free in the game of who takes part, and listed in the certificate, because it then says
nothing about who is in the pool.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats
from leakcap.kernels.blocks import InBlocks
from leakcap.kernels.blocks import blocks as in_blocks
from leakcap.kernels.bounded import ColumnNames, Declared, Extent, unit_sums
from leakcap.kernels.contributions import Contributions
from leakcap.sessions.brought import Brought, BroughtInBlocks, Length, Sums, Within, around_pool, within
from leakcap.sessions.linear import checked_norm, cut_to_length
from leakcap.sessions.row_bins import RowBins
from leakcap.sessions.row_sums import Grid, RowSums
from leakcap.sessions.table import SessionTable, TableRows, rows_of_units
from leakcap.simulate.silence import each_unheard
from leakcap.stats.brought import about_the_pool
from leakcap.stats.cells import bin_edges, checked_levels, own_places
from leakcap.stats.declared import (
    bounded_counts,
    bounded_covariances,
    bounded_histograms,
    bounded_means,
    bounded_sums,
)
from leakcap.stats.group_by import GroupBy, group_by
from leakcap.stats.on_grid import CELLS, bounded_quantiles, grids_of
from leakcap.worlds import Units

__all__ = ["Questions", "SessionQuestion", "Where", "for_json"]

MAX_NUMBERS = 1024  # of one question, for analysts and under pool caps
OF_THE_POOL = "as it is in this pool"
NO_ROWS = Units(0, 0)
AGREE = 1e-6  # relative: rounding of sums
Where = str | Callable[..., Any] | None


@dataclass(frozen=True, eq=False)
class SessionQuestion:
    """One question. `sums` and `public` are asked whether the noise was given on the answer's own scale."""

    words: Mapping[str, Any]
    sums: Callable[[bool], Sums]
    public: Callable[[bool], bool]  # whether nothing but the sums depends on the data, by what was declared alone
    pool_made: bool = False  # whether the question itself was read off the data

    def text(self, **how: Any) -> str:
        """The same for the same question."""
        return json.dumps({**self.words, **how}, sort_keys=True, default=for_json)


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of a table."""

    table: SessionTable
    block_key: bytes
    quiet: bool  # whether nothing may be said of how the data suit a question

    def count(self, *, where: Where = None, by: Any = None) -> SessionQuestion:
        """How many rows there are, in all or in every declared group."""

        def sums(_: bool) -> Sums:
            mask, most = self.table.mask(where), self.table.most_rows
            if by is not None:
                return self._grouped(mask, group_by(by, "count"), Declared(rows=most, quiet=self.quiet))
            made = bounded_counts((), NO_ROWS, Declared(rows=most))
            grid = Grid.in_half_widths(np.empty(0), np.empty(0))
            return RowSums.within(self.table, [], mask, grid=grid, made=made, halving=partial(_of_counts, most=most))

        return _asked("count", sums, True, where=where, by=by)

    def sum(self, columns: Any, *, where: Where = None, by: Any = None, bounds: Any = None) -> SessionQuestion:
        """Sums of columns."""
        names, alone = self.table.names(columns)
        if by is not None:
            _need_bounds(bounds, "sums by group")

        def sums(_: bool) -> Sums:
            mask = self.table.mask(where)
            if by is not None:
                return self._grouped(mask, group_by(by, "sum", names), self._declared(names, bounds))
            if bounds is not None:
                declared = self._declared(names, bounds)
                made = bounded_sums((_nothing(names, alone),), NO_ROWS, declared)
                grid = Grid.about_nothing(*declared.of_columns(None, len(names)))
                found = RowSums.within(self.table, names, mask, grid=grid, made=made, counted=False)
                return found.warned(declared)
            rows = self.table.rows(mask, names)
            each = unit_sums(rows.cells, rows.units.of_row, rows.units.count)
            return around_pool(Contributions(each, averaged=False, finish=partial(_formed, alone=alone)))

        return _asked("sum", sums, bounds is not None, columns=names, where=where, by=by, bounds=bounds)

    def mean(self, columns: Any, *, where: Where = None, by: Any = None, bounds: Any = None) -> SessionQuestion:
        """Means of columns: sums and a count within declared bounds; otherwise the pool's means, moved by coins."""
        names, alone = self.table.names(columns)
        if by is not None:
            _need_bounds(bounds, "means by group")

        def public(noise_given: bool) -> bool:
            return by is not None or (bounds is not None and not noise_given)

        def sums(noise_given: bool) -> Sums:
            mask = self.table.mask(where)
            if by is not None:
                return self._grouped(mask, group_by(by, "mean", names), self._declared(names, bounds), scale=None)
            if public(noise_given):
                declared = self._declared(names, bounds)
                made = bounded_means((_nothing(names, alone),), NO_ROWS, declared)
                grid = Grid.in_half_widths(*declared.of_columns(None, len(names)))
                found = RowSums.within(self.table, names, mask, grid=grid, made=made, halving=_of_means, scale=None)
                return found.warned(declared)
            rows = self.table.rows(mask, names)
            cells = rows.cells if bounds is None else self._declared(names, bounds).cut(rows.cells, None)[0]
            centre = cells.mean(axis=0) if len(cells) else np.zeros(len(names))
            each = unit_sums((cells - centre) / max(1, len(cells)), rows.units.of_row, rows.units.count)
            finish = partial(_moved, centre=centre, alone=alone)
            return around_pool(Contributions(each, averaged=False, finish=finish))

        return _asked("mean", sums, public, columns=names, where=where, by=by, bounds=bounds)

    def histogram(
        self, columns: Any, *, edges: Any = None, bounds: Any = None, bins: int = 20, where: Where = None
    ) -> SessionQuestion:
        """How many rows lie between edges, for every column."""
        names, alone = self.table.names(columns)
        if (edges is None) == (bounds is None):
            raise InputError("give the edges of the bins, or bounds=(low, high) for bins of equal width")
        if edges is None:
            low, high = Declared(bounds).of_columns(None, 1)
            edges = np.linspace(low[0], high[0], checks.count(bins=bins) + 1)
        ends = bin_edges(edges)

        def sums(_: bool) -> Sums:
            self._refuse_too_many((len(ends) - 1) * len(names))
            most = self.table.most_rows
            made = bounded_histograms((_nothing(names, False),), NO_ROWS, Declared(rows=most), ends)
            told = {
                "finish": partial(_bins, columns=len(names), alone=alone),
                "halving": partial(_of_counts, most=most),
            }
            return RowBins.within(self.table, names, self.table.mask(where), ends, made=made, **told)

        return _asked("histogram", sums, True, columns=names, where=where, edges=ends)

    def covariance(self, columns: Any, *, bounds: Any = None, where: Where = None) -> SessionQuestion:
        """Variances and covariances of columns."""
        names, alone = self.table.names(columns)

        def sums(_: bool) -> Sums:
            mask = self.table.mask(where)
            if bounds is None:
                rows = self.table.rows(mask, names)
                return around_pool(about_the_pool((_cells(rows, alone),), rows.units), scale=None)
            declared = self._declared(names, bounds)
            made = bounded_covariances((_nothing(names, alone),), NO_ROWS, declared)
            grid = Grid.in_half_widths(*declared.of_columns(None, len(names)))
            found = RowSums.within(self.table, names, mask, grid=grid, made=made, pairs=True, scale=None)
            return found.warned(declared)

        return _asked("covariance", sums, bounds is not None, columns=names, where=where, bounds=bounds)

    def quantile(
        self, columns: Any, q: Any = 0.5, *, bounds: Any = None, grid: Any = None, where: Where = None
    ) -> SessionQuestion:
        """Quantiles of columns, from counts between cut points."""
        names, alone = self.table.names(columns)
        if grid is None and bounds is None:
            raise InputError(
                "quantiles are made of counts between cut points: declare bounds=(low, high) for a fine grid, or the "
                "cut points themselves, such as grid=range(0, 101, 5). They must not come from the data"
            )
        cuts = grid
        if grid is None:
            low, high = Declared(_ends(bounds, names)).of_columns(None, len(names))
            cuts = [np.linspace(a, b, CELLS + 1) for a, b in zip(low, high, strict=True)]
            cuts = cuts[0] if alone else cuts

        def sums(_: bool) -> Sums:
            rows = self.table.rows(self.table.mask(where), names)
            self._refuse_too_many(sum(2 * len(one) for one in grids_of(cuts, _cells(rows, alone))))
            declared = Declared(rows=self.table.most_rows, quiet=self.quiet)
            made = bounded_quantiles((_cells(rows, alone),), rows.units, declared, q=q, grid=cuts)
            return within(made, scale=None)

        return _asked("quantile", sums, True, columns=names, where=where, q=q, bounds=bounds, grid=grid)

    def linear(
        self, fn: Callable[..., Any], *, bounds: Any = None, norm: float | None = None, shape: Any = None
    ) -> SessionQuestion:
        """The sum of what a function makes of each person's rows; its shape is declared, because one could tell."""
        if not callable(fn) or (bounds is None) == (norm is None):
            raise InputError(
                "linear takes a function of one person's rows, and the most that one person may bring: "
                "bounds=(low, high) of its numbers, or norm= of all of them together"
            )

        form, flat = _form(bounds, shape)
        if form is None and self.quiet:
            form = ()

        def sums(_: bool) -> Sums:
            values, found = self._each(fn, form)
            finish, declared = partial(_shaped, shape=found), form is not None
            if norm is None:
                inside, (low, high), _outside = Declared(flat, quiet=True).cut(values, None)
                most = np.maximum(np.abs(low), np.abs(high))
                return Brought(inside, Within(Extent.together(most, most**-2.0)), finish, declared=declared)
            limit = checked_norm(norm)
            inside = cut_to_length(values, limit) * (1 - 1e-12)
            return Brought(inside, Length(limit, values.shape[1]), finish, declared=declared)

        return _asked(
            "linear",
            sums,
            form is not None,
            fn=fingerprint(fn)[:16],
            bounds=bounds,
            norm=norm,
            shape=OF_THE_POOL if form is None else form,
        )

    def query(self, fn: Callable[..., Any]) -> SessionQuestion:
        """The same, of a function that adds up by itself, with noise for what people of this pool bring.

        It is run on all rows, so that whatever it does tells of the pool: nobody but the custodian may do that.
        """
        if self.quiet:
            raise InputError(
                "query looks at the whole pool, which is for the custodian without a pool cap alone: ask "
                "session.linear(fn, bounds=(low, high)) for a sum over people, or session.blocks(fn, blocks=100, "
                "bounds=(low, high)) for any other function"
            )
        if not callable(fn):
            raise InputError("query takes a function of one person's rows")

        def sums(_: bool) -> Sums:
            with np.errstate(all="ignore"):
                whole = np.asarray(fn(*deepcopy(self.table.pool.data)), dtype=np.float64)  # it may write on its rows
            values, shape = self._each(fn, whole.shape)  # of the pool, as all of this answer is
            size = np.abs(values).sum(axis=0)
            if not (np.abs(whole.ravel() - values.sum(axis=0)) <= AGREE * size + 1e-300).all():
                raise InputError(
                    "this function is no sum over people: what it says of all rows is not what it says of each person "
                    "together. Ask for it in blocks: session.blocks(fn, blocks=100, bounds=(low, high))"
                )
            return around_pool(Contributions(values, averaged=False, finish=partial(_shaped, shape=shape)))

        return _asked("query", sums, False, fn=fingerprint(fn)[:16])

    def blocks(self, fn: Callable[..., Any], *, blocks: int, bounds: Any) -> SessionQuestion:
        """Any function, as the average over blocks of people."""
        made = in_blocks(fn, blocks=blocks, bounds=bounds)

        def sums(_: bool) -> Sums:
            data, units = self.table.pool.data, self.table.units
            self._refuse_too_many(len(made.extent.limits))
            if self.quiet:
                hidden = InBlocks(made, data, units, made.of_rows(units, self.block_key), hidden=True)
                return BroughtInBlocks(hidden, watched=True)
            cut = made.cut(data, units, self.block_key)  # warns where blocks are too small
            return BroughtInBlocks(replace(cut, hidden=True))

        return _asked("blocks", sums, True, fn=fingerprint(fn)[:16], blocks=blocks, bounds=bounds)

    def _each(self, fn: Callable[..., Any], shape: tuple[int, ...] | None) -> tuple[Floats, tuple[int, ...]]:
        """What a function makes of each person's rows, and its shape, where that is not declared.

        Of whom it makes anything but finite numbers of the shape, it makes nothing. That it suits nobody is for the
        custodian to hear: to others it would tell who is in the pool, and so would a shape that is not declared.
        """
        found = each_unheard(lambda own: _made_of(fn, self.table.rows_alone(own)), rows_of_units(self.table.units))
        if shape is None:
            shape = next((one.shape for one in found if one is not None), ())
        self._refuse_too_many(math.prod(shape))
        fitting = [one if one is not None and one.shape == shape else None for one in found]
        if not self.quiet and all(one is None for one in fitting):
            raise InputError(f"the function makes no finite numbers of shape {shape} of anybody's rows")
        none = np.zeros(shape)
        return np.stack([none if one is None else one for one in fitting]).reshape(len(found), -1), shape

    def _grouped(self, mask: Bools | None, fn: GroupBy, declared: Declared, scale: float | None = 1.0) -> Sums:
        import pandas

        for name, _ in fn.keys:
            self.table.names(name)
        self._refuse_too_many(fn.groups * (len(fn.of) + 1))
        rows = self.table.rows(mask, list(fn.of))
        keys = {name: self._at_levels(self.table.columns[name][rows.places], given) for name, given in fn.keys}
        levels = {name: pandas.Series(found, dtype=object) for name, found in keys.items()}
        frame = pandas.DataFrame({**levels, **dict(zip(fn.of, rows.cells.T, strict=True))})
        halving = partial(_of_counts, most=declared.rows) if fn.statistic == "count" else None
        return within(fn.bounded((frame,), rows.units, declared), halving, scale)

    def _at_levels(self, cells: npt.NDArray[Any], levels: tuple[Any, ...]) -> npt.NDArray[Any]:
        """The level that each cell is at, by itself: of what kinds others are must not show in a group."""
        if not self.quiet:
            checked_levels(levels, cells)  # that they are of another kind is for the custodian to hear
        return np.fromiter((*levels, object()), dtype=object)[own_places(cells, levels)]  # the last is no level

    def _refuse_too_many(self, numbers: int) -> None:
        """A limit that does not depend on how many people there are, where nobody may learn that."""
        if self.quiet and numbers > MAX_NUMBERS:
            raise InputError(
                f"{numbers:,} numbers are too many for one question, {MAX_NUMBERS:,} at most: ask in parts"
            )

    def _declared(self, names: list[str], bounds: Any) -> Declared:
        return Declared(_ends(bounds, names), self.table.most_rows, quiet=self.quiet)


def _asked(
    kind: str, sums: Callable[[bool], Sums], public: Callable[[bool], bool] | bool, **details: Any
) -> SessionQuestion:
    where = details.get("where")
    if where is not None and not isinstance(where, str):
        if not callable(where):
            raise InputError("where must be a condition as text, or a function of one person's rows")
        details["where"] = f"function {fingerprint(where)[:16]}"
    words = {"kind": kind, **{name: value for name, value in details.items() if value is not None}}
    return SessionQuestion(words, sums, public if callable(public) else lambda _: public)


def _form(bounds: Any, shape: Any) -> tuple[tuple[int, ...] | None, Any]:
    """The declared shape of what one person brings, if there is one, and bounds of its numbers in a row."""
    form = None if shape is None else _checked_shape(shape)
    if bounds is None:
        return form, None
    try:
        low, high = np.broadcast_arrays(*(np.asarray(end, dtype=np.float64) for end in bounds))
    except (TypeError, ValueError):
        raise InputError("bounds must be (low, high): two numbers, or two arrays of the answer's shape") from None
    if not low.shape:
        return form, (float(low), float(high))
    if form not in (None, low.shape):
        raise InputError(f"bounds of shape {low.shape} do not fit shape={form}")
    return low.shape, (low.ravel(), high.ravel())


def _checked_shape(shape: Any) -> tuple[int, ...]:
    given = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return tuple(checks.count(shape=one) for one in given)


def _made_of(fn: Callable[..., Any], rows: tuple[Any, ...]) -> Floats | None:
    with np.errstate(all="ignore"):
        numbers = np.array(fn(*rows), dtype=np.float64)  # a copy: it may use what it returns again
    return numbers if numbers.size and np.isfinite(numbers).all() else None


def _nothing(names: list[str], alone: bool) -> Floats:
    """A table of no rows: what is declared makes the same of it as of any other."""
    return np.empty(0) if alone else np.empty((0, len(names)))


def _cells(rows: TableRows, alone: bool) -> Floats:
    return rows.cells[:, 0] if alone else rows.cells


def _ends(bounds: Any, names: list[str]) -> Any:
    """Bounds by name as two arrays in the order of the names."""
    if isinstance(bounds, Mapping):
        return Declared(bounds).of_columns(ColumnNames(tuple(names)), len(names))
    return bounds


def _need_bounds(bounds: Any, what: str) -> None:
    if bounds is None:
        raise InputError(f"{what} need bounds that do not come from the data, such as bounds=(0, 100)")


def _formed(total: Floats, alone: bool) -> Any:
    return float(total[0]) if alone else total


def _moved(total: Floats, centre: Floats, alone: bool) -> Any:
    return _formed(centre + total, alone)


def _shaped(total: Floats, shape: tuple[int, ...]) -> Any:
    return total.reshape(shape) if shape else float(total[0])


def _bins(total: Floats, columns: int, alone: bool) -> Any:
    return total if alone else total.reshape(columns, -1)


def _of_counts(total: Floats, most: int) -> Floats:
    """Of sums of whole numbers up to `most`: twice a fair coin each, so that squares add up."""
    return most * np.maximum(total, 0.0)


def _of_means(total: Floats) -> Floats:
    """Sums of numbers between -1 and 1, and their count: of each no more than of the count."""
    return np.full(len(total), max(float(total[-1]), 0.0))


def for_json(thing: Any) -> Any:
    """Arrays and columns as lists, in full; anything else by its words."""
    if hasattr(thing, "__array__"):
        return np.asarray(thing).tolist()
    return list(thing) if isinstance(thing, range) else str(thing)
