"""Tables of any kind as views of a DuckDB connection, and what their types are called here.

A view's columns are called c0, c1 and so on: whatever names the custodian's columns have, none meets one of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from leakcap.cluster.parted import Partitions
from leakcap.errors import InputError
from leakcap.sql.failures import in_words

__all__ = ["DATABASES", "SourceColumn", "SourceTable", "attached", "kind_of", "quoted"]

READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}
DATABASES = (".duckdb", ".db", ".ddb")
LEAST_MEMORY = 2**28  # bytes, with which the engine can put rows in order
WITH_ZONE = "TIMESTAMP WITH TIME ZONE"
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
    "UHUGEINT": "int",
    "FLOAT": "float",
    "DOUBLE": "float",
    "VARCHAR": "text",
    "UUID": "text",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    WITH_ZONE: "timestamp",
}


@dataclass(frozen=True)
class SourceColumn:
    """A column as it was given."""

    place: str  # its name in the view
    type: str  # DuckDB's
    found: bool = False  # whether its type was found in its values: one person's could make it another


@dataclass(frozen=True)
class SourceTable:
    """A table as it was given: a view, and its columns by their names."""

    view: str
    columns: Mapping[str, SourceColumn]


@dataclass(frozen=True)
class _Given:
    """What a table is selected from, and the columns whose types are found in their values."""

    sql: str
    found: Callable[[str], bool] = lambda _: False


def quoted(name: str) -> str:
    """A name as DuckDB reads it, whatever letters it has."""
    return '"' + name.replace('"', '""') + '"'


def kind_of(type_name: str) -> tuple[str | None, tuple[int, int] | None]:
    """What a DuckDB type is called here, and a decimal's digits."""
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_name)
    if found:
        return "decimal", (int(found[1]), int(found[2]))
    return ("text" if type_name.startswith("ENUM(") else KINDS.get(type_name)), None


def attached(file: Any, source: Any) -> dict[str, SourceTable]:
    """A view in the connection for each table, by the table's name."""
    import duckdb

    found = {}
    for at, (name, given) in enumerate(_tables(file, source).items()):
        try:
            found[name] = _viewed(file, f"source_{at}", name, given)
        except duckdb.Error as error:
            raise InputError(in_words(error, name)) from None
    if not found:
        raise InputError("there are no tables: give a table, a file, a folder of files, or {name: table}")
    if len({name.lower() for name in found}) < len(found):
        raise InputError("names of tables differ by the case of their letters alone: rename them")
    return found


def _viewed(file: Any, view: str, name: str, given: _Given) -> SourceTable:
    types = {row[0]: row[1] for row in file.execute(f"DESCRIBE SELECT * FROM {given.sql}").fetchall()}
    columns = {
        column: SourceColumn(f"c{at}", kind, given.found(column)) for at, (column, kind) in enumerate(types.items())
    }
    if len({column.lower() for column in columns}) < len(columns):
        raise InputError(f"columns of {name!r} differ by the case of their letters alone: rename them")
    listed = ", ".join(f"{_instant(column, one.type)} AS {one.place}" for column, one in columns.items())
    file.execute(f"CREATE TEMP VIEW {view} AS SELECT {listed} FROM {given.sql}")
    return SourceTable(view, columns)


def _instant(column: str, kind: str) -> str:
    """A column as it is, but for moments of a zone, which become the time that it was in UTC."""
    return f"make_timestamp(epoch_us({quoted(column)}))" if kind == WITH_ZONE else quoted(column)


def _tables(file: Any, source: Any) -> dict[str, _Given]:
    """What to select from, by the table's name."""
    if isinstance(source, Mapping):
        return {str(name): _from(file, one, f"given {at}", str(name)) for at, (name, one) in enumerate(source.items())}
    if not isinstance(source, (str, Path)):
        return {"data": _from(file, source, "given 0", "data")}
    place = Path(source)
    if place.is_dir():
        files = sorted(one for one in place.iterdir() if one.suffix.lower() in READERS)
        names = [_name(one) for one in files]
        for one in names:
            if names.count(one) > 1:
                raise InputError(f"several files of the folder would be table {one!r}: rename them, or give a mapping")
        return {name: _from(file, one, "", name) for name, one in zip(names, files, strict=True)}
    if place.suffix.lower() in DATABASES:
        return _of_database(file, place)
    return {_name(place): _from(file, place, "", _name(place))}


def _name(place: Path) -> str:
    """Of the table in a file: without its kind."""
    return re.sub(r"(\.(parquet|csv|tsv|gz))+$", "", place.name, flags=re.IGNORECASE)


