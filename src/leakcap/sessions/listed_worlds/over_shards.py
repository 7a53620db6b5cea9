"""Questions to one of a list of worlds about people in shards: sums in every world, shard by shard, and what they make.

The worlds are those of one table: people are counted in the order of their names, wherever their rows lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import itemgetter
from typing import Any

import numpy as np

from leakcap import stats
from leakcap.cluster.parted import Shards
from leakcap.cluster.sealed import SealedWorkers
from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import ColumnNames, Declared
from leakcap.sessions.listed_worlds.shard_sums import InShards, Sharded, ShardSums
from leakcap.sessions.partitioned import shard_table
from leakcap.sessions.questions import for_json
from leakcap.simulate import Outputs, Pool, run_worlds
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
class _Listed:
    """The worlds of a session in the order of shards, into which they are put when they are first asked for."""

    shards: Shards
    _known: list[InShards] = field(default_factory=list, repr=False)

    def of(self, worlds: Worlds) -> InShards:
        if not self._known:
            self._known.append(InShards.of(worlds, self.shards))
        if self._known[0].worlds is not worlds:
            raise AssertionError("a session has one list of worlds, which workers keep")
        return self._known[0]


@dataclass(frozen=True, eq=False)
class _WorldSums:
    """One question."""

    shards: Shards
    listed: _Listed
    workers: SealedWorkers | None
    kind: str
    sums: ShardSums
    alone: bool
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
        """The answer in every world: shards are added up in their order, whoever made their sums."""
        centre = np.zeros(len(self.sums.names))
        if self.kind in ("mean", "covariance"):
            centre = self.sums.centre(self.shards)
        found = reduce(np.add, self._of_shards(self.listed.of(worlds), centre))
        half, total = found[:-1], found[-1]
        if not total[-1]:
            raise InputError("nobody has rows that this question is about: ask another")
        sums = np.concatenate([half, total - half]) if worlds.paired else half
        return replace(self._form(worlds), table=self._answers(sums, centre))

    def _of_shards(self, listed: InShards, centre: Floats) -> Iterator[Floats]:
        """The sums of each shard, in the order of shards."""
        shards = self.shards.shards
        if self.workers is None:
            for shard in shards:
                yield self.sums.of(Sharded(shard, listed.own(shard.people)), centre)
            return

        def carried(place: int) -> Sharded:
            return Sharded(shards[place].carried(), listed.own(shards[place].people))

        told = self.workers.run(_of_shard, carried, dict.fromkeys(range(len(shards)), (self.sums, centre)))
        yield from (sums for _, sums in sorted(told, key=itemgetter(0)))

    def _answers(self, sums: Floats, centre: Floats) -> Floats:
        d = len(self.sums.names)
        rows, singles = sums[:, -1:], sums[:, -1 - d : -1]
        if self.kind == "count":
            return rows
        if self.kind == "sum":
            return singles
        apart = singles / np.maximum(rows, 1)
        if self.kind == "mean":
            return np.where(rows > 0, centre + apart, 0.0)
        first, second = np.triu_indices(d)
        products = np.empty((len(sums), d, d))
        products[:, first, second] = products[:, second, first] = sums[:, : len(first)]
        scatter = products - singles[:, :, None] * apart[:, None, :]
        found = np.where(rows[:, :, None] > 1, scatter / np.maximum(rows[:, :, None] - 1, 1), 0.0)
        return np.asarray(found.reshape(len(sums), -1))

    def _form(self, worlds: Worlds) -> Outputs:
        """Outputs of the form that they have of one table."""
        some = np.zeros(2) if self.alone else np.zeros((2, len(self.sums.names)))
        pair = Worlds(np.array([[128], [64]], dtype=np.uint8), 2, worlds.share, paired=True, design=worlds.design)
        return run_worlds(STATISTICS[self.kind], Pool((some,)), Units(2, 2), pair)


def _of_shard(thing: Sharded, sums: ShardSums, centre: Floats) -> Floats:
    return sums.of(thing, centre)


@dataclass(frozen=True, eq=False)
class PartedWorlds:
    """What can be asked of people in shards of whom a half takes part."""

    shards: Shards
    workers: SealedWorkers | None = None  # on which shards stay, with their people's worlds, sealed on the way

    def __getattr__(self, kind: str) -> Callable[..., _WorldSums]:
        if kind not in STATISTICS:
            raise InputError(NO_SUMS.format(kind))
        return partial(self._asked, kind, None) if kind == "count" else partial(self._asked, kind)

    @cached_property
    def _listed(self) -> _Listed:
        return _Listed(self.shards)

    def _asked(self, kind: str, columns: Any, *, where: Any = None, by: Any = None, bounds: Any = None) -> _WorldSums:
        if by is not None:
            raise InputError("groups are for design='bits'; here ask for each group")
        table = shard_table(self.shards.shards[0], None, self.shards.most, quiet=True)
        names, alone = ([], True) if columns is None else table.names(columns)
        ends = None if bounds is None else Declared(bounds).of_columns(ColumnNames(tuple(names)), len(names))
        told = where if where is None or isinstance(where, str) else f"function {fingerprint(where)[:16]}"
        words = {"kind": kind, "columns": names or None, "where": told, "by": None, "bounds": bounds}
        words = {name: value for name, value in words.items() if value is not None}
        sums = ShardSums(names, where, ends, products=kind == "covariance", most=self.shards.most)
        return _WorldSums(self.shards, self._listed, self.workers, kind=kind, sums=sums, alone=alone, words=words)
