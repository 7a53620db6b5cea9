"""What programs ask before they ask for data: which data sets, tables and columns there are. Told from declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from leakcap.server.datasets import RegisteredSet
from leakcap.server.flight_messages import FlightMessage
from leakcap.server.flight_schemas import CATALOG_TABLES, SQL_INFO, rows_of, server_facts
from leakcap.sql.catalog import CatalogColumn, CatalogTable
from leakcap.version import __version__

__all__ = ["CATALOG", "KINDS", "answers_about", "is_about", "layout_of"]

CATALOG = "leakcap"  # of all data sets; each of them is a schema in it
PRIVATE, PUBLIC = "TABLE", "PUBLIC TABLE"
KINDS = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "decimal": pa.float64(),
    "float": pa.float64(),
    "text": pa.utf8(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
FACTS: dict[int, Any] = {
    0: "leakcap",
    1: __version__,
    2: pa.__version__,
    3: True,  # read only
    4: True,  # SQL
    5: False,  # Substrait
    8: 0,  # no transactions
    9: False,  # no cancelling
    500: False,  # no CREATE CATALOG
    501: 0,  # nor of schemas
    502: 0,  # nor of tables
    503: 1,  # names in any case
    504: '"',
    505: 1,
    506: True,  # every table that is shown may be asked about
}


def is_about(command: FlightMessage) -> bool:
    """Whether a command asks about tables or about the server, and not for an answer."""
    return command.name in CATALOG_TABLES or command.name == "CommandGetSqlInfo"


def layout_of(command: FlightMessage) -> Any:
    """The columns of what is told."""
    if command.name == "CommandGetSqlInfo":
        return SQL_INFO
    shown = command.name == "CommandGetTables" and command.flag(5)
    return CATALOG_TABLES[f"{command.name} with schemas" if shown else command.name]


def answers_about(command: FlightMessage, datasets: list[RegisteredSet]) -> Any:
    """What is told to somebody who may ask these data sets: nothing of it is read off a row."""
    if command.name == "CommandGetSqlInfo":
        return server_facts(FACTS, command.numbers(1))
    return rows_of(layout_of(command), _rows(command, datasets))


def _rows(command: FlightMessage, datasets: list[RegisteredSet]) -> Iterator[tuple[Any, ...]]:
    if command.name == "CommandGetCatalogs":
        yield (CATALOG,)
    elif command.name == "CommandGetTableTypes":
        yield from ((PRIVATE,), (PUBLIC,))
    elif command.name in ("CommandGetDbSchemas", "CommandGetTables") and command.text(1) in (None, CATALOG):
        for one in datasets:
            if _like(one.name, command.text(2)):
                yield from [(CATALOG, one.name)] if command.name == "CommandGetDbSchemas" else _tables(command, one)


def _tables(command: FlightMessage, known: RegisteredSet) -> Iterator[tuple[Any, ...]]:
    kinds = command.texts(4)
    for table in known.catalog.tables.values():
        kind = PRIVATE if table.private else PUBLIC
        if _like(table.name, command.text(3)) and (not kinds or kind in kinds):
            shown = (_schema(known, table),) if command.flag(5) else ()
            yield (CATALOG, known.name, table.name, kind, *shown)


def _schema(known: RegisteredSet, table: CatalogTable) -> bytes:
    """Columns as bytes, each with the range or the values that were declared."""
    fields = [pa.field(one.name, KINDS[one.kind], metadata=_declared(known, table, one)) for one in table.columns]
    return bytes(pa.schema(fields).serialize())


def _declared(known: RegisteredSet, table: CatalogTable, one: CatalogColumn) -> dict[str, str]:
    told = {
        "ARROW:FLIGHT:SQL:CATALOG_NAME": CATALOG,
        "ARROW:FLIGHT:SQL:SCHEMA_NAME": known.name,
        "ARROW:FLIGHT:SQL:TABLE_NAME": table.name,
        "ARROW:FLIGHT:SQL:IS_READ_ONLY": "1",
    }
    if one.declared and one.levels:
        told["leakcap:values"] = json.dumps([*one.levels], default=str)
    if one.low is not None and one.high is not None:
        told["leakcap:range"] = json.dumps([one.low, one.high], default=str)
    return told


def _like(name: str, pattern: str | None) -> bool:
    """SQL's LIKE, in time that grows with both lengths alone: % is any letters, _ is one."""
    if pattern is None:
        return True
    at = place = 0
    star, kept = -1, 0
    while at < len(name):
        if place < len(pattern) and pattern[place] == "%":
            star, kept, place = place, at, place + 1
        elif place < len(pattern) and pattern[place] in ("_", name[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            kept, place = kept + 1, star + 1
            at = kept
        else:
            return False
    return not pattern[place:].strip("%")