def _of_database(file: Any, place: Path) -> dict[str, _Given]:
    import duckdb

    _need(place)
    try:
        file.execute(f"ATTACH '{_text(place)}' AS given (READ_ONLY)")
    except duckdb.Error as error:
        raise InputError(in_words(error, place.name)) from None
    rows = file.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'given' AND NOT internal"
    ).fetchall()
    names = [row[1] for row in rows]
    for one in names:
        if names.count(one) > 1:
            raise InputError(f"several schemas of {place.name!r} have a table {one!r}: copy the one that you mean")
    if not rows:
        raise InputError(f"{place.name!r} holds no tables: views are not read, so keep them as tables")
    return {name: _Given(f"given.{quoted(schema)}.{quoted(name)}") for schema, name in rows}


def _from(file: Any, one: Any, alias: str, name: str) -> _Given:
    if isinstance(one, (str, Path)):
        place = Path(one)
        _need(place)
        reader = READERS.get(place.suffix.lower())
        if reader is None:
            raise InputError(f"{place.name!r} is of no kind that is read here: give CSV, Parquet, DuckDB or a table")
        # The whole of a CSV file is looked at before kinds are said: a text far below makes a column one of text.
        if reader == "read_csv":
            return _Given(f"read_csv('{_pattern(place)}', sample_size = -1)", lambda _: True)
        return _Given(f"{reader}('{_pattern(place)}')")
    if isinstance(one, Partitions):
        _read_once(file, alias, one)
        return _Given(quoted(alias))
    table = _as_table(one)
    _register(file, alias, table, name)
    objects = (
        {str(each) for each, kind in table.dtypes.items() if str(kind) == "object"} if _is_pandas(table) else set()
    )
    return _Given(quoted(alias), objects.__contains__)


def _read_once(file: Any, alias: str, parts: Partitions) -> None:
    """All rows of partitions as a table of the engine's, which goes to its own folder where memory has no room."""
    import duckdb
    import pyarrow as pa

    refusal: list[InputError] = []

    def told() -> Iterator[Any]:
        try:
            yield from parts.batches()
        except InputError as error:  # the engine would make another error of it
            refusal.append(error)
            raise

    batches = told()
    first = next(batches, None)
    if first is None:
        raise InputError("there are no rows in any of the partitions")
    file.execute(f"SET memory_limit = '{max(parts.memory, LEAST_MEMORY)}B'")
    file.register("partitions", pa.RecordBatchReader.from_batches(first.schema, chain([first], batches)))
    try:
        file.execute(f"CREATE TEMP TABLE {quoted(alias)} AS SELECT * FROM partitions")
    except duckdb.Error:
        if not refusal:
            raise
    finally:
        file.unregister("partitions")
    if refusal:
        raise refusal[0]


def _is_pandas(one: Any) -> bool:
    return hasattr(one, "dtypes") and hasattr(one.dtypes, "items")


def _as_table(one: Any) -> Any:
    if hasattr(one, "collect_schema") and hasattr(one, "collect"):  # lazy polars
        one = one.collect()
    if hasattr(one, "to_arrow"):  # polars
        one = one.to_arrow()
    if not (hasattr(one, "columns") or hasattr(one, "schema")) or not hasattr(one, "shape"):
        raise InputError("a table must be a data frame, an Arrow table, or a file")
    # With one column of an Arrow type, the engine would read a frame's index as a column too.
    return one.reset_index(drop=True) if _is_pandas(one) else one


def _register(file: Any, alias: str, one: Any, name: str) -> None:
    import duckdb

    names = [str(each) for each in (one.schema.names if hasattr(one, "schema") else one.columns)]
    if not names:
        raise InputError(f"table {name!r} has no columns")
    if len({each.lower() for each in names}) < len(names):
        raise InputError(f"columns of {name!r} have the same name, or differ by the case of letters alone: rename them")
    try:
        file.register(alias, one)
        return
    except (duckdb.Error, TypeError, ValueError):
        pass
    for each, column in zip(names, list(one.schema.names if hasattr(one, "schema") else one.columns), strict=True):
        try:
            file.register("tried", one.select([column]) if hasattr(one, "schema") else one[[column]])
        except (duckdb.Error, TypeError, ValueError):
            raise InputError(
                f"column {each!r} of {name!r} is of a kind that cannot be read: make it numbers, text or dates"
            ) from None
    raise InputError(f"table {name!r} cannot be read: save it as Parquet, and give the file")


def _need(place: Path) -> None:
    try:
        there = place.is_file()
    except (ValueError, OSError):
        there = False
    if not there:
        raise InputError(f"there is no file {str(place)!r}: check the path")


def _text(place: Path) -> str:
    return str(place).replace("'", "''")


def _pattern(place: Path) -> str:
    """A path as DuckDB reads it: what it takes for a pattern stands for itself."""
    return re.sub(r"([\[*?])", r"[\1]", _text(place))
