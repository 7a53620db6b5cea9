"""Rows dealt by whose they are into shards: everybody's rows lie together, whatever partitions they came in.

Which shard a person is in, and in which order people stand there, follow from the number by which the ledger knows
them; in which order a person's rows stand, and which of them count where they are too many, from a keyed number of
each row. So nothing of it hangs on partitions, on their order, or on who else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.cluster.parted.partitions import Partitions
from leakcap.cluster.parted.rows import row_numbers
from leakcap.cluster.parted.stowed import Stowed
from leakcap.custody.contents import ContentsByPart
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Ints
from leakcap.ground.proofs import proves
from leakcap.worlds.keyed import bits_of, keyed_by_all
from leakcap.worlds.names import canonical_names, merges_people
from leakcap.worlds.units import one_label_per_row

__all__ = ["CarriedShard", "Shard", "Shards", "dealt"]

SHARDS = 64
SHIFT = np.uint64(64 - 6)  # the highest bits of a person's number name the shard
# Columns of ours beside those of the rows.
NUMBER, WHOSE, SECOND, COIN, NAME = "\0number", "\0row", "\0second", "\0coin", "\0name"
OWN = (NUMBER, WHOSE, SECOND, COIN, NAME)
OF_PEOPLE = "people", "people of partitions", "coins"  # purposes of keys
OF_ROWS = "rows of partitions", "rows of partitions, again"
HELD = 4  # times that rows may be in memory while they are put in order


@dataclass(frozen=True, eq=False)
class Shard:
    """Some people with all their rows, person by person; custodian side."""

    stowed: Stowed = field(repr=False)
    place: int
    rows: int
    people: slice  # which they are among all people

    @property
    def names(self) -> list[str]:
        return self.stowed.columns

    def ends(self) -> Ints:
        """Behind which row the rows of everybody end."""
        if self.rows == self.count:
            return np.arange(1, self.count + 1)
        return np.cumsum(self.stowed.column(self.place, WHOSE).to_numpy())

    @property
    def count(self) -> int:
        """How many people there are."""
        return self.people.stop - self.people.start

    def column(self, name: str) -> Any:
        """A column as an array of Arrow."""
        return self.stowed.column(self.place, name)

    def carried(self) -> CarriedShard:
        """The same, to be carried to another process."""
        return CarriedShard({name: self.column(name) for name in self.names}, self.rows, self.count, self.ends())


@dataclass(frozen=True, eq=False)
class CarriedShard:
    """A shard with its columns, and without the numbers of its people; custodian side."""

    columns: dict[str, Any] = field(repr=False)
    rows: int
    count: int
    people_ends: Ints = field(repr=False)

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def ends(self) -> Ints:
        return self.people_ends

    def column(self, name: str) -> Any:
        return self.columns[name]


@dataclass(frozen=True, eq=False)
class Shards:
    """All people; custodian side."""

    shards: tuple[Shard, ...]
    people: npt.NDArray[np.uint64]  # (n,): numbers by which clocks are found, ascending
    coins: Bools  # (n,)
    version: str  # of the rows and whose they are, whatever order they came in
    rows: int
    left_out: int  # rows of people who have more than count
    most: int  # rows that somebody has
    named: bool
    contents: tuple[str, ...] = ()  # by which the ledger knows the same people's data
    names: npt.NDArray[Any] | None = field(default=None, repr=False)  # (n,), where they were asked for

    def __iter__(self) -> Iterator[Shard]:
        return iter(self.shards)

    @cached_property
    def places(self) -> Ints:
        """The place of everybody among all names in order, where one table would have them."""
        assert self.names is not None
        found = np.empty(len(self.names), dtype=np.intp)
        found[np.argsort(self.names, kind="stable")] = np.arange(len(self.names))
        return found


@proves("partitions")
def dealt(
    parts: Partitions, *, unit: str | None, most: int | None, key: Callable[[str], bytes], named: bool = False
) -> Shards:
    """All rows of the partitions, read once.

    Args:
        parts: where rows come from.
        unit: the column that says whose they are; None where every row is somebody's own.
        most: rows of one person that count; None for all.
        key: of the account, by its purpose.
        named: whether names are kept, which a list of worlds is drawn over.

    Guarantee: a person's rows are in one shard, in an order that hangs on them and the key alone; of whoever has more
    than `most`, so many that are chosen likewise.
    """
    if most is not None:
        checks.count(rows_per_unit=most)
    stowed, seen, second = Stowed(parts.memory // HELD, parts.folder), 0, np.zeros(2, dtype=np.uint64)
    contents = ContentsByPart()
    for batch in parts.batches():
        if not batch.num_rows:
            stowed.known(batch.schema, unit)
            continue
        names = _names(batch, unit, seen)
        numbers, others, coins = keyed_by_all(names, [key(one) for one in OF_PEOPLE])
        whole, again = row_numbers(batch, numbers, [key(one) for one in OF_ROWS])
        second += np.array([whole.sum(dtype=np.uint64), again.sum(dtype=np.uint64)])
        own = {NUMBER: numbers, WHOSE: whole, SECOND: others}
        own |= {COIN: bits_of(coins)} | ({NAME: names} if named else {})
        stowed.add(batch, own, (numbers >> SHIFT).astype(np.intp), unit)
        contents.add(batch.to_pandas().drop(columns=[] if unit is None else [unit]))
        seen += batch.num_rows
    if not seen:
        raise InputError("there are no rows in any of the partitions")
    version = f"{seen} rows {int(second[0]):016x}{int(second[1]):016x}"
    own_rows = unit is None
    shards = _ordered(stowed, version=version, seen=seen, most=None if own_rows else most, named=not own_rows)
    return replace(shards, contents=contents.prints())


def _ordered(stowed: Stowed, *, version: str, seen: int, most: int | None, named: bool) -> Shards:
    found, people, coins, called, start, longest, kept = list[Shard](), [], [], [], 0, 0, 0
    for place in stowed.places():
        numbers, whole, second = (stowed.column(place, name).to_numpy() for name in (NUMBER, WHOSE, SECOND))
        # Two of many million people may share a number, and with it a clock: they stay two people.
        order = _in_order(numbers, second, whole)
        new = np.append(True, (np.diff(numbers[order]) != 0) | (np.diff(second[order]) != 0))
        first = np.flatnonzero(new)
        whose = np.cumsum(new) - 1
        if most is not None:
            few = np.arange(len(order)) - first[whose] < most
            order, whose, new = order[few], whose[few], new[few]
            first = np.flatnonzero(new)
        coin = stowed.column(place, COIN).to_numpy(zero_copy_only=False)
        if stowed.has(NAME):
            called.append(stowed.column(place, NAME).to_numpy(zero_copy_only=False)[order[first]])
        people.append(numbers[order[first]])
        coins.append(coin[order[first]])
        longest = max(longest, int(np.bincount(whose).max()))
        stowed.put_in_order(place, order, {WHOSE: np.bincount(whose).astype(np.int32)}, drop=OWN)
        kept += len(order)
        people_there = slice(start, start + len(first))
        found.append(Shard(stowed, place, rows=len(order), people=people_there))
        start += len(first)
    return Shards(
        shards=tuple(found),
        people=np.concatenate(people),
        coins=np.concatenate(coins),
        version=version,
        rows=kept,
        left_out=seen - kept,
        most=longest,
        named=named,
        names=_as_one(called) if called else None,
    )


def _in_order(numbers: npt.NDArray[Any], second: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Ints:
    """Rows by the number of whose they are, by the second one, and by their own."""
    order = np.argsort(whole)
    order = order[np.argsort(numbers[order], kind="stable")]
    same = numbers[order[1:]] == numbers[order[:-1]]
    if (same & (second[order[1:]] != second[order[:-1]])).any():  # a thing of chance, of two in many million people
        return np.lexsort((whole, second, numbers))
    return order


def _as_one(names: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """As one table has them: numbers, or texts."""
    together = np.concatenate(names)
    return together.astype(str) if together.dtype == object else together


def _names(batch: Any, unit: str | None, before: int) -> npt.NDArray[Any]:
    """Whose the rows of a batch are: a row that is nobody's but its own is named by its place."""
    if unit is None:
        return np.arange(before, before + batch.num_rows)
    if unit not in batch.schema.names:
        raise InputError(f"there is no column {unit!r} to say whose rows they are: there are {batch.schema.names}")
    column = batch.column(unit)
    if column.null_count:
        raise InputError("unit has missing labels: say whose rows these are, or leave them out")
    labels = one_label_per_row("unit", column.to_pandas().to_numpy(), batch.num_rows)
    if merges_people(labels):
        raise InputError(
            "unit holds numbers that are not whole, or so large that floats do not tell them apart, and ids may have "
            "been lost: give ids as text or as whole numbers"
        )
    return labels if labels.dtype.kind in "iufU" else canonical_names(labels)
