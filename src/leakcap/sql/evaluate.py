"""From a program to numbers: what everybody brings to each group, made on the whole pool, never on the secret half."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sql.aggregates import value_from
from leakcap.sql.catalog import Catalog
from leakcap.sql.domains import Domain, domain
from leakcap.sql.program import Program, SqlRelease
from leakcap.sql.refusals import NotAnswered

__all__ = ["MOST_NUMBERS", "CellSums", "Engine", "answered", "cell_sums", "in_world", "table_of"]

MOST_NUMBERS = 100_000  # of one question: groups times sums


class Engine(Protocol):
    """Runs SQL that we wrote, on the catalog's file and on tables that are handed to it."""

    def run(self, sql: str, tables: dict[str, Any]) -> Any:
        """The rows, as an Arrow table."""
        ...


@dataclass(frozen=True, eq=False)
class CellSums:
    """What everybody brings to each group of a release; custodian side."""

    release: SqlRelease
    domain: Domain
    keys: Any  # Arrow table of the groups, in order
    people: int
    units: Ints  # (entries,): whose
    cells: Ints  # (entries,): to which group
    values: Floats  # (entries, sums)

    @property
    def groups(self) -> int:
        return int(self.keys.num_rows)

    def totals(self, mask: Bools) -> Floats:
        """Sums over some people, `(groups, sums)`."""
        here = mask[self.units]
        found = [np.bincount(self.cells[here], column[here], minlength=self.groups) for column in self.values.T]
        return np.stack(found, axis=1)


def cell_sums(release: SqlRelease, catalog: Catalog, engine: Engine, tables: dict[str, Any]) -> CellSums:
    """Sums by person and group."""
    listed = domain(release, catalog)
    keys = engine.run(f"SELECT * FROM ({listed.sql}) LIMIT {MOST_NUMBERS + 1}", tables)
    if keys.num_rows * len(release.sums) > MOST_NUMBERS:
        raise NotAnswered(
            f"this asks for more than {MOST_NUMBERS:,} numbers: group by fewer or coarser columns, or keep to some of "
            "the keys with IN (...)"
        )
    keys = _in_order(keys)
    sql = _contributions(release)
    numbered = keys.append_column("cell", _arange(keys.num_rows)) if release.keys else keys
    found = engine.run(sql, {**tables, "keys": numbered} if release.keys else tables)
    names = found.column_names
    values = np.stack([_floats(found.column(name)) for name in names[2:]], axis=1)
    return CellSums(
        release=release,
        domain=listed,
        keys=keys,
        people=catalog.people,
        units=_ints(found.column("unit")),
        cells=_ints(found.column("cell")),
        values=values,
    )


def _contributions(release: SqlRelease) -> str:
    base = release.base
    sums = ", ".join(f"{one.sql} AS s{at}" for at, one in enumerate(release.sums))
    if not release.keys:
        return f"SELECT {base.unit} AS unit, 0 AS cell, {sums} FROM ({base.sql}) GROUP BY {base.unit}"
    match = " AND ".join(
        f"{one.safe} IS NOT DISTINCT FROM keys.{name}"
        for one, name in zip(release.keys, release.key_names, strict=True)
    )
    return f"SELECT {base.unit} AS unit, cell, {sums} FROM ({base.sql}) JOIN keys ON {match} GROUP BY {base.unit}, cell"


def public_table(made: CellSums, sums: Floats) -> Any:
    """A release as rows that everybody may see: keys and values."""
    tree, release = made.release.tree, made.release
    if tree is not None:
        return table_of(made, tree.read(sums.reshape(-1, tree.nodes)).T)
    pairs = zip(release.aggregates, release.places, strict=True)
    values = [value_from(one)(sums[:, list(places)]) for one, places in pairs]
    return table_of(made, values, release.shows(sums[:, 0]))


def table_of(made: CellSums, values: Iterable[Floats], shown: Bools | None = None) -> Any:
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


def _in_order(keys: Any) -> Any:
    return keys.sort_by([(name, "ascending") for name in keys.column_names]) if keys.num_rows > 1 else keys


def _arange(count: int) -> Any:
    import pyarrow

    return pyarrow.array(np.arange(count, dtype=np.int32))


def _ints(one: Any) -> Ints:
    return np.asarray(one.to_numpy(), dtype=np.intp)


def _floats(one: Any) -> Floats:
    return np.asarray(one.to_numpy(), dtype=np.float64)
