"""Tables of Arrow Flight SQL about a server, as its definition lays them out; their rows come from declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["CATALOG_TABLES", "SQL_INFO", "rows_of", "server_facts"]


def _layout(columns: str, **kinds: Any) -> pa.Schema:
    """Names of columns, with ! behind those that are never empty; text where no kind is named."""
    found = []
    for word in columns.split():
        name = word.rstrip("!")
        found.append(pa.field(name, kinds.get(name, pa.utf8()), nullable=word == name))
    return pa.schema(found)


_REFERENCES = _layout(
    "pk_catalog_name pk_db_schema_name pk_table_name! pk_column_name! fk_catalog_name fk_db_schema_name fk_table_name! "
    "fk_column_name! key_sequence! fk_key_name pk_key_name update_rule! delete_rule!",
    key_sequence=pa.int32(),
    update_rule=pa.uint8(),
    delete_rule=pa.uint8(),
)
_TABLES = _layout("catalog_name db_schema_name table_name! table_type!")
CATALOG_TABLES: Mapping[str, pa.Schema] = {
    "CommandGetCatalogs": _layout("catalog_name!"),
    "CommandGetDbSchemas": _layout("catalog_name db_schema_name!"),
    "CommandGetTables": _TABLES,
    "CommandGetTables with schemas": _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False)),
    "CommandGetTableTypes": _layout("table_type!"),
    "CommandGetPrimaryKeys": _layout(
        "catalog_name db_schema_name table_name! column_name! key_name key_sequence!", key_sequence=pa.int32()
    ),
    "CommandGetExportedKeys": _REFERENCES,
    "CommandGetImportedKeys": _REFERENCES,
    "CommandGetCrossReference": _REFERENCES,
    "CommandGetXdbcTypeInfo": _layout(
        "type_name! data_type! column_size literal_prefix literal_suffix create_params nullable! case_sensitive! "
        "searchable! unsigned_attribute fixed_prec_scale! auto_increment local_type_name minimum_scale maximum_scale "
        "sql_data_type! datetime_subcode num_prec_radix interval_precision",
        create_params=pa.list_(pa.field("item", pa.utf8(), nullable=False)),
        **dict.fromkeys(
            (
                *("data_type", "column_size", "nullable", "searchable", "minimum_scale", "maximum_scale"),
                *("sql_data_type", "datetime_subcode", "num_prec_radix", "interval_precision"),
            ),
            pa.int32(),
        ),
        **dict.fromkeys(("case_sensitive", "unsigned_attribute", "fixed_prec_scale", "auto_increment"), pa.bool_()),
    ),
}
_VALUES = (
    pa.field("string_value", pa.utf8()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.utf8())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
SQL_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union(list(_VALUES)), nullable=False),
    ]
)


def rows_of(layout: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A table of a layout; columns that no row reaches are empty."""
    listed = list(rows)
    columns = [
        pa.array([row[at] if at < len(row) else None for row in listed], type=one.type) for at, one in enumerate(layout)
    ]
    return pa.Table.from_arrays(columns, schema=layout)


def server_facts(facts: Mapping[int, Any], asked: Sequence[int]) -> pa.Table:
    """What the server says of itself, by the numbers of Flight SQL: those that were asked for, or all."""
    chosen = {number: value for number, value in facts.items() if not asked or number in asked}
    kinds = [_kind(value) for value in chosen.values()]
    children = [
        pa.array([value for value, kind in zip(chosen.values(), kinds, strict=True) if kind == at], type=one.type)
        for at, one in enumerate(_VALUES)
    ]
    places = [kinds[:at].count(kind) for at, kind in enumerate(kinds)]
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()), pa.array(places, pa.int32()), children, [one.name for one in _VALUES]
    )
    return pa.Table.from_arrays([pa.array(list(chosen), pa.uint32()), union], schema=SQL_INFO)


def _kind(value: Any) -> int:
    """Where a value stands in the union."""
    return 0 if isinstance(value, str) else 1 if isinstance(value, bool) else 2
