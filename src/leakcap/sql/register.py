"""From files and tables of any kind to one file that can be asked about: units numbered, rows bounded, values clipped.

Everything that depends on who is in a table happens here, once, and before any question: which rows of a person count,
what is cut to its range, which texts there are. Nothing that a query does later can move these limits.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.custody.keys import own_key
from leakcap.errors import InputError
from leakcap.sql.catalog import FACTS, UNIT, Catalog, CatalogColumn, CatalogTable
from leakcap.sql.declared import (
    by_column,
    checked_ends,
    gone,
    in_words,
    known_tables,
    new_file,
    one_column,
    rows_by_table,
)
from leakcap.sql.noised_keys import NoisedKeys, split_keys
from leakcap.sql.sources import attached, kind_of, quoted

__all__ = ["register"]

FEW = 64  # different texts, up to which a column of text is one of levels


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
        source: a table (pandas, polars, Arrow), a CSV, Parquet or DuckDB file, a folder of such files, or
            `{name: any of these}`. A single table is called by its file's name, or `data`.
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
        path: of the file that is made; it must not exist. None: one in a temporary folder.
        order: "unit" puts the rows of a person together, which is fastest; "as given" keeps the order.

    Returns:
        The catalog, with a report.

    Raises:
        InputError: a table, a column or a link cannot be used; the sentence says what to do.
    """
    if order not in ("unit", "as given"):
        raise InputError("order must be 'unit' or 'as given'")
    import duckdb

    place = new_file(path)
    file = duckdb.connect(str(place))
    try:
        os.chmod(place, 0o600)
        sources = attached(file, source)
        work = _Registering(
            file=file,
            sources=sources,
            links=by_column(sources, links, "links"),
            bounds=by_column(sources, bounds, "bounds"),
            keys=by_column(sources, keys, "keys"),
            public=known_tables(sources, public),
            rows=rows_by_table(sources, rows_per_unit),
            in_order=order == "unit",
        )
        facts = work.done(one_column(sources, unit, "unit"), place)
        file.execute("CHECKPOINT")
    except duckdb.Error as error:
        gone(file, place)
        raise InputError(in_words(error)) from None
    except BaseException:
        gone(file, place)
        raise
    file.close()
    return facts


