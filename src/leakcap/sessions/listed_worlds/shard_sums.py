"""Sums over the people of a shard in every world of a list, made where their rows lie."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.cluster.parted import CarriedShard, Shard, Shards
from leakcap.ground.arrays import Bits, Bools, Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.bits import picked
from leakcap.kernels.moments.sums import Chosen, sums_of
from leakcap.sessions.partitioned import shard_table
from leakcap.worlds import Worlds

__all__ = ["InShards", "ShardSums", "ShardWorlds", "Sharded"]

PARTS = 8  # of a shard, added up apart: as many wherever it is, so that sums are the same to the last bit
BYTE = 8  # people whose bits share one


@dataclass(frozen=True, eq=False)
class ShardWorlds:
    """Who of a shard takes part in each world, and last one in which all do; custodian side."""

    worlds: Worlds
    before: int  # people of the shard before, whose bits share the first byte


@dataclass(frozen=True, eq=False)
class Sharded:
    """A shard and its people in every world, as they are where questions are answered; custodian side."""

    shard: Shard | CarriedShard
    masks: ShardWorlds


@dataclass(frozen=True, eq=False)
class InShards:
    """A list of worlds, with people in the order of shards; custodian side."""

    worlds: Worlds
    packed: Bits = field(repr=False)  # of pairs one half

    @classmethod
    def of(cls, worlds: Worlds, shards: Shards) -> InShards:
        """The worlds know people in the order of their names."""
        half = worlds.packed[: worlds.m // 2] if worlds.paired else worlds.packed
        return cls(worlds, picked(half, shards.places))

    def own(self, people: slice) -> ShardWorlds:
        """Of a shard."""
        first, end = people.start // BYTE, -(-people.stop // BYTE)
        everybody = np.full((1, end - first), 255, dtype=np.uint8)
        packed = np.concatenate([self.packed[:, first:end], everybody])
        worlds = replace(self.worlds, packed=packed, n=BYTE * (end - first), paired=False)
        return ShardWorlds(worlds, people.start - BYTE * first)


@dataclass(frozen=True, eq=False)
class ShardSums:
    """One question, as it is asked of every shard. Sums of columns, a count, and before them products, if asked."""

    names: list[str]
    where: Any
    ends: tuple[Floats, Floats] | None
    products: bool
    most: int  # rows that somebody has

    @property
    def numbers(self) -> int:
        d = len(self.names)
        return d + 1 + (d * (d + 1) // 2 if self.products else 0)

    @proves("partitions")
    def of(self, thing: Sharded, centre: Floats) -> Floats:
        """`(worlds, numbers)`: the last one is of everybody."""
        rows = _Asked.of(self, thing.shard)
        starts, before = np.append(0, rows.ends), thing.masks.before

        def features(some: Chosen) -> Floats:
            assert isinstance(some, slice)
            first, end = np.clip((some.start - before, some.stop - before), 0, len(rows.ends))
            found = np.zeros((some.stop - some.start, self.numbers))
            if end > first:  # everybody in a shard has a row at least
                made = self._made(rows, starts[first], starts[end], centre)
                into = first + before - some.start
                found[into : into + end - first] = np.add.reduceat(made, starts[first:end] - starts[first])
            return found

        return sums_of(features, self.numbers, thing.masks.worlds, parts=PARTS)

    def centre(self, shards: Shards) -> Floats:
        """The mean of the first rows there are: about it sums are small, and so is their rounding."""
        for shard in shards:
            cells, kept = _Asked.of(self, shard).asked()
            if kept.any():
                return np.asarray(cells[kept].mean(axis=0))
        return np.zeros(len(self.names))

    def _made(self, rows: _Asked, first: int, end: int, centre: Floats) -> Floats:
        """What each of some rows adds; nothing where it is not asked about."""
        from leakcap.kernels.moments._products import products_of

        (cells, kept), d = rows.asked(first, end), len(self.names)
        apart = cells - centre
        apart[~kept] = 0.0
        made = np.empty((len(cells), self.numbers))
        made[:, -1] = kept
        made[:, -1 - d : -1] = apart
        if self.products:
            products_of(apart, made[:, : -1 - d])
        return made


@dataclass(frozen=True, eq=False)
class _Asked:
    """Columns of a shard, person by person."""

    columns: list[npt.NDArray[Any]]
    within: tuple[Floats, Floats] | None
    mask: Bools | None
    ends: npt.NDArray[Any]  # behind which row those of everybody end

    @classmethod
    def of(cls, asked: ShardSums, shard: Shard | CarriedShard) -> _Asked:
        table = shard_table(shard, None, asked.most, quiet=True)
        columns = [table.numbers_of(name) for name in asked.names]
        return cls(columns, asked.ends, table.mask(asked.where), table.ends)

    def asked(self, first: int = 0, end: int | None = None) -> tuple[Floats, Bools]:
        """Cells within their ends, and which rows are asked about: none with a missing or infinite number."""
        some = slice(first, int(self.ends[-1]) if end is None else end)
        cells = np.empty((some.stop - first, len(self.columns)))
        for place, column in enumerate(self.columns):
            cells[:, place] = column[some]
        kept = np.asarray(np.isfinite(cells).all(axis=1))
        if self.mask is not None:
            kept &= self.mask[some]
        return (cells if self.within is None else np.clip(cells, *self.within)), kept
