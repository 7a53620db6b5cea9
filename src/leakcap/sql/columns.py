"""Columns as they are kept: of one kind, within their range, and what everybody may know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakcap.errors import InputError
from leakcap.sql.catalog import CatalogColumn
from leakcap.sql.declared import LARGEST, checked_ends, checked_keys
from leakcap.sql.expressions import FIRST_DAY, LAST_DAY
from leakcap.sql.kinds import MOMENTS
from leakcap.sql.noised_keys import split_keys
from leakcap.sql.sources import WITH_ZONE, SourceColumn, kind_of

__all__ = ["KeptColumns"]

# Different texts, up to which a column of text is one of levels. It is kept as text all the same: in a file the engine
# lists few texts once, so that its ENUM is half as dear to compare and to group by, but up to three times as dear in
# LIKE and in the search for a group's number (`python -m benchmarks.sql_speed texts`); and it would sort and refuse
# texts by the list of this pool, where text has rules that do not hang on it.
FEW = 64
WHOLE = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
LOST = {"float": "no numbers, or infinite", "int": "beyond 64 bits; bounds= would cut them"}
EXACT = frozenset([*WHOLE, "VARCHAR", "DATE", "UUID", "TIMESTAMP"])  # types that are kept letter for letter


@dataclass
class KeptColumns:
    """The columns of one table on their way into the file."""

    file: Any
    table: str
    rows: str  # the table with the rows that are kept
    bounds: Mapping[tuple[str, str], Any]
    keys: Mapping[tuple[str, str], Any]
    public: bool
    report: list[str]

    def column(self, name: str, given: SourceColumn, *, linked: bool, names_people: bool) -> CatalogColumn | None:
        """What is known of a column; None where it cannot be asked about. `linked` where it is an end of a link."""
        kind, digits = kind_of(given.type)
        here, where = (self.table, name), f"{self.table}.{name}"
        if kind is None:
            if linked or names_people or here in self.bounds or here in self.keys:
                raise InputError(f"{where} is of type {given.type}: make it text, numbers or dates")
            self.report.append(f"{where}: left out, columns of type {given.type} cannot be asked about")
            return None
        if here in self.bounds and (linked or names_people):
            raise InputError(f"bounds: {where} is a key, and a key that is cut is another one's: leave its bounds out")
        if linked or names_people:
            self._refuse_rough(where, given, kind)
        if given.type == WITH_ZONE:
            self.report.append(f"{where}: times of a zone are kept as the time that it was in UTC")
        low, high = checked_ends(self.table, name, kind, self.bounds.get(here))
        if low is None and self.public and kind in ("int", "decimal", "float", "date"):
            low, high = self._public_range(given.place, kind)
        listed, noised = split_keys(self.keys.get(here), where, public=self.public)
        levels, declared = None, here in self.keys and noised is None
        if declared:
            levels = checked_keys(self.table, name, kind, listed)
        elif kind == "text" and not names_people and noised is None:
            levels = self._few(given.place)
        return CatalogColumn(
            name=name,
            place=given.place,
            kind=kind,
            digits=digits,
            low=low,
            high=high,
            levels=levels,
            declared=declared,
            found=given.found,
            noised=noised,
            gaps=not names_people and self._has_gaps(given, kind),
        )

    def written(self, made: CatalogColumn, given: SourceColumn) -> str:
        """The column as it is kept: within its range, and a number where it is one."""
        key = made.place
        if made.kind in ("float", "timestamp", "date"):
            key = f"(CASE WHEN isfinite({key}) THEN {key} END)"
        if made.low is not None:  # before it is of its kind: a number that is too large for that is cut, not lost
            low, high = (_literal(one, made.kind) for one in (made.low, made.high))
            key = f"(CASE WHEN {key} < {low} THEN {low} WHEN {key} > {high} THEN {high} ELSE {key} END)"
        kinds = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "decimal": given.type}
        key = f"TRY_CAST({key} AS {kinds.get(made.kind, made.kind)})"
        return _near(key) if made.kind in MOMENTS and made.low is None else key

    def report_cuts(self, columns: Sequence[tuple[CatalogColumn, SourceColumn]]) -> None:
        """What bounds have cut, and what could not be kept."""
        for one, given in columns:
            if one.low is not None:
                low, high = (_literal(end, one.kind) for end in (one.low, one.high))
                key = f"(CASE WHEN isfinite({one.place}) THEN {one.place} END)" if one.kind == "float" else one.place
                cut, rows = self.file.execute(
                    f"SELECT count(*) FILTER ({key} < {low} OR {key} > {high}), count({key}) FROM {self.rows}"
                ).fetchone()
                if cut:
                    self.report.append(
                        f"{self.table}.{one.name}: {cut:,} of {rows:,} values cut to {one.low} to {one.high}"
                    )
            odd = one.kind == "int" and given.type not in EXACT
            if one.kind == "float" or ((odd or one.kind in MOMENTS) and one.low is None):
                lost = self.file.execute(
                    f"SELECT count({one.place}) - count({self.written(one, given)}) FROM {self.rows}"
                ).fetchone()[0]
                if lost:
                    why = LOST.get(one.kind, "infinite, or further off than the year 99,999")
                    self.report.append(f"{self.table}.{one.name}: {lost:,} values are missing from now on: {why}")

    def _refuse_rough(self, where: str, given: SourceColumn, kind: str) -> None:
        """Keys must stay apart: two that became one would be two people's."""
        if (given.type in EXACT and kind not in MOMENTS) or given.type.startswith("ENUM(") or kind == "decimal":
            return
        cast = {"int": "BIGINT", "float": "DOUBLE"}.get(kind, "TIMESTAMP")
        finite = f"NOT isfinite({given.place}) OR " if kind != "int" else ""
        if kind in MOMENTS:
            finite += f"{_near(f'TRY_CAST({given.place} AS {kind})')} IS DISTINCT FROM {given.place} OR "
        if self.file.execute(
            f"SELECT count(*) FROM {self.rows} WHERE {finite}TRY_CAST({given.place} AS {cast}) IS DISTINCT FROM "
            f"{given.place}"
        ).fetchone()[0]:
            raise InputError(
                f"{where} is a key, and some of its values are infinite or have too many digits: make it text or whole "
                "numbers"
            )

    def _few(self, place: str) -> tuple[str, ...] | None:
        """All texts, where they are few."""
        some = self.file.execute(
            f"SELECT DISTINCT {place}::VARCHAR FROM {self.rows} WHERE {place} IS NOT NULL LIMIT {FEW + 1}"
        ).fetchall()
        return tuple(sorted(row[0] for row in some)) if len(some) <= FEW else None

    def _has_gaps(self, given: SourceColumn, kind: str) -> bool:
        key = given.place
        if kind in ("float", *MOMENTS):
            key = f"(CASE WHEN isfinite({key}) THEN {key} END)"
            key = key if kind == "float" else _near(f"TRY_CAST({key} AS {kind})")
        elif kind == "int" and given.type not in EXACT:
            key = f"TRY_CAST({key} AS BIGINT)"
        return bool(self.file.execute(f"SELECT count(*) > count({key}) FROM {self.rows}").fetchone()[0])

    def _public_range(self, place: str, kind: str) -> tuple[Any, Any]:
        """The range of a public column, which may be read off."""
        key = f"TRY_CAST({place} AS {'DATE' if kind == 'date' else 'DOUBLE'})"
        low, high = self.file.execute(
            f"SELECT min({key}), max({key}) FROM {self.rows} WHERE isfinite({key})"
        ).fetchone()
        if low is None or not low < high or (kind == "int" and max(-low, high) > LARGEST):
            return None, None
        return low, high


def _near(key: str) -> str:
    """Dates that expressions can do anything with; NULL in place of others."""
    return f"(CASE WHEN {key} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {key} END)"


def _literal(one: Any, kind: str) -> str:
    return f"'{one}'::{kind}" if kind in ("date", "timestamp") else repr(one)
