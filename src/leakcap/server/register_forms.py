"""What a custodian declares in the form of a registration: of one table, or of several that are linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakcap.server.refusals import Refusal
from leakcap.server.written_numbers import number_in

__all__ = ["FormTable", "facts_of", "tables_of"]

MEASURED = ("int", "decimal", "float")
MOST_VALUES = 500


@dataclass(frozen=True)
class FormTable:
    """A table of the form. Its fields carry `at` in their names, those of the first one nothing."""

    at: str
    name: str
    number: str  # of the file
    rows: int
    columns: Sequence[Mapping[str, Any]]

    def column(self, name: str, alone: bool) -> str:
        """What a column is called in declarations: with its table where there are several."""
        return name if alone else f"{self.name}.{name}"


def tables_of(given: Mapping[str, str], held: Sequence[tuple[str, Mapping[str, Any]]]) -> list[FormTable]:
    """The tables of a form, from numbers of files and what they hold; a `Refusal` where two have one name."""
    found = []
    for place, (number, one) in enumerate(held):
        at = f"{place}_" if place else ""
        name = given.get(f"table{at}", "").strip() or (f"data{place + 1}" if place else "data")
        found.append(FormTable(at=at, name=name, number=number, rows=one["rows"], columns=one["columns"]))
    if len({one.name.lower() for one in found}) < len(found):
        raise Refusal(400, "Two tables have one name: give each its own.")
    return found


def facts_of(given: Mapping[str, str], tables: Sequence[FormTable]) -> dict[str, Any]:
    """What was declared, as `leakcap.sql.register` takes it."""
    alone = len(tables) == 1
    names = [one.column(column["name"], alone) for one in tables for column in one.columns]
    unit = given.get("unit", "")
    if unit not in names:
        raise Refusal(400, "Choose the column that says whose row it is.")
    facts: dict[str, Any] = {"unit": unit, "bounds": {}, "keys": {}, "links": {}, "public": [], "rows_per_unit": {}}
    for table in tables:
        _declared(facts, given, table, names, alone=alone)
    if alone:
        facts["rows_per_unit"] = facts["rows_per_unit"].get(tables[0].name, 1)
    return facts


def _declared(
    facts: dict[str, Any], given: Mapping[str, str], table: FormTable, names: Sequence[str], *, alone: bool
) -> None:
    if not alone and given.get(f"public{table.at}"):
        facts["public"].append(table.name)
    else:
        rows = number_in(given.get(f"rows{table.at}", ""), f"the most rows of one person in {table.name}")
        facts["rows_per_unit"][table.name] = max(1, int(rows))
    for place, column in enumerate(table.columns):
        field, name = f"{table.at}{place}", table.column(column["name"], alone)
        low, high = given.get(f"low{field}", "").strip(), given.get(f"high{field}", "").strip()
        if low or high:
            facts["bounds"][name] = [_end(low, column), _end(high, column)]
        values = [part.strip() for part in given.get(f"values{field}", "").split(",") if part.strip()]
        if values:
            facts["keys"][name] = [_end(value, column) for value in values[:MOST_VALUES]]
        link = given.get(f"link{field}", "")
        if link:
            if link not in names:
                raise Refusal(400, f"Choose a column of another table that {name} refers to, or none.")
            facts["links"][name] = link


def _end(text: str, column: Mapping[str, Any]) -> Any:
    if column["kind"] not in MEASURED:
        return text
    try:
        return int(text) if column["kind"] == "int" else float(text)
    except ValueError:
        raise Refusal(400, f"Write two numbers for the range of {column['name']}, or leave both out.") from None
