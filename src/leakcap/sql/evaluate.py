"""From a program to numbers: what everybody brings to each group, made on the whole pool, never on the secret half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sessions.brought import Sums
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.cell_rows import CellRows
from leakcap.sql.aggregates import value_from
from leakcap.sql.catalog import Catalog
from leakcap.sql.cells import RowPlan, numbering
from leakcap.sql.domains import Domain, domain
from leakcap.sql.grouped import grouped
from leakcap.sql.program import Program, SqlRelease
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.relations import without_unread
from leakcap.sql.streamed import LARGEST, streamed
from leakcap.sql.terms import Term, listed_terms

__all__ = [
    "MOST_NUMBERS",
    "CellSums",
    "Engine",
    "GroupCells",
    "answered",
    "cell_sums",
    "in_world",
    "planned",
    "public_table",
    "run_beside",
    "table_of",
]

MOST_NUMBERS = 100_000  # of one question: groups times sums
FEW_GROUPS, FEW_TERMS = 64, 2  # up to here many rows of a person may belong together


class Engine(Protocol):
    """Runs SQL that we wrote, on the catalog's file and on tables that are handed to it."""

    def run(self, sql: str, tables: dict[str, Any]) -> Any:
        """The rows, as an Arrow table."""
        ...


@dataclass(frozen=True, eq=False)
class GroupCells:
    """The groups of a release."""

    release: SqlRelease
    domain: Domain
    keys: Any  # Arrow table of the groups, in order

    @property
    def groups(self) -> int:
        return int(self.keys.num_rows)


@dataclass(frozen=True, eq=False)
class CellSums(GroupCells):
    """What everybody brings to each group of a release; custodian side."""

    rows: CellRows

    def brought(self, coins: Bools, **declared: Any) -> Sums:
        """The same as a question of a session."""
        return BroughtByCell(rows=self.rows, coins=coins, **declared)

    @property
    def people(self) -> int:
        return self.rows.people

    @property
    def units(self) -> Ints:
        """Whose, of each entry."""
        return self.rows.entries[0]

    @property
    def cells(self) -> Ints:
        """To which group, of each entry."""
        return self.rows.entries[1]

    @property
    def values(self) -> Floats:
        """`(entries, sums)`."""
        return self.rows.entries[2]

    def totals(self, mask: Bools) -> Floats:
        """Sums over some people, `(groups, sums)`."""
        here = mask[self.units]
        found = [np.bincount(self.cells[here], column[here], minlength=self.groups) for column in self.values.T]
        return np.stack(found, axis=1)


def cell_sums(release: SqlRelease, catalog: Catalog, engine: Engine, tables: dict[str, Any]) -> CellSums:
    """Sums by person and group."""
    cells, plan = planned(release, catalog, engine, tables)
    rows = plan.rows(partial(run_beside, engine, tables), catalog.people)
    return CellSums(cells.release, cells.domain, cells.keys, rows)


def planned(
    release: SqlRelease, catalog: Catalog, engine: Engine, tables: dict[str, Any]
) -> tuple[GroupCells, RowPlan]:
    """The groups, from public facts, and how to ask for what everybody brings to them."""
    listed = domain(release, catalog)
    keys = _keys(listed, engine, tables) if release.keys else _all_in_one()
    if keys.num_rows * len(release.sums) > MOST_NUMBERS:
        raise NotAnswered(
            f"this asks for more than {MOST_NUMBERS:,} numbers: group by fewer or coarser columns, or keep to some of "
            "the keys with IN (...)"
        )
    terms = listed_terms(release.sums)
    how = streamed if to_stream(terms, keys.num_rows) else grouped
    return GroupCells(release, listed, keys), how(release, numbering(release, keys), terms)


def _keys(listed: Domain, engine: Engine, tables: dict[str, Any]) -> Any:
    rows = without_unread(listed.sql)
    return engine.run(f"SELECT * FROM (SELECT * FROM ({rows}) LIMIT {MOST_NUMBERS + 1}) ORDER BY ALL", tables)


def _all_in_one() -> Any:
    """The list of groups where there is one."""
    import pyarrow

    return pyarrow.table({"one": [1]})


def run_beside(engine: Engine, tables: dict[str, Any], sql: str, beside: dict[str, Any]) -> Any:
    """What the engine finds, with tables that were released before and those of the question."""
    return engine.run(sql, {**tables, **beside})


def to_stream(terms: Sequence[Term], groups: int) -> bool:
    """Whether rows are streamed and added up here, or added up by DuckDB; by public facts alone.

    A row costs us about the same for each of its terms; DuckDB pays for every person and group. So it is DuckDB where
    there are few groups and much to add up, and where whole numbers might not have room in 64 bits.
    """
    exact = all(one.size is not None and one.size <= LARGEST and not one.distinct for one in terms)
    return exact and (groups > FEW_GROUPS or len(terms) <= FEW_TERMS)


def public_table(made: GroupCells, sums: Floats) -> Any:
    """A release as rows that everybody may see: keys and values."""
    tree, release = made.release.tree, made.release
    if tree is not None:
        return table_of(made, tree.read(sums.reshape(-1, tree.nodes)).T)
    pairs = zip(release.aggregates, release.places, strict=True)
    values = [value_from(one)(sums[:, list(places)]) for one, places in pairs]
    return table_of(made, values, release.shows(sums[:, 0]))


def table_of(made: GroupCells, values: Iterable[Floats], shown: Bools | None = None) -> Any:
    """Keys of groups, and beside them numbers; what is none is missing. All groups, or those that are shown."""
    import pyarrow

    release, keys = made.release, made.keys
    names = release.key_names
    if release.tree is not None:  # its nodes are the last key, and are no groups
        names, keys = names[:-1], keys.take(np.arange(0, keys.num_rows, release.tree.nodes))
    columns = {name: keys.column(name) for name in names}
    for name, one in zip(release.value_names, values, strict=True):
        columns[name] = pyarrow.array(one, mask=~np.isfinite(one), type=pyarrow.float64())
    found = pyarrow.table(columns)
    return found if shown is None else found.filter(shown)


def answered(
    program: Program, catalog: Catalog, engine: Engine, release: Callable[[CellSums], Floats]
) -> tuple[Any, list[CellSums]]:
    """The last table, and what was released on the way; `release` gives the sums that may be seen."""
    tables: dict[str, Any] = {}
    made = []
    for one in program.releases:
        found = cell_sums(one, catalog, engine, tables)
        tables[one.table] = public_table(found, release(found))
        made.append(found)
    return engine.run(program.last, tables), made


def in_world(program: Program, catalog: Catalog, engine: Engine, mask: Bools) -> Any:
    """The answer among some people, without noise. Custodian side: it is what noise is for."""
    return answered(program, catalog, engine, lambda found: found.totals(mask))[0]
