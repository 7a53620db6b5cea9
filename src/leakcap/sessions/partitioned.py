"""Questions about data in partitions: everybody's part is made where their rows lie, and exact sums are added up.

Every shard is a table of some of the people, of which the questions of one machine make what they bring. Charges are
theirs alone, and sums are whole numbers of grains: so both are the same, bit for bit, however people are dealt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.cluster.parted import CarriedShard, Shard, Shards, is_of_numbers
from leakcap.cluster.sealed import SealedWorkers
from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import LikeOther, Sums, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.questions import Questions, SessionQuestion
from leakcap.sessions.swept import SweptSums
from leakcap.sessions.table import NO_NUMBERS, SessionTable, plain_column
from leakcap.worlds import Units

__all__ = ["UNDECLARED", "OverShards", "PartedQuestions", "shard_table"]

PLAIN = ("double", "float", "int64", "int32")  # types whose numbers lie in memory as NumPy's do
OF_NUMBERS = ("sum", "mean", "histogram", "covariance", "quantile")
Exact: TypeAlias = tuple[Ints, Ints | int]  # sums, and how many of their grains a step of the answer has
ADD_UP = ("count", "sum", "mean", "histogram", "covariance", "quantile", "linear")
UNDECLARED = (
    "over partitions answers are sums within declared bounds: give bounds=(low, high), which must not come from the "
    "data, and share= in place of noise= for a mean"
)
NO_SUMS = "{} looks at the rows of many people at once: over partitions ask {}, or open the session with one table"


class _Columns(Mapping[str, npt.NDArray[Any]]):
    """Columns of a shard, each read when it is asked for."""

    def __init__(self, shard: Shard | CarriedShard) -> None:
        self._shard = shard

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._shard.names:
            raise KeyError(name)
        column = self._shard.column(name)
        if not column.null_count and str(column.type) in PLAIN:
            return column.to_numpy()
        return plain_column(column.to_pandas())

    def __contains__(self, name: object) -> bool:
        return name in self._shard.names  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._shard.names)

    def __len__(self) -> int:
        return len(self._shard.names)


@dataclass(frozen=True, eq=False)
class _ShardRows:
    """All cells of a shard, for functions of one person's rows, which see a table."""

    shard: Shard | CarriedShard

    @property
    def rows(self) -> int:
        return self.shard.rows

    @cached_property
    def data(self) -> tuple[Any, ...]:
        import pandas

        frame = pandas.DataFrame({name: self.shard.column(name).to_pandas() for name in self.shard.names})
        return (frame,)


class _ShardUnits(Units):
    """The people of a shard. Whose each row is, is worked out where it is asked for: sweeps do without."""

    def __init__(self, shard: Shard | CarriedShard) -> None:
        for name, value in {"rows": shard.rows, "count": shard.count, "labels": None, "ends": shard.ends()}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def of_row(self) -> Ints | None:  # type: ignore[override]
        if self.rows == self.count:
            return None
        ends: Ints = self.ends  # type: ignore[attr-defined]
        return np.repeat(np.arange(self.count), np.diff(ends, prepend=0))


@dataclass(frozen=True, eq=False)
class _ShardTable(SessionTable):
    """The rows of a shard as the table of a session."""

    by_person = None  # they stand so
    has_names = True  # type: ignore[assignment]  # Arrow's columns have some

    @cached_property
    def columns(self) -> Mapping[str, npt.NDArray[Any]]:  # type: ignore[override]
        return _Columns(self.pool.shard)  # type: ignore[attr-defined]

    @cached_property
    def ends(self) -> Ints:
        return self.units.ends  # type: ignore[attr-defined, no-any-return]


class Dealt(Protocol):
    """People in shards; custodian side."""

    @property
    def shards(self) -> Sequence[Any]:
        """Each with its `people`, a slice of all, and `carried()`."""
        ...

    @property
    def people(self) -> npt.NDArray[Any]: ...

    @property
    def coins(self) -> Bools: ...


class Made(Protocol):
    """One question, as it is asked of every shard."""

    def first(self, shards: Any, noise_given: bool) -> Sums:
        """A question of the same declarations as every shard's."""
        ...

    def brought(self, shard: Any, noise_given: bool) -> Sums:
        """What a shard's people bring."""
        ...


def shard_table(shard: Shard | CarriedShard, rows_per_unit: int | None, own_rows: int, *, quiet: bool) -> SessionTable:
    """A shard as a table; its columns are read when they are asked for."""
    pool: Any = _ShardRows(shard)
    return _ShardTable(pool, _ShardUnits(shard), rows_per_unit, own_rows, quiet=quiet)


@dataclass(frozen=True, eq=False)
class _Making:
    """One question, as it is asked of every shard."""

    kind: str
    question: tuple[Any, ...]
    details: dict[str, Any]
    rows_per_unit: int | None  # declared
    own_rows: int  # the most that somebody has
    block_key: bytes

    def asked(self, shard: Shard | CarriedShard) -> SessionQuestion:
        """Nothing may be said that hangs on which people are in a shard: it is quiet for the custodian too."""
        table = shard_table(shard, self.rows_per_unit, self.own_rows, quiet=True)
        asked: SessionQuestion = getattr(Questions(table, self.block_key, quiet=True), self.kind)(
            *self.question, **self.details
        )
        return asked

    def first(self, shards: Dealt, noise_given: bool) -> Sums:
        """One shard's: but for values and their sums, everything is declared, and the same for all."""
        return self.brought(shards.shards[0], noise_given)

    def brought(self, shard: Shard | CarriedShard, noise_given: bool) -> Sums:
        """What the shard's people bring."""
        made = self.asked(shard).sums(noise_given)
        assert made.public
        return made


