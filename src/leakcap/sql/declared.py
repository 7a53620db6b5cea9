"""What a custodian declares when registering: looked up by table and column, and checked without a look at the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from leakcap.errors import InputError
from leakcap.sql.catalog import named

__all__ = ["by_column", "checked_ends", "gone", "in_words", "known_tables", "new_file", "one_column", "rows_by_table"]


def new_file(path: str | Path | None) -> Path:
    if path is None:
        return Path(tempfile.mkdtemp(prefix="leakcap-")) / "tables.duckdb"
    place = Path(path)
    if place.exists():
        raise InputError(f"{place.name!r} exists: choose another path, or open it with leakcap.sql.Catalog.load")
    if not place.parent.is_dir():
        raise InputError(f"there is no folder {str(place.parent)!r}: make it first")
    return place


def gone(file: Any, place: Path) -> None:
    file.close()
    place.unlink(missing_ok=True)
    Path(f"{place}.wal").unlink(missing_ok=True)


def one_column(tables: Mapping[str, Any], name: str, what: str) -> tuple[str, str]:
    found = list(named(tables, str(name)))
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{what}: {name!r} is a column of several tables: write 'table.column'")
    listed = ", ".join(f"{table}.{column}" for table, columns in tables.items() for column in columns)
    raise InputError(f"{what}: there is no column {name!r}: there are {listed[:400]}")


def by_column(tables: Mapping[str, Any], given: Mapping[str, Any] | None, what: str) -> dict[tuple[str, str], Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{what} must be by column, as in {{'age': ...}}")
    return {one_column(tables, name, what): value for name, value in (given or {}).items()}


def known_tables(tables: Mapping[str, Any], names: Sequence[str]) -> frozenset[str]:
    given = [names] if isinstance(names, str) else list(names)
    for name in given:
        if name not in tables:
            raise InputError(f"public: there is no table {name!r}: there are {', '.join(tables)}")
    return frozenset(given)


def rows_by_table(tables: Mapping[str, Any], given: int | Mapping[str, int] | None) -> dict[str, int | None]:
    by_table = given if isinstance(given, Mapping) else dict.fromkeys(tables, given)
    for name, most in by_table.items():
        if name not in tables:
            raise InputError(f"rows_per_unit: there is no table {name!r}: there are {', '.join(tables)}")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise InputError("rows_per_unit must be a whole number above 0, for all tables or by table")
    return {name: by_table.get(name) for name in tables}


def checked_ends(table: str, column: str, kind: str, given: Any) -> tuple[Any, Any]:
    if given is None:
        return None, None
    try:
        low, high = given
        if kind in ("date", "timestamp"):
            read = date.fromisoformat if kind == "date" else datetime.fromisoformat
            low, high = (read(one) if isinstance(one, str) else one for one in (low, high))
        elif kind in ("int", "decimal", "float"):
            low, high = (int(one) if kind == "int" else float(one) for one in (low, high))
        else:
            raise TypeError
        if not low < high or high - low == float("inf"):
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            f"bounds of {table}.{column} must be (low, high), two finite numbers or dates with low below high"
        ) from None
    return low, high


def in_words(error: Exception) -> str:
    if "disk" in str(error).lower() or "No space" in str(error):
        return "the file could not be written: is the disk full?"
    return "the tables could not be read: check that the files are whole, and that columns hold one kind of value each"
