"""From files and tables of any kind to one file that can be asked about: units numbered, rows bounded, values clipped.

Everything that depends on who is in a table happens here, once, and before any question: which rows of a person count,
what is cut to its range, which texts there are. Nothing that a query does later can move these limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.sql.catalog import FACTS, UNIT, Catalog, CatalogTable, key_name
from leakcap.sql.columns import KeptColumns
from leakcap.sql.declared import by_column, known_tables, one_column, refuse_other_kinds, rows_by_table
from leakcap.sql.failures import in_words
from leakcap.sql.new_file import new_file
from leakcap.sql.noised_keys import NoisedKeys
from leakcap.sql.owners import AT, End, Owners
from leakcap.sql.prints import contents, own_prints, people_prints, public_print, together
from leakcap.sql.sources import SourceTable, attached, kind_of

__all__ = ["register"]

PART = 2**20  # rows that are worked on at a time where people are taken in parts
KNOWN_BY = 64  # columns, by which a ledger knows tables


def register(
    source: Any,
    *,
    unit: str,
    links: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    rows_per_unit: int | Mapping[str, int] | None = None,
    keys: Mapping[str, Sequence[Any] | NoisedKeys] | None = None,
    public: Sequence[str] = (),
    path: str | Path | None = None,
    order: str = "unit",
) -> Catalog:
    """Make tables ready to be asked about in SQL: `lc.Session(lc.sql.register(...), cap=0.6).sql("select ...")`.

    The rows of a person beyond `rows_per_unit` are left out by an order that your key decides, numbers are cut to their
    `bounds`, and both happen in the whole table before any question. `catalog.report` says what that cost.

    Args:
        source: a table (pandas, polars, Arrow), a CSV, Parquet or DuckDB file, a folder of such files,
            `leakcap.partitions(...)`, whose rows are read once and need not fit in memory, or `{name: any of these}`.
            A single table is called by its file's name, or `data`.
        unit: the column that says whose row it is, as "patient", or "customer.c_custkey" where there are several
            tables.
        links: `{"orders.o_custkey": "customer.c_custkey"}`: columns that hold keys of other tables. The owner of a row
            is found along them, and keys of public tables may be grouped by.
        bounds: `{"age": (0, 120)}`: the range of a column; values beyond are cut. They must not come from the data.
            A column without can be compared and grouped by, not added up.
        rows_per_unit: the most rows of one person, for all private tables, or by table.
        keys: `{"ward": ["A", "B"]}`: values to group by. Text of few values has its own, as this pool has them; and
            `{"town": lc.sql.noised(threshold=50)}` finds them by a noised count of people.
        public: names of the tables that hold nobody's data.
        path: of the file that is made; it must not exist. None: one in a temporary folder, which goes when this
            process ends.
        order: "unit" puts the rows of a person together, which is fastest; "as given" keeps the order.

    Returns:
        The catalog, with a report.

    Raises:
        InputError: a table, a column or a link cannot be used; the sentence says what to do. No file is left behind.
    """
    if order not in ("unit", "as given"):
        raise InputError("order must be 'unit' or 'as given'")
    import duckdb

    work: _Registering | None = None
    with new_file(path) as made:
        file = None
        try:
            file = duckdb.connect(str(made.written))
            file.execute("SET enable_progress_bar = false")
            sources = attached(file, source)
            work = _Registering(
                file=file,
                sources=sources,
                unit=one_column(sources, unit, "unit"),
                links=by_column(sources, links, "links"),
                bounds=by_column(sources, bounds, "bounds"),
                keys=by_column(sources, keys, "keys"),
                public=known_tables(sources, public),
                rows=rows_by_table(sources, rows_per_unit),
                in_order=order == "unit",
            )
            facts = work.done(made.place)
            file.execute("CHECKPOINT")
            file.close()
        except duckdb.Error as error:
            raise InputError(in_words(error, work.reading if work else None)) from None
        finally:
            if file is not None:
                file.close()
        made.whole = True
    return facts.as_it_is()


@dataclass
class _Registering:
    file: Any
    sources: Mapping[str, SourceTable]
    unit: End
    links: Mapping[End, Any]
    bounds: Mapping[End, Any]
    keys: Mapping[End, Any]
    public: frozenset[str]
    rows: Mapping[str, int | None]
    in_order: bool
    report: list[str] = field(default_factory=list)
    reading: str | None = None  # the table that is being read

    def done(self, place: Path) -> Catalog:
        if self.unit[0] in self.public:
            raise InputError(f"{self.unit[0]!r} is said to be public, and to hold the people: it cannot be both")
        self.links = {here: one_column(self.sources, there, "links") for here, there in self.links.items()}
        self._refuse_links()
        owners = Owners(
            file=self.file,
            sources=self.sources,
            unit=self.unit,
            links=self.links,
            public=self.public,
            rows=self.rows,
            in_order=self.in_order,
            report=self.report,
        )
        self.reading = self.unit[0]
        owners.number_people()
        tables = {}
        for at, name in enumerate(owners.in_turn()):
            self.reading = name
            tables[name] = self._table(name, f"t{at}", owners)
        self.reading = None
        self._report_unlisted(tables)
        catalog = self._described(place, tables, owners)
        self.file.execute(f"CREATE TABLE {FACTS} (facts VARCHAR)")
        self.file.execute(f"INSERT INTO {FACTS} VALUES (?)", [catalog.to_json()])
        for source in self.sources.values():
            self.file.execute(f"DROP VIEW IF EXISTS {source.view}")
        return catalog

    def _refuse_links(self) -> None:
        """Links that lead the wrong way, or to what is no key."""
        for here, there in self.links.items():
            if here[0] == self.unit[0] and there[0] not in self.public:
                # A row of this table is its own person's, whoever else it names: equal keys would be two people's.
                raise InputError(
                    f"links: {'.'.join(here)} leads from the table of people to people, who may be others: leave it out"
                )
            if here[0] in self.public and there[0] not in self.public:
                raise InputError(
                    f"links: {'.'.join(here)} leads from a public table to people: leave the link out, or the "
                    "table out of public="
                )
            refuse_other_kinds(self.sources, here, there)
        for table, column in {*self.links.values()}:
            self.reading = table
            source = self.sources[table]
            key = source.columns[column].place
            if self.file.execute(f"SELECT count(*) > count(DISTINCT {key}) FROM {source.view}").fetchone()[0]:
                raise InputError(
                    f"{table}.{column} is the target of a link and repeats, or is missing: drop rows that repeat, or "
                    "link to a key"
                )

    def _table(self, name: str, place: str, owners: Owners) -> CatalogTable:
        private, source = name not in self.public, self.sources[name]
        rows = owners.own(name, place) if private else source.view
        kept = KeptColumns(
            self.file, name, rows, bounds=self.bounds, keys=self.keys, public=not private, report=self.report
        )
        columns = []
        for column, given in source.columns.items():
            here = (name, column)
            identity = owners.identity(here)
            linked = here in self.links or here in self.links.values()
            made = kept.column(column, given, linked=linked, names_people=identity is not None)
            if made is None:
                continue
            target = self.links.get(here)
            made = replace(
                made,
                identity=identity,
                refers=key_name(*target) if target and target[0] in self.public else None,
                unique=here in self.links.values(),
                key=identity is not None,
            )
            columns.append((made, given))
        if not columns:
            raise InputError(f"no column of {name!r} can be asked about: make them text, numbers or dates")
        listed = ", ".join(f"{kept.written(made, given)} AS {made.place}" for made, given in columns)
        hidden = f"{UNIT}, " if private else ""
        sort = f"ORDER BY {UNIT if self.in_order else AT}" if private else ""
        self.file.execute(f"CREATE TABLE {place} AS SELECT {hidden}{listed} FROM {rows} {sort}")
        kept.report_cuts(columns)
        made_columns = tuple(one for one, _ in columns)
        return CatalogTable(name, place, private, made_columns, most_rows=self.rows[name] if private else None)

    def _report_unlisted(self, tables: Mapping[str, CatalogTable]) -> None:
        """Keys of public tables that are not listed there: their rows are in no group."""
        for here, there in self.links.items():
            if there[0] not in self.public or here[0] in self.public:
                continue
            (near, one), (far, other) = ((tables[end[0]], tables[end[0]].column(end[1])) for end in (here, there))
            assert one is not None and other is not None
            lost, rows = self.file.execute(
                f"SELECT count(*) FILTER ({one.place} NOT IN (SELECT {other.place} FROM {far.place})), "
                f"count({one.place}) FROM {near.place}"
            ).fetchone()
            if lost:
                self.report.append(
                    f"{'.'.join(here)}: {lost:,} of {rows:,} values have no partner in {there[0]}: they are in no group"
                )

    def _described(self, place: Path, tables: Mapping[str, CatalogTable], owners: Owners) -> Catalog:
        """The catalog, and a print of everybody's rows beside their numbers."""
        people = int(self.file.execute(f"SELECT count(*) FROM {UNIT}").fetchone()[0])
        given = own_prints(self.file, owners.prints, UNIT, people)
        self.file.execute(f"ALTER TABLE {UNIT} ADD COLUMN print BIGINT")
        self.file.register("prints", {"who": np.arange(people), "print": given})
        self.file.execute(f"UPDATE {UNIT} SET print = p.print FROM prints p WHERE p.who = {UNIT}.{UNIT}")
        self.file.unregister("prints")
        return Catalog(
            place,
            tables,
            people,
            print=together(given),
            kept=together(*people_prints(self.file, tables.values(), UNIT)),
            contents=self._contents(),
            report=tuple(self.report),
            person=key_name(*self.unit),
            public_print=public_print(self.file, tables.values()),
            engine=_engine(),
            parts=-(-self._private_rows(tables) // PART),
        )

    def _private_rows(self, tables: Mapping[str, CatalogTable]) -> int:
        counts = (self.file.execute(f"SELECT count(*) FROM {one.place}") for one in tables.values() if one.private)
        return sum(int(one.fetchone()[0]) for one in counts)

    def _contents(self) -> tuple[str, ...]:
        """By which the same people's tables are known, however they are registered."""
        found: set[str] = set()
        for name, source in self.sources.items():
            kinds = {one.place: kind_of(one.type)[0] for one in source.columns.values()}
            told = [place for place, kind in kinds.items() if kind in ("int", "decimal", "float", "text")]
            if name not in self.public and told:
                found |= set(contents(self.file, source.view, told))
        return tuple(sorted(found))[:KNOWN_BY]


def _engine() -> str:
    import duckdb

    return str(duckdb.__version__)