@dataclass(frozen=True, eq=False)
class PartedQuestions:
    """What can be asked of people in shards."""

    shards: Shards
    rows_per_unit: int | None  # declared
    block_key: bytes
    quiet: bool
    workers: SealedWorkers | None = None

    def __getattr__(self, kind: str) -> Callable[..., SessionQuestion]:
        if kind not in ADD_UP:
            raise InputError(NO_SUMS.format(kind, "linear, or a quantile with a grid"))
        return lambda *question, **details: self._asked(kind, question, details)

    def _asked(self, kind: str, question: tuple[Any, ...], details: dict[str, Any]) -> SessionQuestion:
        if not self.quiet and kind in OF_NUMBERS and question:
            self._refuse_texts(question[0])
        making = _Making(
            kind, question, details, rows_per_unit=self.most_rows, own_rows=self.shards.most, block_key=self.block_key
        )
        first = making.asked(self.shards.shards[0])

        def sums(noise_given: bool) -> OverShards:
            if not first.public(noise_given):
                raise InputError(UNDECLARED)
            return OverShards(self.shards, making, noise_given, self.workers)

        return SessionQuestion(first.words, sums, first.public)

    @property
    def most_rows(self) -> int | None:
        """Of one person, as declared; rows that are their own people's are one each."""
        return 1 if not self.shards.named else self.rows_per_unit

    def _refuse_texts(self, columns: Any) -> None:
        """What has no numbers anywhere, by its type: shards are asked in silence, and would bring nothing."""
        shard = self.shards.shards[0]
        for name in shard_table(shard, self.rows_per_unit, self.shards.most, quiet=True).names(columns)[0]:
            if not is_of_numbers(shard.column(name).type):
                raise InputError(NO_NUMBERS.format(name))


@dataclass(frozen=True, eq=False)
class OverShards(LikeOther):
    """A question as sums over people in shards, here or where workers have them.

    One pass makes charges and, as most often everybody pays, the sums of everybody whose coin says so. Where somebody
    in a shard cannot pay, that shard is looked at again.
    """

    shards: Dealt
    making: Made
    noise_given: bool
    workers: SealedWorkers | None = None
    _all_pay: dict[int, Exact] = field(default_factory=dict)

    @cached_property
    def other(self) -> Sums:
        """One shard's: what is declared is the same for all."""
        return self.making.first(self.shards, self.noise_given)

    @proves("partitions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """Everybody's, in the order of their numbers."""
        all_pay = np.ones(len(self.shards.people), dtype=bool)
        coins = all_pay if everybody else self.shards.coins
        found = self._worked(range(len(self.shards.shards)), deviations, clock, everybody, coins=coins, pays=all_pay)
        self._all_pay.update({place: total for place, (_, total) in found.items()})
        return np.concatenate([found[place][0] for place in sorted(found)])

    @proves("partitions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Exact, so that the order of shards is none."""
        listed = self.shards.shards
        again = [place for place, one in enumerate(listed) if not pays[one.people].all() or place not in self._all_pay]
        found = self._worked(again, deviations, None, everybody, coins=coins, pays=pays)
        each = {**self._all_pay, **{place: total for place, (_, total) in found.items()}}
        (_, grains), *_ = each.values()
        if any(np.any(others != grains) for _, others in each.values()):
            raise AssertionError("sums in different grains are not added up")
        return sum((total for total, _ in each.values()), np.zeros(self.numbers, dtype=np.int64)), grains, 0.0

    def _worked(
        self,
        places: Iterable[int],
        deviations: Floats,
        clock: Clock | None,
        everybody: bool,
        *,
        coins: Bools,
        pays: Bools,
    ) -> dict[int, tuple[Ints | None, Exact]]:
        """Charges, if a clock is given, and exact sums, of some shards."""
        listed = self.shards.shards
        how = self.making, self.noise_given, deviations, clock, everybody
        items = {place: (*how, coins[listed[place].people], pays[listed[place].people]) for place in places}
        if self.workers is None:
            return {place: _of_shard(listed[place], *item) for place, item in items.items()}
        return dict(self.workers.run(_of_shard, lambda place: listed[place].carried(), items))


def _of_shard(
    shard: Any,
    making: Made,
    noise_given: bool,
    deviations: Floats,
    clock: Clock | None,
    everybody: bool,
    coins: Bools,
    pays: Bools,
) -> tuple[Ints | None, Exact]:
    made = making.brought(shard, noise_given)
    if isinstance(made, SweptSums):
        made = made.expecting(coins)
    charges = None if clock is None else made.charges(deviations, clock, everybody)
    total, grains, more = made.totals(deviations, pays, coins, everybody)
    if np.any(more):
        raise AssertionError("sums about a pool of their own are not added up over shards")
    return charges, (np.asarray(total), grains)
