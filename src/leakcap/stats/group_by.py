"""Counts, sums and means by group, for groups that are declared: their names must not come from the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import Bounded, ColumnNames, Declared, Extent, unit_sums
from leakcap.kernels.contributions import Contributions, Finish
from leakcap.kernels.moments.sums import masked_sums
from leakcap.stats.cells import numbers, places
from leakcap.stats.declared import APART
from leakcap.worlds import Units, Worlds

__all__ = ["GroupBy", "group_by"]

STATISTICS = ("count", "sum", "mean", "share")
LEAST_WORTH = 1 / 8  # of a count, in spreads of the columns
MAX_CELLS = 2**28  # numbers that all units bring together


@dataclass(frozen=True, eq=False)
class GroupBy:
    """What `group_by` makes: a function of the rows of a table.

    Attributes:
        keys: columns, with the values that groups may have in them.
        statistic: "count", "sum", "mean" or "share".
        of: columns that are added up or averaged.
    """

    keys: tuple[tuple[str, tuple[Any, ...]], ...]
    statistic: str
    of: tuple[str, ...]

    @property
    def total(self) -> bool:
        """Whether the answer grows with the rows."""
        return self.statistic in ("count", "sum")

    @property
    def groups(self) -> int:
        """How many groups were declared: all combinations of the keys' values."""
        return math.prod(len(values) for _, values in self.keys)

    def __call__(self, rows: Any) -> Any:
        """The statistic of every declared group; 0 for a group without rows."""
        group, cells = self._group(rows), self._cells(rows)
        return self._finish(rows)(self._spread(group, self._moments(cells, 0.0)).sum(axis=0))

    def kernel(self, data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
        """The answers in all worlds at once.

        Args:
            data: the one table, in a tuple.
            units: whose rows they are.
            worlds: who takes part in each world.

        Returns:
            `(worlds, numbers)`, each answer flattened.
        """
        each = self._spread(self._group(data[0]), self._moments(self._cells(data[0]), 0.0))
        found = masked_sums(each, worlds, units)
        return np.stack([self._numbers(total).ravel() for total in found])

    def adjacent(self, data: tuple[Any, ...], units: Units) -> Contributions:
        """What every unit brings; columns are centred and scaled by their means and spreads over the whole pool.

        Args:
            data: the one table, in a tuple.
            units: whose rows they are.

        Returns:
            The contributions of all units, and what is made of their sums.
        """
        group, cells = self._group(data[0]), self._cells(data[0])
        if self.total or not len(cells):
            values = self._of_units(group, self._moments(cells, 0.0), units)
            return Contributions(values, averaged=False, finish=self._finish(data[0]))
        centre, spread = cells.mean(axis=0), cells.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        moments = self._moments(cells, centre) / np.append(spread, 1.0)
        # An error in a count moves a mean by as much as the group differs from everybody: that is what it counts for.
        apart = self._numbers(self._spread(group, moments).sum(axis=0))
        worth = max(float(np.sqrt((apart**2).sum(axis=1).mean())), LEAST_WORTH)
        values = self._of_units(group, moments * np.append(np.ones(len(spread)), worth), units)
        return Contributions(
            values, averaged=False, finish=self._finish(data[0], centre=centre, half=spread, worth=worth)
        )

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """What every unit brings within declared bounds: to one group, or to several with its several rows.

        Args:
            data: the one table, in a tuple.
            units: whose rows they are.
            declared: bounds of the columns, and the most rows of a unit.

        Returns:
            The contributions of all units, the most that anybody may bring, and what is made of the sums.
        """
        group, cells = self._group(data[0]), self._cells(data[0])
        centre, half, cut = np.zeros(cells.shape[1]), np.ones(cells.shape[1]), 0
        if self.statistic == "share":
            low, high = np.zeros(cells.shape[1]), np.ones(cells.shape[1])
        elif self.statistic != "count":
            cells, (low, high), cut = declared.cut(cells, ColumnNames(self.of))
        if self.statistic == "sum":
            half = np.maximum(np.abs(low), np.abs(high))
        elif self.statistic != "count":
            centre, half = (low + high) / 2, (high - low) / 2
        moments = np.clip(self._moments(cells, centre) / np.append(half, 1.0)[: self._width()], -1.0, 1.0)
        values = self._of_units(group, moments, units, quiet=declared.quiet)
        width, groups = self._width(), np.arange(self.groups)
        weights = np.ones((self.groups, width))
        if self.statistic in ("mean", "share"):
            weights[:, -1] = APART * len(self.of)
        extent = Extent(
            np.full(values.shape[1], float(declared.rows)),
            np.zeros(values.shape[1], dtype=np.intp),
            np.repeat(groups, width),
            weights.ravel(),
        )
        return Bounded(values, extent, self._finish(data[0], centre=centre, half=half, within=True), cut)

    def _width(self) -> int:
        """Numbers that are added up in each group."""
        return {"count": 1, "sum": len(self.of)}.get(self.statistic, len(self.of) + 1)

    def _group(self, rows: Any) -> Ints:
        """The number of each row's group; -1 where it is in none of those declared."""
        found, outside = np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows), dtype=bool)
        for name, values in self.keys:
            place = places(_column(rows, name), values)
            found, outside = found * len(values) + place, outside | (place == len(values))
        return np.where(outside, -1, found)

    def _cells(self, rows: Any) -> Floats:
        if not self.of:
            return np.empty((len(rows), 0))
        cells = np.stack([numbers(_column(rows, name)) for name in self.of], axis=1)
        if not np.isfinite(cells).all():
            raise InputError(f"missing or infinite values in {', '.join(self.of)}: fill them in, or leave the rows out")
        if self.statistic == "share" and not ((cells == 0) | (cells == 1)).all():
            raise InputError("share is for columns of yes and no: true and false, or 1 and 0")
        return cells

    def _moments(self, cells: Floats, centre: Floats | float) -> Floats:
        """What every row adds to its group."""
        ones = np.ones((len(cells), 1))
        if self.statistic == "count":
            return ones
        return cells if self.statistic == "sum" else np.hstack([cells - centre, ones])

    def _spread(self, group: Ints, moments: Floats, quiet: bool = False) -> Floats:
        """The same, in the place of the group."""
        width = moments.shape[1]
        if not quiet and len(group) * self.groups * width > MAX_CELLS:
            raise InputError(f"{self.groups:,} groups are too many for {len(group):,} rows: declare fewer")
        found = np.zeros((len(group), self.groups, width))
        inside = np.flatnonzero(group >= 0)
        found[inside, group[inside]] = moments[inside]
        return found.reshape(len(group), self.groups * width)

    def _of_units(self, group: Ints, moments: Floats, units: Units, quiet: bool = False) -> Floats:
        """`quiet` where a limit that depends on the number of people would tell it."""
        if units.of_row is None:
            return self._spread(group, moments, quiet)
        inside, width = group >= 0, moments.shape[1]
        if not quiet and units.count * self.groups * width > MAX_CELLS:
            raise InputError(f"{self.groups:,} groups are too many for {units.count:,} units: declare fewer")
        place = units.of_row[inside] * self.groups + group[inside]
        return unit_sums(moments[inside], place, units.count * self.groups).reshape(units.count, -1)

    def _numbers(
        self,
        total: Floats,
        centre: Floats | float = 0.0,
        half: Floats | float = 1.0,
        worth: float = 1.0,
        within: bool = False,
    ) -> Floats:
        sums = total.reshape(self.groups, -1)
        if self.statistic == "count":
            return sums[:, 0]
        if self.statistic == "sum":
            return sums * half
        count = sums[:, -1:] / worth
        mean = sums[:, :-1] / np.maximum(count, 1.0)
        return np.where(count >= 0.5, centre + half * (np.clip(mean, -1.0, 1.0) if within else mean), 0.0)

    def _finish(self, rows: Any, **known: Any) -> Finish:
        """Numbers, and the table in which people get them: of the library that their own table is of."""
        of_polars = type(rows).__module__.split(".")[0] == "polars"
        return Finish(partial(self._numbers, **known), self._polars_table if of_polars else self._table)

    def _polars_table(self, found: Floats) -> Any:
        import polars

        groups = zip(*product(*(values for _, values in self.keys)), strict=True)
        keys = [
            polars.Series(name, list(values), strict=False) for (name, _), values in zip(self.keys, groups, strict=True)
        ]
        cells, names = found.reshape(self.groups, -1), self.of or ("count",)
        table = polars.DataFrame([*keys, *(polars.Series(name, cells[:, at].copy()) for at, name in enumerate(names))])
        table.label_columns = tuple(name for name, _ in self.keys)  # type: ignore[attr-defined]
        return table

    def _table(self, found: Floats) -> Any:
        import pandas

        names = [name for name, _ in self.keys]
        values = [list(values) for _, values in self.keys]
        if len(names) > 1:
            index = pandas.MultiIndex.from_product(values, names=names)
        else:
            index = pandas.Index(values[0], name=names[0])
        if self.statistic == "count":
            return pandas.Series(found, index=index, name="count")
        return pandas.DataFrame(found, index=index, columns=list(self.of))