@dataclass
class _Registering:
    file: Any
    sources: Mapping[str, Mapping[str, str]]  # columns and types by table
    links: Mapping[tuple[str, str], Any]
    bounds: Mapping[tuple[str, str], Any]
    keys: Mapping[tuple[str, str], Any]
    public: frozenset[str]
    rows: Mapping[str, int | None]
    in_order: bool
    report: list[str] = field(default_factory=list)

    def done(self, unit: tuple[str, str], place: Path) -> Catalog:
        if unit[0] in self.public:
            raise InputError(f"{unit[0]!r} is said to be public, and to hold the people: it cannot be both")
        links = {here: one_column(self.sources, there, "links") for here, there in self.links.items()}
        for here, there in links.items():
            if here[0] == unit[0] and there[0] not in self.public:
                # A row of this table is its own person's, whoever else it names: equal keys would be two people's.
                raise InputError(
                    f"links: {'.'.join(here)} leads from the table of people to people, who may be others: leave it out"
                )
        for there in {*links.values()}:
            self._refuse_repeats(there)
        self._number_people(unit)
        tables, prints = {}, []
        for at, name in enumerate(self._in_turn(unit, links)):
            made = self._table(name, f"t{at}", unit, links)
            tables[name] = made
            if made.private:
                prints.append(made.place)
        people = self._print_people(prints, tables)
        whole = self.file.execute(f"SELECT {UNIT}, print FROM {UNIT} ORDER BY {UNIT}").fetchnumpy()
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in whole.values())).hexdigest()
        catalog = Catalog(place, tables, people, print=digest, report=tuple(self.report), person=".".join(unit))
        self.file.execute(f"CREATE TABLE {FACTS} (facts VARCHAR)")
        self.file.execute(f"INSERT INTO {FACTS} VALUES (?)", [catalog.to_json()])
        for name in self.sources:
            self.file.execute(f"DROP VIEW IF EXISTS {quoted('source ' + name)}")
        return catalog

    def _in_turn(self, unit: tuple[str, str], links: Mapping[tuple[str, str], tuple[str, str]]) -> list[str]:
        """Private tables after those that own them, then public ones."""
        found, left = [unit[0]], [one for one in self.sources if one != unit[0] and one not in self.public]
        while left:
            ready = [
                one
                for one in left
                if any(here[0] == one and there[0] in found for here, there in links.items())
                or (unit[1] in self.sources[one] and not any(here[0] == one for here in links))
            ]
            if not ready:
                raise InputError(
                    f"table {left[0]!r} does not say whose its rows are: give links={{'{left[0]}.column': "
                    f"'{unit[0]}.key'}}, or name it in public= if it holds nobody's data"
                )
            found += ready
            left = [one for one in left if one not in ready]
        return found + [one for one in self.sources if one in self.public]

    def _refuse_repeats(self, there: tuple[str, str]) -> None:
        table, column = there
        view, key = quoted("source " + table), quoted(column)
        if self.file.execute(f"SELECT count(*) > count(DISTINCT {key}) FROM {view}").fetchone()[0]:
            raise InputError(f"{table}.{column} is the target of a link and repeats, or is missing: link to a key")

    def _number_people(self, unit: tuple[str, str]) -> None:
        view, key = quoted("source " + unit[0]), quoted(unit[1])
        missing, rows = self.file.execute(f"SELECT count(*) FILTER ({key} IS NULL), count(*) FROM {view}").fetchone()
        if not rows:
            raise InputError(f"table {unit[0]!r} has no rows: there is nobody to ask about")
        if missing:
            raise InputError(f"{missing:,} rows of {unit[0]!r} do not say whose they are: fill in or drop them first")
        self.file.execute(
            f"CREATE TABLE {UNIT} AS SELECT (row_number() OVER (ORDER BY {key}) - 1)::INTEGER AS {UNIT}, {key} AS name "
            f"FROM (SELECT DISTINCT {key} FROM {view})"
        )

    def _owners(
        self,
        name: str,
        unit: tuple[str, str],
        links: Mapping[tuple[str, str], tuple[str, str]],
        made: Mapping[str, Any],
    ) -> str:
        """Rows of a table with the number of their owner: columns of the source, then `unit`."""
        view = quoted("source " + name)
        if name == unit[0] or not any(here[0] == name for here in links):
            return f"SELECT s.*, u.{UNIT} FROM {view} s LEFT JOIN {UNIT} u ON u.name = s.{quoted(unit[1])}"
        up = [(here[1], there) for here, there in links.items() if here[0] == name and there[0] not in self.public]
        if len(up) != 1:
            raise InputError(
                f"table {name!r} has {len(up)} links to tables of people: the owner of a row is found along one link"
            )
        column, (parent, _) = up[0]
        place = made[parent]
        return f"SELECT s.*, p.{UNIT} FROM {view} s LEFT JOIN owners_{place} p ON p.key = s.{quoted(column)}"

    def _table(
        self, name: str, place: str, unit: tuple[str, str], links: Mapping[tuple[str, str], tuple[str, str]]
    ) -> CatalogTable:
        private = name not in self.public
        if private:
            self.places = {**getattr(self, "places", {}), name: place}
            self.file.execute(f"CREATE TEMP TABLE rows_{place} AS {self._owners(name, unit, links, self.places)}")
            self._refuse_unowned(name, place)
            for key in {there[1] for there in links.values() if there[0] == name}:
                self.file.execute(  # before rows are left out: whose the rows are that hang on them does not change
                    f"CREATE TEMP TABLE owners_{place} AS SELECT {quoted(key)} AS key, {UNIT} FROM rows_{place}"
                )
            self._keep_few(name, place)
        else:
            self.file.execute(f"CREATE TEMP VIEW rows_{place} AS SELECT * FROM {quoted('source ' + name)}")
        columns, written = [], []
        for at, (column, given) in enumerate(self.sources[name].items()):
            identity = self._identity((name, column), unit, links, private)
            made = self._column(name, column, given, at=at, place=place, names_people=identity is not None)
            if made is None:
                continue
            target = links.get((name, column))
            made = replace(
                made,
                identity=identity,
                refers=".".join(target) if target and target[0] in self.public else None,
                unique=(name, column) in links.values(),
                key=identity is not None,
                gaps=identity is None and self._has_gaps(column, place, made.kind),
            )
            columns.append(made)
            written.append(f"{self._written(made, column)} AS {made.place}")
        sort = ("ORDER BY " + UNIT if self.in_order else "") if private else ""
        hidden = f"{UNIT}, " if private else ""
        self.file.execute(f"CREATE TABLE {place} AS SELECT {hidden}{', '.join(written)} FROM rows_{place} {sort}")
        self._report_cuts(name, place, columns)
        return CatalogTable(name, place, private, tuple(columns), most_rows=self.rows[name] if private else None)

    def _refuse_unowned(self, name: str, place: str) -> None:
        lost = self.file.execute(f"SELECT count(*) FROM rows_{place} WHERE {UNIT} IS NULL").fetchone()[0]
        if lost:
            raise InputError(
                f"{lost:,} rows of {name!r} have no partner along their link, so that nobody owns them: mend the link, "
                "or drop these rows first"
            )

    def _keep_few(self, name: str, place: str) -> None:
        """At most so many rows of one person, by an order that only the custodian knows; nobody else's rows decide."""
        most = self.rows[name]
        if most is None:
            return
        places = self.file.execute(
            f"SELECT rowid AS r, {UNIT} AS u FROM rows_{place} WHERE {UNIT} IN "
            f"(SELECT {UNIT} FROM rows_{place} GROUP BY {UNIT} HAVING count(*) > {most}) ORDER BY u, r"
        ).fetchnumpy()
        rows, owners = np.asarray(places["r"]), np.asarray(places["u"])
        if not len(rows):
            return
        key, dropped, start = hmac.digest(own_key(), b"rows of one person", "sha256"), [], 0
        for end in [*(np.flatnonzero(np.diff(owners)) + 1), len(rows)]:
            own = rows[start:end]
            by = [
                hashlib.blake2b(f"{owners[start]} {k}".encode(), key=key, digest_size=8).digest()
                for k in range(len(own))
            ]
            dropped.append(own[sorted(range(len(own)), key=by.__getitem__)[most:]])
            start = end
        gone = np.concatenate(dropped)
        self.file.register("gone", {"r": gone})
        self.file.execute(f"DELETE FROM rows_{place} WHERE rowid IN (SELECT r FROM gone)")
        self.file.unregister("gone")
        whole = len(gone) + self.file.execute(f"SELECT count(*) FROM rows_{place}").fetchone()[0]
        self.report.append(
            f"{name}: {len(gone):,} of {whole:,} rows left out, beyond {most} of one person "
            f"({len(dropped):,} people have more)"
        )

    def _column(
        self, table: str, column: str, given: str, *, at: int, place: str, names_people: bool
    ) -> CatalogColumn | None:
        kind, digits = kind_of(given)
        if kind is None:
            self.report.append(f"{table}.{column}: left out, columns of type {given} cannot be asked about")
            return None
        low, high = checked_ends(table, column, kind, self.bounds.get((table, column)))
        if low is None and table in self.public and kind in ("int", "decimal", "float", "date"):
            low, high = self._public_range(column, kind, place)
        levels, noised = split_keys(self.keys.get((table, column)), f"{table}.{column}", public=table in self.public)
        declared = levels is not None
        if levels is None and noised is None and kind == "text" and not names_people:
            key = quoted(column)
            some = self.file.execute(
                f"SELECT DISTINCT {key}::VARCHAR FROM rows_{place} WHERE {key} IS NOT NULL LIMIT {FEW + 1}"
            ).fetchall()
            levels = sorted(row[0] for row in some) if len(some) <= FEW else None
        return CatalogColumn(
            name=column,
            place=f"c{at}",
            kind=kind,
            digits=digits,
            low=low,
            high=high,
            levels=None if levels is None else tuple(levels),
            declared=declared,
            noised=noised,
        )

    def _has_gaps(self, column: str, place: str, kind: str) -> bool:
        key = quoted(column)
        finite = f"AND isfinite(TRY_CAST({key} AS DOUBLE))" if kind == "float" else ""
        return bool(
            self.file.execute(
                f"SELECT count(*) > count(*) FILTER ({key} IS NOT NULL {finite}) FROM rows_{place}"
            ).fetchone()[0]
        )

    def _public_range(self, column: str, kind: str, place: str) -> tuple[Any, Any]:
        """The range of a public column, which may be read off."""
        key = f"TRY_CAST({quoted(column)} AS {'DATE' if kind == 'date' else 'DOUBLE'})"
        low, high = self.file.execute(
            f"SELECT min({key}), max({key}) FROM rows_{place} WHERE isfinite({key})"
        ).fetchone()
        return (low, high) if low is not None and low < high else (None, None)

    def _written(self, made: CatalogColumn, column: str) -> str:
        """The column as it is kept: whole, within its range, and a number where it is one."""
        key = quoted(column)
        if made.kind == "float":
            key = f"(CASE WHEN isfinite({key}::DOUBLE) THEN {key}::DOUBLE END)"
        elif made.kind == "int":
            key = f"TRY_CAST({key} AS BIGINT)"
        elif made.kind == "text":
            key = f"{key}::VARCHAR"
        elif made.kind == "timestamp":
            key = f"(CASE WHEN isfinite({key}) THEN {key}::TIMESTAMP END)"
        elif made.kind == "date":
            key = f"(CASE WHEN isfinite({key}) THEN {key} END)"
        if made.low is not None:
            low, high = (
                f"'{one}'::{made.kind}" if made.kind in ("date", "timestamp") else repr(one)
                for one in (made.low, made.high)
            )
            kept = f"CASE WHEN {key} < {low} THEN {low} WHEN {key} > {high} THEN {high} ELSE {key} END"
            kinds = {
                "int": "BIGINT",
                "float": "DOUBLE",
                "decimal": f"DECIMAL({made.digits[0]},{made.digits[1]})" if made.digits else "",
            }
            return f"CAST({kept} AS {kinds.get(made.kind, made.kind)})"
        return key

    def _report_cuts(self, name: str, place: str, columns: Sequence[CatalogColumn]) -> None:
        for one in columns:
            if one.low is None:
                continue
            key = quoted(one.name)
            cut, rows = self.file.execute(
                f"SELECT count(*) FILTER ({key} < ? OR {key} > ?), count({key}) FROM rows_{place}", [one.low, one.high]
            ).fetchone()
            if cut:
                self.report.append(f"{name}.{one.name}: {cut:,} of {rows:,} values cut to {one.low} to {one.high}")

    def _identity(
        self,
        here: tuple[str, str],
        unit: tuple[str, str],
        links: Mapping[tuple[str, str], tuple[str, str]],
        private: bool,
    ) -> str | None:
        """The key of a table of people that this column is, or holds."""
        if not private:
            return None
        there = links.get(here)
        if there is not None and there[0] not in self.public:
            return ".".join(there)
        if here == unit or (here[1] == unit[1] and not any(one[0] == here[0] for one in links)):
            return ".".join(unit)
        return ".".join(here) if here in links.values() else None

    def _print_people(self, places: Sequence[str], tables: Mapping[str, CatalogTable]) -> int:
        """A number for everybody's rows, that changes with them."""
        parts = [
            f"SELECT {UNIT}, hash({at}, {', '.join(one.place for one in table.columns)}) AS h FROM {table.place}"
            for at, table in enumerate(tables.values())
            if table.private
        ]
        self.file.execute(f"ALTER TABLE {UNIT} ADD COLUMN print BIGINT")
        self.file.execute(
            f"UPDATE {UNIT} SET print = f.h FROM (SELECT {UNIT}, (sum(h) % 9223372036854775807)::BIGINT AS h FROM "
            f"({' UNION ALL '.join(parts)}) GROUP BY 1) f WHERE f.{UNIT} = {UNIT}.{UNIT}"
        )
        self.file.execute(f"UPDATE {UNIT} SET print = 0 WHERE print IS NULL")
        return int(self.file.execute(f"SELECT count(*) FROM {UNIT}").fetchone()[0])
