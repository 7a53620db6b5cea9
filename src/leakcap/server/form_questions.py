"""Questions without SQL: what is chosen in a form, as one SELECT over declared columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from leakcap.errors import InputError
from leakcap.server.bins import bin_width
from leakcap.sql.catalog import Catalog, CatalogColumn, CatalogTable

__all__ = ["COMPARED", "FILTERS", "KINDS", "MEASURES", "FormChoices", "as_sql", "choices_of"]

MEASURES = {"count": "How many", "avg": "Average of", "sum": "Sum of", "median": "Median of"}
NAMED = {"avg": "average", "sum": "sum", "median": "median"}
COMPARED = {"=": "is", "<>": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"}
KINDS = {
    "bool": "yes or no",
    "int": "whole number",
    "decimal": "number",
    "float": "number",
    "text": "text",
    "date": "day",
    "timestamp": "time",
}
FILTERS = 3  # that a form has room for
BINS = 10  # of a grouped number
NUMBERS = ("int", "decimal", "float")


@dataclass(frozen=True)
class FormChoices:
    """What can be chosen of one table: names of columns."""

    table: str
    measured: tuple[str, ...]
    grouped: tuple[str, ...]
    filtered: tuple[str, ...]


def choices_of(catalog: Catalog) -> list[FormChoices]:
    """What forms offer, from declarations alone."""
    return [
        FormChoices(
            table.name,
            measured=tuple(one.name for one in table.columns if _measured(one)),
            grouped=tuple(one.name for one in table.columns if _values(one) or _measured(one)),
            filtered=tuple(one.name for one in table.columns if one.identity is None),
        )
        for table in catalog.tables.values()
        if table.private
    ]


def as_sql(catalog: Catalog, chosen: Mapping[str, Any]) -> str:
    """The question that a form asks: `table`, `measure`, `column`, `groups`, and filters as triples.

    Raises:
        InputError: something is chosen that is not offered; the sentence says what to choose.
    """
    table = catalog.table(str(chosen.get("table", "")))
    if table is None or not table.private:
        raise InputError("choose a table of the list")
    measure = _measure(table, str(chosen.get("measure", "")), str(chosen.get("column", "")))
    groups = [_group(table, name) for name in chosen.get("groups", ()) if name]
    where = [_filter(table, *one) for one in chosen.get("filters", ()) if one[0]]
    parts = [f"select {', '.join([*(_called(made, name) for name, made in groups), measure])}"]
    parts.append(f"from {_quoted(table.name)}")
    if where:
        parts.append(f"where {' and '.join(where)}")
    if groups:
        listed = ", ".join(str(at + 1) for at in range(len(groups)))
        parts.append(f"group by {listed} order by {listed}")
    return " ".join(parts)


def _called(made: str, name: str) -> str:
    return made if made == _quoted(name) else f"{made} as {_quoted(name)}"


def _measure(table: CatalogTable, measure: str, column: str) -> str:
    if measure == "count":
        return "count(*) as n"
    if measure not in MEASURES:
        raise InputError("choose what to measure: how many, an average, a sum or a median")
    found = _column(table, column)
    if not _measured(found):
        raise InputError("choose a column of numbers with a declared range to measure, or ask how many")
    return f"{measure}({_quoted(found.name)}) as {_quoted(f'{NAMED[measure]} of {found.name}')}"


def _group(table: CatalogTable, name: str) -> tuple[str, str]:
    found = _column(table, name)
    if _values(found):
        return found.name, _quoted(found.name)
    if not _measured(found):
        raise InputError("choose groups among columns with declared values, or numbers with a declared range")
    width = bin_width(float(found.low), float(found.high), BINS)
    return f"{found.name} from", f"floor({_quoted(found.name)} / {width}) * {width}"


def _filter(table: CatalogTable, name: str, compared: str, value: str) -> str:
    found = _column(table, name)
    if compared not in COMPARED:
        raise InputError("choose how to compare: is, is not, is below, is at most, is above, is at least")
    return f"{_quoted(found.name)} {compared} {_literal(found, value.strip())}"


def _literal(column: CatalogColumn, text: str) -> str:
    try:
        if column.kind in NUMBERS:
            number = float(text)
            if not math.isfinite(number):
                raise ValueError
            return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
        if column.kind == "bool":
            return {"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"}[
                text.lower()
            ]
        if column.kind in ("date", "timestamp"):
            return f"date '{date.fromisoformat(text).isoformat()}'"
    except (ValueError, KeyError, OverflowError):
        kinds = {"bool": "yes or no", "date": "a day such as 2024-01-31", "timestamp": "a day such as 2024-01-31"}
        raise InputError(f"{column.name} is compared with {kinds.get(column.kind, 'a number')}: write one") from None
    return "'" + text.replace("'", "''") + "'"


def _column(table: CatalogTable, name: str) -> CatalogColumn:
    found = table.column(name)
    if found is None or found.identity is not None:
        raise InputError(f"choose a column of {table.name} from the list")
    return found


def _measured(column: CatalogColumn) -> bool:
    return column.kind in NUMBERS and column.low is not None and column.high is not None and column.identity is None


def _values(column: CatalogColumn) -> bool:
    """Whether its values are known without a look at the rows, so that analysts may group by it."""
    return column.identity is None and (column.kind == "bool" or column.refers is not None or column.declared)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
