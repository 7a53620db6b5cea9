"""Questions about data in partitions: everybody's part is made where their rows lie, and exact sums are added up.

Every shard is a table of some of the people, of which the questions of one machine make what they bring. Charges are
theirs alone, and sums are whole numbers of grains: so both are the same, bit for bit, however people are dealt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.cluster.parted import Shard, Shards
from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Brought, Limits, Sums, Totals
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import GRAINS
from leakcap.sessions.questions import Questions, SessionQuestion
from leakcap.sessions.table import SessionTable, plain_column
from leakcap.worlds import Units

__all__ = ["OverShards", "PartedQuestions"]

ADD_UP = ("count", "sum", "mean", "histogram", "covariance", "quantile", "linear")
UNDECLARED = (
    "over partitions answers are sums within declared bounds: give bounds=(low, high), which must not come from the "
    "data, and share= in place of noise= for a mean"
)
NO_SUMS = "{} looks at the rows of many people at once: over partitions ask {}, or open the session with one table"


class _Columns(Mapping[str, npt.NDArray[Any]]):
    """Columns of a shard, each read when it is asked for."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._shard.names:
            raise KeyError(name)
        return plain_column(self._shard.column(name).to_pandas())

    def __iter__(self) -> Iterator[str]:
        return iter(self._shard.names)

    def __len__(self) -> int:
        return len(self._shard.names)


@dataclass(frozen=True, eq=False)
class _ShardRows:
    """All cells of a shard, for functions of one person's rows, which see a table."""

    shard: Shard

    @property
    def rows(self) -> int:
        return self.shard.rows

    @cached_property
    def data(self) -> tuple[Any, ...]:
        import pandas

        frame = pandas.DataFrame({name: self.shard.column(name).to_pandas() for name in self.shard.names})
        return (frame,)


@dataclass(frozen=True, eq=False)
class _ShardTable(SessionTable):
    """The rows of a shard as the table of a session."""

    @cached_property
    def columns(self) -> Mapping[str, npt.NDArray[Any]]:  # type: ignore[override]
        return _Columns(self.pool.shard)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class PartedQuestions:
    """What can be asked of people in shards."""

    shards: Shards
    rows_per_unit: int | None  # declared
    block_key: bytes
    quiet: bool

    def __getattr__(self, kind: str) -> Callable[..., SessionQuestion]:
        if kind not in ADD_UP:
            raise InputError(NO_SUMS.format(kind, "linear, or a quantile with a grid"))
        return lambda *question, **details: self._asked(kind, question, details)

    def _asked(self, kind: str, question: tuple[Any, ...], details: dict[str, Any]) -> SessionQuestion:
        first = getattr(self._of(self.shards.shards[0]), kind)(*question, **details)

        def sums(noise_given: bool) -> OverShards:
            if not first.public(noise_given):
                raise InputError(UNDECLARED)

            def brought(shard: Shard) -> Brought:
                made = getattr(self._of(shard), kind)(*question, **details).sums(noise_given)
                assert isinstance(made, Brought) and made.public
                return made

            return OverShards(self.shards, brought)

        return SessionQuestion(first.words, sums, first.public)

    def _of(self, shard: Shard) -> Questions:
        """Of a shard nothing may be said that hangs on which people are in it: it is quiet for the custodian too."""
        units = Units(shard.rows, shard.people.stop - shard.people.start, shard.of_row())
        most = 1 if not self.shards.named else self.rows_per_unit
        pool: Any = _ShardRows(shard)
        return Questions(_ShardTable(pool, units, most, self.shards.most, quiet=True), self.block_key, quiet=True)


@dataclass(frozen=True, eq=False)
class OverShards:
    """A question as sums over people in shards.

    One pass makes charges and, as most often everybody pays, the sums of everybody whose coin says so. Where somebody
    in a shard cannot pay, that shard is looked at again.
    """

    shards: Shards
    brought: Callable[[Shard], Brought]
    _all_pay: dict[int, Totals] = field(default_factory=dict)

    @cached_property
    def _first(self) -> Sums:
        """One shard's: but for values and their sums, everything is declared, and the same for all."""
        return self.brought(self.shards.shards[0])

    @property
    def public(self) -> bool:
        return True

    @property
    def limits(self) -> Limits:
        return self._first.limits

    @property
    def scale(self) -> Floats | float | None:
        return self._first.scale

    @property
    def finish(self) -> Callable[[Floats], Any]:
        return self._first.finish

    @property
    def halving(self) -> Callable[[Floats], Floats] | None:
        return self._first.halving

    @property
    def numbers(self) -> int:
        return self._first.numbers

    def factor(self, everybody: bool) -> float:
        return self._first.factor(everybody)

    def rounded(self, deviations: Floats, everybody: bool) -> Floats:
        return self._first.rounded(deviations, everybody)

    @proves("partitions")
    def charges(self, deviations: Floats, clock: Clock, everybody: bool) -> Ints:
        """Everybody's, in the order of their numbers."""
        found = []
        for shard in self.shards:
            made = self.brought(shard)
            found.append(made.charges(deviations, clock, everybody))
            coins = np.ones(len(found[-1]), dtype=bool) if everybody else self.shards.coins[shard.people]
            everyone = np.ones(len(coins), dtype=bool)
            self._all_pay[shard.place] = made.totals(deviations, everyone, coins, everybody)
        return np.concatenate(found)

    @proves("partitions")
    def totals(self, deviations: Floats, pays: Bools, coins: Bools, everybody: bool) -> Totals:
        """Exact, so that the order of shards is none."""
        total, grains = np.zeros(self.numbers, dtype=np.int64), GRAINS
        for shard in self.shards:
            own = pays[shard.people]
            if own.all() and shard.place in self._all_pay:
                sums = self._all_pay[shard.place][0]
            else:
                sums = self.brought(shard).totals(deviations, own, coins[shard.people], everybody)[0]
            total += sums
        return total, grains, 0.0
