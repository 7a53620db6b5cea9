"""The data of a session, column by column, and whose rows they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.slices import take_own
from leakcap.sessions.unasked import no_column, refuse_data
from leakcap.sessions.where import matching, missing_among, numbers_among
from leakcap.simulate.pool import Pool, first_rows
from leakcap.simulate.silence import each_unheard, kept_quiet
from leakcap.worlds import Units

__all__ = ["NO_NUMBERS", "SessionTable", "TableRows", "plain_column"]

NO_NUMBERS = "column {!r} does not hold numbers: ask how many rows have which value, with by="


@dataclass(frozen=True, eq=False)
class TableRows:
    """Some rows, as numbers, and whose they are among all people of the session."""

    cells: Floats  # (rows, columns), finite
    units: Units
    places: Ints  # of the rows in the whole table


@dataclass(frozen=True, eq=False)
class SessionTable:
    """All rows; custodian side."""

    pool: Pool
    units: Units
    rows_per_unit: int | None  # declared
    own_rows: int  # the most that somebody has
    quiet: bool = False  # whether nothing may be said of what the data are like

    @classmethod
    def of(
        cls, data: Any, unit: npt.ArrayLike | str | None, rows_per_unit: int | None, quiet: bool = False
    ) -> SessionTable:
        """From one table or array, or a tuple of several that are sliced alike."""
        pool = Pool(data if isinstance(data, tuple) else (data,))
        whose = pool.pop_column(unit) if isinstance(unit, str) else unit
        if rows_per_unit is not None:
            pool, whose = first_rows(pool, whose, rows_per_unit)
        if not pool.rows:
            raise InputError("there are no rows")
        if any(not hasattr(part, "shape") and len(set(map(len, map(_cells, part)))) > 1 for part in pool.data):
            raise InputError("rows of a list must be of one length: say with None where a cell is missing")
        units = Units.of(pool.rows, whose)
        most = 1 if units.of_row is None else int(np.bincount(units.of_row).max())
        return cls(pool, units, rows_per_unit if whose is not None else 1, most, quiet)

    @property
    def has_names(self) -> bool:
        """Whether columns have names that people gave them."""
        return all(hasattr(part, "columns") or hasattr(part, "name") for part in self.pool.data)

    @property
    def most_rows(self) -> int:
        """Of one person: as declared, or as it is."""
        return self.own_rows if self.rows_per_unit is None else self.rows_per_unit

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Every column by its name; those of an array are called 0, 1 and so on."""
        found: dict[str, npt.NDArray[Any]] = {}
        for part in self.pool.data:
            with kept_quiet(self.quiet):
                columns = _columns(part, len(found))
            for name, column in columns:
                if name in found:
                    raise InputError(f"two columns are called {name!r}: give each a name of its own")
                found[name] = column
        return found

    def names(self, columns: Any) -> tuple[list[str], bool]:
        """Names of the columns asked about, and whether it is one alone."""
        refuse_data(columns)
        alone = isinstance(columns, (str, int, np.integer))
        asked: Sequence[Any] = [columns] if alone else list(columns)
        names = [str(name) for name in asked]
        if not names:
            raise InputError(
                f"name the columns that the question is about: there are {', '.join(map(repr, self.columns))}"
            )
        for name, given in zip(names, asked, strict=True):
            if name not in self.columns:
                raise no_column(given, asked if alone or isinstance(columns, (list, tuple)) else (), self.columns)
        return names, alone

    def numbers_of(self, name: str) -> npt.NDArray[Any]:
        """A column as numbers; what is missing is NaN."""
        column = self.columns[name]
        if column.dtype.kind not in "biuf":
            column = numbers_among(column)
            # One odd cell must not change what can be asked: only the custodian hears that there are no numbers.
            if not self.quiet and not np.isfinite(column).any():
                raise InputError(NO_NUMBERS.format(name))
        return column

    def numbers(self, names: list[str]) -> Floats:
        """Columns as numbers, `(rows, columns)`; what is missing is NaN."""
        found = [self.numbers_of(name).astype(np.float64, copy=False) for name in names]
        return np.stack(found, axis=1) if found else np.empty((self.pool.rows, 0))

    @cached_property
    def by_person(self) -> Ints | None:
        """The places of all rows, person by person; None where they stand so."""
        owner = self.units.of_row
        if owner is None or (owner[1:] >= owner[:-1]).all():
            return None
        from leakcap.sessions._cell_loops import in_unit_order

        order: Ints = in_unit_order(owner, self.units.count)
        return order

    @cached_property
    def ends(self) -> Ints:
        """Behind which row the rows of everybody end, where rows stand person by person."""
        if self.units.of_row is None:
            return np.arange(1, self.units.count + 1)
        return np.cumsum(np.bincount(self.units.of_row, minlength=self.units.count))

    def rows(self, mask: Bools | None, names: list[str]) -> TableRows:
        """The rows of a condition; those with a missing or infinite number in a column asked about are left out."""
        cells = self.numbers(names)
        inside = np.isfinite(cells).all(axis=1)
        if mask is not None:
            inside &= mask
        places = np.flatnonzero(inside)
        owner = places if self.units.of_row is None else self.units.of_row[places]
        kept = cells if len(places) == len(cells) else cells[places]
        whole = self.units.of_row is None and len(kept) == len(cells)
        return TableRows(kept, Units(len(kept), self.units.count, None if whole else owner), places)

    def mask(self, where: Any) -> Bools | None:
        """TableRows that a condition holds for; None for all."""
        if where is None:
            return None
        if isinstance(where, str):
            return matching(where, self.columns, self.pool.rows, self.quiet)
        return self.told(where)

    def rows_alone(self, own: Ints) -> tuple[Any, ...]:
        """Somebody's rows as a function sees them: also of what kinds they are is their own."""
        return tuple(take_own(part, own) for part in self.pool.data)

    def told(self, where: Any) -> Bools:
        """TableRows of those people of whom a function of their own rows is true; where it fails, they are left out."""
        found = each_unheard(lambda own: bool(where(*self.rows_alone(own))), rows_of_units(self.units))
        mask = np.array([one is True for one in found], dtype=bool)
        return mask if self.units.of_row is None else mask[self.units.of_row]


