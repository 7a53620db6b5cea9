"""Whose every row is: found along the links, and at most so many rows of one person."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leakcap.custody.keys import own_key
from leakcap.errors import InputError
from leakcap.sql.catalog import UNIT, key_name
from leakcap.sql.sources import SourceTable, kind_of

__all__ = ["AT", "Owners"]

AT = "at_first"  # a row's place in the table as it was given
End = tuple[str, str]  # a table and a column


@dataclass
class Owners:
    """The owners of rows, table by table: those that own others come first."""

    file: Any
    sources: Mapping[str, SourceTable]
    unit: End
    links: Mapping[End, End]
    public: frozenset[str]
    rows: Mapping[str, int | None]
    in_order: bool
    report: list[str]
    places: dict[str, str] = field(default_factory=dict)  # of the tables whose owners are known
    prints: list[str] = field(default_factory=list)  # of everybody's rows as they were given, by table

    def number_people(self) -> None:
        """The table of people: a dense number each, in the order of their names."""
        table, column = self.unit
        source = self.sources[table]
        key = source.columns[column].place
        kind, _ = kind_of(source.columns[column].type)
        if kind is None:
            raise InputError(
                f"{table}.{column} is of type {source.columns[column].type} and cannot say whose a row is: make it "
                "text or whole numbers"
            )
        is_none = f"{key} IS NULL" + (f" OR isnan({key})" if kind == "float" else "")
        missing, rows = self.file.execute(f"SELECT count(*) FILTER ({is_none}), count(*) FROM {source.view}").fetchone()
        if not rows:
            raise InputError(f"table {table!r} has no rows: there is nobody to ask about")
        if missing:
            raise InputError(
                f"rows of {table!r} do not say whose they are ({missing:,} of {rows:,}): fill in or drop them first"
            )
        self.file.execute(
            f"CREATE TABLE {UNIT} AS SELECT (row_number() OVER (ORDER BY {key}) - 1)::INTEGER AS {UNIT}, {key} AS name "
            f"FROM (SELECT DISTINCT {key} FROM {source.view})"
        )

    def in_turn(self) -> list[str]:
        """Private tables after those that own them, then public ones."""
        found, left = [self.unit[0]], [one for one in self.sources if one != self.unit[0] and one not in self.public]
        while left:
            ready = [
                one
                for one in left
                if any(there[0] in found for _, there in self._up(one))
                or (self.unit[1] in self.sources[one].columns and not self._up(one))
            ]
            if not ready:
                raise InputError(
                    f"table {left[0]!r} does not say whose its rows are: give links={{'{left[0]}.column': "
                    f"'{self.unit[0]}.key'}}, or name it in public= if it holds nobody's data"
                )
            found += ready
            left = [one for one in left if one not in ready]
        return found + [one for one in self.sources if one in self.public]

    def identity(self, here: End) -> str | None:
        """The key of a table of people that this column is, or holds."""
        if here[0] in self.public:
            return None
        there = self.links.get(here)
        if there is not None and there[0] not in self.public:
            return key_name(*there)
        if here == self.unit or (here[1] == self.unit[1] and not self._up(here[0])):
            return key_name(*self.unit)
        return key_name(*here) if here in self.links.values() else None

    def own(self, name: str, place: str) -> str:
        """The rows of a table with the number of their owner, as many of each as count: the name of that table."""
        rows = f"rows_{place}"
        self.file.execute(f"CREATE TEMP TABLE {rows} AS {self._with_owner(name)}")
        lost, all_rows = self.file.execute(f"SELECT count(*) FILTER ({UNIT} IS NULL), count(*) FROM {rows}").fetchone()
        if lost:
            raise InputError(
                f"rows of {name!r} have no partner along their link, so that nobody owns them ({lost:,} of "
                f"{all_rows:,}): mend the link, or drop these rows first"
            )
        self.places[name] = place
        for key in {there[1] for there in self.links.values() if there[0] == name}:
            column = self.sources[name].columns[key].place
            self.file.execute(  # before rows are left out: whose the rows are that hang on them does not change
                f"CREATE TEMP TABLE owners_{place}_{column} AS SELECT {column} AS name, {UNIT} FROM {rows}"
            )
        cells = ", ".join(one.place for one in self.sources[name].columns.values())
        self.file.execute(
            f"CREATE TEMP TABLE prints_{place} AS SELECT {UNIT}, sum(hash('{place}', {cells})) AS h FROM {rows} "
            f"GROUP BY {UNIT}"
        )
        self.prints.append(f"SELECT {UNIT}, h FROM prints_{place}")
        self._keep_few(name, rows)
        return rows

    def _up(self, name: str) -> list[tuple[str, End]]:
        """Links of a table to tables of people: its column, and the key."""
        return [
            (here[1], there) for here, there in self.links.items() if here[0] == name and there[0] not in self.public
        ]

    def _with_owner(self, name: str) -> str:
        source, up = self.sources[name], self._up(name)
        if name == self.unit[0] or not up:
            column, owners = self.unit[1], UNIT
        elif len(up) > 1:
            raise InputError(
                f"table {name!r} has {len(up)} links to tables of people: the owner of a row is found along one link"
            )
        else:
            column, (parent, key) = up[0]
            owners = f"owners_{self.places[parent]}_{self.sources[parent].columns[key].place}"
        at = "" if self.in_order else f", row_number() OVER () AS {AT}"
        return (
            f"SELECT s.*, p.{UNIT} FROM (SELECT *{at} FROM {source.view}) s LEFT JOIN {owners} p ON p.name = "
            f"s.{source.columns[column].place}"
        )

    def _keep_few(self, name: str, rows: str) -> None:
        """At most so many rows of one person, by a keyed order of that person's name and rows: nobody else's decide."""
        most = self.rows[name]
        if most is None:
            return
        key = hmac.digest(own_key(), b"rows of one person", "sha256").hex()
        cells = ", ".join(one.place for one in self.sources[name].columns.values())
        many = f"SELECT {UNIT} FROM {rows} GROUP BY {UNIT} HAVING count(*) > {most}"
        told = (
            f"SELECT k.rowid AS r, k.{UNIT}, ? || ' ' || p.name::VARCHAR || ' ' || ROW({cells})::VARCHAR AS told "
            f"FROM {rows} k JOIN {UNIT} p ON p.{UNIT} = k.{UNIT} WHERE k.{UNIT} IN ({many})"
        )
        ranked = (
            f"SELECT r, {UNIT}, row_number() OVER (PARTITION BY {UNIT} ORDER BY sha256(told)) AS place FROM ({told})"
        )
        self.file.execute(f"CREATE TEMP TABLE beyond AS SELECT r, {UNIT} FROM ({ranked}) WHERE place > {most}", [key])
        gone, people = self.file.execute(f"SELECT count(*), count(DISTINCT {UNIT}) FROM beyond").fetchone()
        if gone:
            self.file.execute(f"DELETE FROM {rows} WHERE rowid IN (SELECT r FROM beyond)")
            whole = gone + self.file.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            self.report.append(
                f"{name}: {gone:,} of {whole:,} rows left out, beyond {most} of one person "
                f"({people:,} {'person has' if people == 1 else 'people have'} more)"
            )
        self.file.execute("DROP TABLE beyond")