def group_by(keys: Mapping[str, Sequence[Any]], statistic: str = "count", of: str | Sequence[str] = ()) -> GroupBy:
    """A statistic of every group, to be released with `leakcap.plan`.

    Args:
        keys: for every column that makes groups, the values it may have, such as `{"ward": ["A", "B"]}`. They must be
            declared: a group that shows because somebody is in it tells of them. Rows with other values are in no
            group. Several columns make all combinations.
        statistic: "count" of rows, "sum", "mean" or "share" (of yes and no) of the columns `of`.
        of: names of the columns that are added up or averaged.

    Returns:
        A function of a table. Its answer is a table with the groups as its index: counts, or the columns `of`; of a
        polars table, a polars table with the groups in its first columns. A group without rows has the value 0.

    Raises:
        InputError: no keys are declared, or columns and statistic do not go together.

    Examples:
        >>> import pandas
        >>> visits = pandas.DataFrame({"ward": ["A", "B", "A"], "cost": [10.0, 30.0, 20.0]})
        >>> group_by({"ward": ["A", "B", "C"]}, "mean", of="cost")(visits)["cost"].tolist()
        [15.0, 30.0, 0.0]
    """
    if not isinstance(keys, Mapping) or not keys or any(isinstance(values, str) for values in keys.values()):
        raise InputError(
            'declare the groups, such as {"ward": ["A", "B"]} for a column ward: their names must not come from the '
            "data, because a group that shows tells that somebody is in it"
        )
    if statistic not in STATISTICS:
        raise InputError(f"statistic must be one of {', '.join(STATISTICS)}")
    columns = (of,) if isinstance(of, str) else tuple(of)
    if bool(columns) == (statistic == "count"):
        raise InputError("a sum, mean or share needs the columns it is of, such as of='cost'; a count takes none")
    declared = []
    for name, values in keys.items():
        listed = tuple(values)
        if not listed or len(set(listed)) < len(listed):
            raise InputError(f"the values of {name!r} must be different, and at least one")
        declared.append((str(name), listed))
    return GroupBy(tuple(declared), statistic, columns)


def _column(rows: Any, name: str) -> Any:
    columns = [str(one) for one in getattr(rows, "columns", ())]
    if name not in columns:
        raise InputError(f"group_by needs a table with a column {name!r}")
    return rows[name]