def rows_of_units(units: Units) -> list[Ints]:
    """The rows of everybody, in their own order."""
    if units.of_row is None:
        return list(np.arange(units.count)[:, None])
    order = np.argsort(units.of_row, kind="stable")
    return np.split(order, np.cumsum(np.bincount(units.of_row, minlength=units.count))[:-1])


def _columns(part: Any, start: int) -> list[tuple[str, npt.NDArray[Any]]]:
    if hasattr(part, "tocsr"):
        part = part.toarray()
    if hasattr(part, "columns"):
        return [(str(name), plain_column(part[name])) for name in part.columns]
    if not hasattr(part, "shape"):
        return _of_list(part, start)
    array = np.asarray(part)
    if array.ndim == 1:
        return [(str(getattr(part, "name", None) or start), plain_column(part))]
    if array.ndim != 2:
        raise InputError("a session needs tables: arrays with one dimension or two, or data frames")
    return [(str(start + place), plain_column(array[:, place])) for place in range(array.shape[1])]


def _of_list(rows: Sequence[Any], start: int) -> list[tuple[str, npt.NDArray[Any]]]:
    """Columns of a list, cell by cell."""
    columns = zip(*map(_cells, rows), strict=True)
    return [
        (str(start + place), plain_column(np.fromiter(cells, dtype=object, count=len(rows))))
        for place, cells in enumerate(columns)
    ]


def _cells(row: Any) -> Sequence[Any]:
    return row if isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1 else (row,)


def plain_column(column: Any) -> npt.NDArray[Any]:
    """Numbers with NaN for what is missing, dates in microseconds, anything else as it is.

    Text too: in an array of text every cell would take as much room as the longest one.
    """
    import pandas

    series = pandas.Series(column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column))
    if series.dtype.kind in "biuf":
        return series.to_numpy()
    if series.dtype.kind == "M":
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray(series.to_numpy(), dtype="datetime64[us]")
    values = series.to_numpy(dtype=object)
    missing = missing_among(values)
    kinds = {type(value) for value in values[~missing]}
    if kinds and all(issubclass(kind, (bool, int, float, np.integer, np.floating, np.bool_)) for kind in kinds):
        return numbers_among(values)
    return values
