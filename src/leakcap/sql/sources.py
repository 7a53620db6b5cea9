"""Tables of any kind as views of a DuckDB connection, and what their types are called here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leakcap.errors import InputError

__all__ = ["attached", "kind_of", "quoted"]

READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}
DATABASES = (".duckdb", ".db", ".ddb")
KINDS = {
    "BOOLEAN": "bool",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "int",
    "HUGEINT": "int",
    "UTINYINT": "int",
    "USMALLINT": "int",
    "UINTEGER": "int",
    "UBIGINT": "int",
    "FLOAT": "float",
    "DOUBLE": "float",
    "VARCHAR": "text",
    "UUID": "text",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
}


def quoted(name: str) -> str:
    """A name as DuckDB reads it, whatever letters it has."""
    return '"' + name.replace('"', '""') + '"'


def kind_of(type_name: str) -> tuple[str | None, tuple[int, int] | None]:
    """What a DuckDB type is called here, and a decimal's digits."""
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_name)
    if found:
        return "decimal", (int(found[1]), int(found[2]))
    return ("text" if type_name.startswith("ENUM(") else KINDS.get(type_name)), None


def attached(file: Any, source: Any) -> dict[str, dict[str, str]]:
    """Views called "source NAME" in the connection, and columns with their types by table."""
    found, tables = {}, _tables(file, source)
    if len({name.lower() for name in tables}) < len(tables):
        raise InputError("names of tables differ by the case of their letters alone: rename them")
    for name, given in tables.items():
        view = quoted("source " + name)
        file.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {given}")
        columns = {row[0]: row[1] for row in file.execute(f"DESCRIBE {view}").fetchall()}
        found[name] = columns
    if not found:
        raise InputError("there are no tables: give a table, a file, a folder of files, or {name: table}")
    return found


def _tables(file: Any, source: Any) -> dict[str, str]:
    """What to select from, by the table's name."""
    if isinstance(source, Mapping):
        return {str(name): _from(file, one, f"given {at}") for at, (name, one) in enumerate(source.items())}
    if not isinstance(source, (str, Path)):
        return {"data": _from(file, source, "given 0")}
    place = Path(source)
    if place.is_dir():
        files = sorted(one for one in place.iterdir() if one.suffix in READERS)
        return {one.name.split(".")[0]: _from(file, one, "") for one in files}
    if place.suffix in DATABASES:
        _need(place)
        file.execute(f"ATTACH '{str(place).replace(chr(39), 2 * chr(39))}' AS given (READ_ONLY)")
        names = file.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'given'").fetchall()
        return {row[0]: f"given.{quoted(row[0])}" for row in names}
    return {place.name.split(".")[0]: _from(file, place, "")}


def _from(file: Any, one: Any, alias: str) -> str:
    if isinstance(one, (str, Path)):
        place = Path(one)
        _need(place)
        reader = READERS.get(place.suffix)
        if reader is None:
            raise InputError(f"{place.name!r} is of no kind that is read here: give CSV, Parquet, DuckDB or a table")
        text = str(place).replace("'", "''")
        return f"{reader}('{text}')"
    if hasattr(one, "to_arrow"):  # polars
        one = one.to_arrow()
    elif not (hasattr(one, "columns") or hasattr(one, "schema")):
        raise InputError("a table must be a data frame, an Arrow table, or a file")
    file.register(alias, one)
    return quoted(alias)


def _need(place: Path) -> None:
    if not place.is_file():
        raise InputError(f"there is no file {str(place)!r}: check the path")
