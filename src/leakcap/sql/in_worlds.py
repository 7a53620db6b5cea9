"""A question in every world of a list: what everybody brings is made once on the pool, then the worlds pick.

No world is ever queried, the secret one no more than another. Sums are the contributions of those who are in; what is
no sum follows from who holds which value (`holders`). All outputs exist before anything is drawn, and what becomes of
them is the desk's, as of any function's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.cores import on_all_cores, threads
from leakcap.ground.proofs import proves
from leakcap.kernels.moments.sums import masked_sums
from leakcap.sessions.questions import for_json
from leakcap.simulate import Forecast, Outputs
from leakcap.simulate.nodes import Array
from leakcap.sql.aggregates import SumOf
from leakcap.sql.catalog import Catalog
from leakcap.sql.evaluate import CellSums, Engine, cell_sums
from leakcap.sql.holders import Holders, holders
from leakcap.sql.program import SqlRelease
from leakcap.sql.refusals import NotAnswered
from leakcap.worlds import Worlds

__all__ = ["InWorlds", "SqlOfWorlds", "in_worlds"]

MOST_AT_ONCE = 1_000  # of one answer: each is priced, drawn and stored by itself
FEW_ENTRIES = 2**14  # below, one thread does it
SPARSE, LARGE = 4, 2**21  # cohorts times groups, in entries, and at least: from there on most are left out
ROUNDING = 1e-12  # of sums, relative to what is added up


@dataclass(frozen=True, eq=False)
class InWorlds:
    """What is known of a release on the pool, from which every world's numbers follow; custodian side.

    Attributes:
        made: contributions to the sums of the release.
        held: who holds which value, for each number that is no sum.
        cohort_of: `(people,)`, everybody's cohort, where worlds are halves of cohorts.
    """

    made: CellSums
    held: tuple[Holders, ...]
    cohort_of: Ints | None = None

    @proves("unit-local", "cohorts")
    def table(self, worlds: Worlds) -> Floats:
        """`(worlds, groups, numbers)`: every number of the release in every world, sums first.

        Guarantee: each row is what the release gives on the rows of that world's people alone, up to the rounding of
        sums. Worlds are over people, or over cohorts, in which case a world's people are those of its cohorts.
        """
        sums = _of_entries(self.made, worlds) if self.cohort_of is None else self._of_cohorts(worlds, self.cohort_of)
        values = [one.in_worlds(worlds, self.made.groups, self.cohort_of) for one in self.held]
        found = np.concatenate([_flat(sums, self.made), *(one[:, :, None] for one in values)], axis=2)
        return found[:, :, self.asked]

    def _of_cohorts(self, worlds: Worlds, cohort_of: Ints) -> Floats:
        """Sums of cohorts, and then of the cohorts of every world."""
        groups, values = self.made.groups, self.made.values
        cohorts = cohort_of[self.made.units]
        if worlds.n * groups > max(LARGE, SPARSE * len(cohorts)):
            return _of_few(cohorts, self.made, worlds)
        place = cohorts * groups + self.made.cells
        brought = [np.bincount(place, one, worlds.n * groups).astype(np.float64) for one in values.T]
        found = masked_sums(np.stack(brought, axis=1).reshape(worlds.n, groups * values.shape[1]), worlds)
        return found.reshape(worlds.m, groups, values.shape[1])

    def of(self, mask: Bools) -> Floats:
        """`(groups, numbers)`, of some people alone: what `table` has to say of them, made person by person."""
        values = [one.of(mask, self.made.groups)[:, None] for one in self.held]
        return np.concatenate([self.made.totals(mask), *values], axis=1)[:, self.asked]

    @property
    def asked(self) -> slice:
        """The numbers that are asked for: where nothing is added up, groups were listed with a count all the same."""
        return slice(0, None) if len(self.made.release.sums) else slice(1, None)


def in_worlds(
    release: SqlRelease, catalog: Catalog, engine: Engine, tables: dict[str, Any], cohort_of: Ints | None = None
) -> InWorlds:
    """Evaluate a release on the pool, once."""
    counted = release if release.sums else replace(release, sums=(SumOf(()),))  # whose groups are listed with a sum
    made = cell_sums(counted, catalog, engine, tables)
    made = replace(made, release=release)
    held = tuple(holders(one, release, made.keys, engine=engine, tables=tables) for one in release.held)
    return InWorlds(made, held, cohort_of)


def _flat(sums: Floats, made: CellSums) -> Floats:
    """What differs between worlds by rounding alone is made equal: its last digits would name the world."""
    sizes = [np.bincount(made.cells, np.abs(one), minlength=made.groups) for one in made.values.T]
    same = np.ptp(sums, axis=0) <= ROUNDING * np.stack(sizes, axis=1)
    return np.where(same, sums.mean(axis=0), sums)


def _of_entries(made: CellSums, worlds: Worlds) -> Floats:
    """`(worlds, groups, sums)` of those who are in, by a compiled loop; of two complementary worlds one is added up."""
    from leakcap.sql._world_loops import add_entries

    packed = worlds.packed[: worlds.m // 2] if worlds.paired else worlds.packed
    shape = (made.groups, made.values.shape[1], len(packed))
    order = np.argsort(made.units, kind="stable")
    units, cells, values = made.units[order], made.cells[order], np.ascontiguousarray(made.values[order])
    share = max(FEW_ENTRIES, -(-len(units) // threads()))

    def add(first: int) -> Floats:
        found, some = np.zeros(shape), slice(first, first + share)
        add_entries(units[some], cells[some], values[some], packed, found)
        return found

    parts = on_all_cores(add, range(0, max(1, len(units)), share))
    half = np.moveaxis(np.sum(parts, axis=0), -1, 0)
    return np.concatenate([half, made.totals(np.ones(made.people, dtype=bool)) - half]) if worlds.paired else half


def _of_few(cohorts: Ints, made: CellSums, worlds: Worlds) -> Floats:
    """The same where most cohorts have nobody in most groups: what there is times the masks."""
    from scipy.sparse import csr_array

    inside = worlds.columns(slice(0, worlds.n)).T.astype(np.float64)
    shape = (made.groups, worlds.n)
    sums = [csr_array((one, (made.cells, cohorts)), shape=shape) @ inside for one in made.values.T]
    return np.stack(sums, axis=-1).swapaxes(0, 1)


@dataclass(frozen=True, eq=False)
class SqlOfWorlds:
    """A release of a question in SQL, as the desk of listed worlds asks it."""

    words: dict[str, Any]
    known: InWorlds
    scale: float = 1.0

    def text(self, **how: Any) -> str:
        """The same for the same question."""
        return json.dumps({**self.words, **how}, sort_keys=True, default=for_json)

    def in_worlds(self, worlds: Worlds) -> Outputs:
        """The numbers in every world, sums from a half of the people to all of them."""
        release, groups = self.known.made.release, self.known.made.groups
        if groups * release.numbers > MOST_AT_ONCE:
            raise NotAnswered(
                f"a list of worlds answers at most {MOST_AT_ONCE:,} numbers at once, and this asks for more: group by "
                "fewer or coarser columns, or ask in a session with design='bits'"
            )
        table = self.known.table(worlds)
        table[:, :, : len(release.sums)] *= 2
        table = table.reshape(worlds.m, -1)
        form = Array((table.shape[1],), np.dtype(np.float64))
        return Outputs(table, form, None, Forecast(worlds.m, 1, 0.0, table.nbytes))
