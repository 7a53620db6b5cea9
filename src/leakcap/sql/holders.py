"""Who holds which value, and so which worlds have it: by words of bits, one bit for each world.

A value is there in a world if one of its holders is: its words are those of its holders, joined by OR. How many values
a world has is its count of different ones; the first that it has, in the order of values, is its extreme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sql.by_value import ByValue
from leakcap.sql.evaluate import Engine
from leakcap.sql.program import SqlRelease
from leakcap.sql.relations import without_unread
from leakcap.worlds import Worlds

__all__ = ["Holders", "holders"]

TOGETHER = 2**16  # entries that are looked at together
UNITS = 2**12  # whose bits are turned at a time


@dataclass(frozen=True, eq=False)
class Holders:
    """Who holds which value of a column; custodian side. In the order of groups, and of values as they are preferred.

    Of extremes a unit has one entry in a group, of different values one for each.
    """

    one: ByValue
    units: Ints
    cells: Ints
    values: npt.NDArray[Any]  # of extremes; of different values a number for each, another in every group

    def in_worlds(self, worlds: Worlds, groups: int, cohort_of: Ints | None = None) -> Floats:
        """`(worlds, groups)`; worlds are over people, or over their cohorts."""
        units = self.units if cohort_of is None else cohort_of[self.units]
        find = self._counted if self.one.which == "distinct" else self._first
        return find(worlds, units, groups).T

    def of(self, mask: Bools, groups: int) -> Floats:
        """`(groups,)`, of some people alone."""
        here = mask[self.units]
        cells = self.cells[here]
        if self.one.which == "distinct":
            seen = np.unique(self.values[here], return_index=True)[1]
            return np.bincount(cells[seen], minlength=groups).astype(np.float64)
        found = np.full(groups, self.one.empty)
        group, first = np.unique(cells, return_index=True)
        found[group] = self.values[here][first]
        return found

    def _counted(self, worlds: Worlds, units: Ints, groups: int) -> Floats:
        """How many different values each world has."""
        found = np.zeros((groups, worlds.m))
        known, which = np.unique(units, return_inverse=True)
        words = _words(worlds, known)
        starts = np.flatnonzero(np.diff(self.values, prepend=-1))
        ends, first = np.append(starts, len(units)), 0
        while first < len(starts):
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + TOGETHER, side="right")) - 1)
            holding = words[which[ends[first] : ends[last]]]
            there = np.bitwise_or.reduceat(holding, starts[first:last] - ends[first], axis=0)
            group, begins = np.unique(self.cells[starts[first:last]], return_index=True)
            found[group] += np.add.reduceat(_bits(there, worlds.m), begins, axis=0, dtype=np.int64)
            first = last
        return found

    def _first(self, worlds: Worlds, units: Ints, groups: int) -> Floats:
        """The first value that each world has: the best entry of every group, then the next, while worlds have none."""
        found = np.full((groups, worlds.m), self.one.empty)
        undecided = np.tile(_packed(np.ones((1, worlds.m), dtype=np.uint8)), (groups, 1))
        starts = np.searchsorted(self.cells, np.arange(groups + 1))
        groups_left, step = np.flatnonzero(starts[1:] > starts[:-1]), 0
        while len(groups_left):
            at = starts[groups_left] + step
            new = undecided[groups_left] & _words(worlds, units[at])
            undecided[groups_left] ^= new
            row, world = np.nonzero(_bits(new, worlds.m))
            found[groups_left[row], world] = self.values[at[row]]
            more = undecided[groups_left].any(axis=1) & (at + 1 < starts[groups_left + 1])
            groups_left, step = groups_left[more], step + 1
        return found


def holders(one: ByValue, release: SqlRelease, keys: Any, engine: Engine, tables: dict[str, Any]) -> Holders:
    """Ask for the holders of every value, once, on the whole pool; `keys` are the groups in their order."""
    base, cell, given = release.base, "0", dict(tables)
    source = f"({base.sql})"
    if release.keys:
        match = " AND ".join(
            f"{each.safe} IS NOT DISTINCT FROM keys.{name}"
            for each, name in zip(release.keys, release.key_names, strict=True)
        )
        source, cell, given["keys"] = f"{source} JOIN keys ON {match}", "cell", _numbered(keys)
    there = f"{one.of.safe} IS NOT NULL" + (f" AND {one.where.safe}" if one.where is not None else "")
    rows = f"SELECT {base.unit} AS unit, {cell} AS cell, {one.of.safe} AS value FROM {source} WHERE {there}"
    if one.which == "distinct":
        number = "dense_rank() OVER (ORDER BY cell, value) AS value"
        text = f"SELECT unit, cell, {number} FROM (SELECT DISTINCT * FROM ({rows})) ORDER BY value"
    else:
        best = f"SELECT unit, cell, {one.which}(value)::DOUBLE AS value FROM ({rows}) GROUP BY unit, cell"
        text = f"{best} ORDER BY cell, value{' DESC' if one.which == 'max' else ''}"
    found = engine.run(without_unread(text), given)

    units, cells, values = (np.asarray(found.column(name).to_numpy()) for name in ("unit", "cell", "value"))
    return Holders(one, units.astype(np.intp), cells.astype(np.intp), values)


def _numbered(keys: Any) -> Any:
    import pyarrow

    return keys.append_column("cell", pyarrow.array(np.arange(keys.num_rows, dtype=np.int32)))


def _words(worlds: Worlds, units: Ints) -> npt.NDArray[np.uint64]:
    """`(units, words)`: a bit for each world, whether the unit is in it."""
    parts = [worlds.columns(units[start : start + UNITS]).T for start in range(0, max(1, len(units)), UNITS)]
    return np.concatenate([_packed(np.ascontiguousarray(one)) for one in parts])


def _packed(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    packed = np.packbits(bits, axis=1)
    whole = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : packed.shape[1]] = packed
    return whole.view(np.uint64)


def _bits(words: npt.NDArray[np.uint64], worlds: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=worlds)
