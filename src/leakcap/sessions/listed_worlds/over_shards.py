"""Questions to one of a list of worlds about people in shards: sums in every world, shard by shard, and what they make.

The worlds are those of one table: people are counted in the order of their names, wherever their rows lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leakcap import stats
from leakcap.cluster.parted import Shards
from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import ColumnNames, Declared
from leakcap.kernels.moments import masked_sums
from leakcap.sessions.partitioned import shard_table
from leakcap.sessions.questions import for_json
from leakcap.sessions.table import SessionTable
from leakcap.simulate import Outputs, Pool, run_worlds
from leakcap.stats.products import product_rows, split_products
from leakcap.worlds import Units, Worlds

__all__ = ["PartedWorlds"]

NO_SUMS = "{} looks at the rows of a world at once: over partitions ask count, sum, mean or covariance"
STATISTICS: dict[str, Callable[..., Any]] = {
    "count": stats.sum,
    "sum": stats.sum,
    "mean": stats.mean,
    "covariance": stats.covariance,
}


@dataclass(frozen=True, eq=False)
class _WorldSums:
    """One question."""

    shards: Shards
    kind: str
    names: list[str]
    alone: bool
    where: Any
    ends: tuple[Floats, Floats] | None
    words: dict[str, Any]

    @property
    def scale(self) -> float:
        """From a half of the people to all of them."""
        return 2.0 if self.kind in ("count", "sum") else 1.0

    def text(self, **how: Any) -> str:
        """The same for the same question."""
        return json.dumps({**self.words, **how}, sort_keys=True, default=for_json)

    @proves("partitions")
    def in_worlds(self, worlds: Worlds) -> Outputs:
        """The answer in every world; shards are read one after the other."""
        half = replace(worlds, packed=worlds.packed[: worlds.m // 2], paired=False) if worlds.paired else worlds
        found, total = np.zeros((half.m, self._numbers)), np.zeros(self._numbers)
        centre = self._centre()
        for shard in self.shards:
            table = shard_table(shard, None, self.shards.most, quiet=True)
            cells, units = self._cells(table)
            if not len(cells):
                continue
            owner = np.arange(table.units.count) if units.of_row is None else units.of_row
            present, of_row = np.unique(owner, return_inverse=True)
            rows = product_rows(cells - centre, np.empty((len(cells), 0)))[:, -self._numbers :]
            some = Units(len(rows), len(present), of_row.astype(np.intp))
            people = self.shards.places[shard.people][present]
            found += masked_sums(rows, half.of_units(people), some)
            total += rows.sum(axis=0)
        if not total[-1]:
            raise InputError("nobody has rows that this question is about: ask another")
        sums = np.concatenate([found, total - found]) if worlds.paired else found
        return replace(self._form(worlds), table=self._answers(sums, centre))

    @property
    def _numbers(self) -> int:
        """Sums of columns, a count, and before them products, where these are asked."""
        d = len(self.names)
        return d + 1 + (d * (d + 1) // 2 if self.kind == "covariance" else 0)

    def _cells(self, table: SessionTable) -> tuple[Floats, Units]:
        found = table.rows(table.mask(self.where), self.names)
        return (found.cells if self.ends is None else np.clip(found.cells, *self.ends)), found.units

    def _centre(self) -> Floats:
        """The mean of the first rows there are: about it sums are small, and so is their rounding."""
        if self.kind not in ("mean", "covariance"):
            return np.zeros(len(self.names))
        for shard in self.shards:
            cells, _ = self._cells(shard_table(shard, None, self.shards.most, quiet=True))
            if len(cells):
                return np.asarray(cells.mean(axis=0))
        return np.zeros(len(self.names))

    def _answers(self, sums: Floats, centre: Floats) -> Floats:
        d = len(self.names)
        rows, singles = sums[:, -1:], sums[:, -1 - d : -1]
        if self.kind == "count":
            return rows
        if self.kind == "sum":
            return singles
        apart = singles / np.maximum(rows, 1)
        if self.kind == "mean":
            return np.where(rows > 0, centre + apart, 0.0)
        products = np.array([split_products(one, d, 0).products for one in sums])
        scatter = products - singles[:, :, None] * apart[:, None, :]
        found = np.where(rows[:, :, None] > 1, scatter / np.maximum(rows[:, :, None] - 1, 1), 0.0)
        return np.asarray(found.reshape(len(sums), -1))

    def _form(self, worlds: Worlds) -> Outputs:
        """Outputs of the form that they have of one table."""
        some = np.zeros(2) if self.alone else np.zeros((2, len(self.names)))
        pair = Worlds(np.array([[128], [64]], dtype=np.uint8), 2, worlds.share, paired=True, design=worlds.design)
        return run_worlds(STATISTICS[self.kind], Pool((some,)), Units(2, 2), pair)


@dataclass(frozen=True, eq=False)
class PartedWorlds:
    """What can be asked of people in shards of whom a half takes part."""

    shards: Shards

    def __getattr__(self, kind: str) -> Callable[..., _WorldSums]:
        if kind not in STATISTICS:
            raise InputError(NO_SUMS.format(kind))
        return partial(self._asked, kind, None) if kind == "count" else partial(self._asked, kind)

    def _asked(self, kind: str, columns: Any, *, where: Any = None, by: Any = None, bounds: Any = None) -> _WorldSums:
        if by is not None:
            raise InputError("groups are for design='bits'; here ask for each group")
        table = shard_table(self.shards.shards[0], None, self.shards.most, quiet=True)
        names, alone = ([], True) if columns is None else table.names(columns)
        ends = None if bounds is None else Declared(bounds).of_columns(ColumnNames(tuple(names)), len(names))
        told = where if where is None or isinstance(where, str) else f"function {fingerprint(where)[:16]}"
        words = {"kind": kind, "columns": names or None, "where": told, "by": None, "bounds": bounds}
        words = {name: value for name, value in words.items() if value is not None}
        return _WorldSums(self.shards, kind, names, alone=alone, where=where, ends=ends, words=words)
