"""What a custodian declares when registering: looked up by table and column, and checked without a look at the rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from leakcap.errors import InputError
from leakcap.sql.sources import SourceTable, kind_of

__all__ = [
    "by_column",
    "checked_ends",
    "checked_keys",
    "known_tables",
    "one_column",
    "refuse_other_kinds",
    "rows_by_table",
]

Tables = Mapping[str, SourceTable]
MOST_KEYS = 100_000
FURTHEST = 1e100  # of other numbers: what is added up of them stays finite
LARGEST = 2**63 - 1  # of whole numbers, as they are kept
CALLED = {
    "bool": "true or false",
    "int": "whole numbers",
    "decimal": "numbers",
    "float": "numbers",
    "text": "text",
    "date": "dates, as '2020-01-31'",
    "timestamp": "times without a zone, as '2020-01-31 12:00:00'",
}


def one_column(tables: Tables, name: Any, what: str) -> tuple[str, str]:
    """The table and the column that a name such as "age" or "stays.age" means, whatever the case of its letters."""
    found = list(_named(tables, str(name)))
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{what}: {name!r} is a column of several tables: write 'table.column'")
    listed = ", ".join(f"{table}.{column}" for table, one in tables.items() for column in one.columns)
    raise InputError(f"{what}: there is no column {name!r}: there are {listed[:400]}")


def _named(tables: Tables, name: str) -> Iterator[tuple[str, str]]:
    wanted = name.lower()
    for table, one in tables.items():
        for column in one.columns:
            if wanted in (column.lower(), f"{table}.{column}".lower()):
                yield table, column


def by_column(tables: Tables, given: Mapping[str, Any] | None, what: str) -> dict[tuple[str, str], Any]:
    """What was declared, by table and column."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{what} must be by column, as in {{'age': ...}}")
    found: dict[tuple[str, str], Any] = {}
    for name, value in (given or {}).items():
        here = one_column(tables, name, what)
        if here in found:
            raise InputError(f"{what}: {'.'.join(here)} is named twice")
        found[here] = value
    return found


def known_tables(tables: Tables, names: Any) -> frozenset[str]:
    """The tables of a list of names."""
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise InputError("public must be a list of tables, such as ['wards']")
    return frozenset(_one_table(tables, name, "public") for name in given)


def _one_table(tables: Tables, name: Any, what: str) -> str:
    found = next((one for one in tables if one.lower() == str(name).lower()), None)
    if found is None:
        raise InputError(f"{what}: there is no table {name!r}: there are {', '.join(tables)}")
    return found


def rows_by_table(tables: Tables, given: int | Mapping[str, int] | None) -> dict[str, int | None]:
    """The most rows of one person, by table."""
    by_table = given if isinstance(given, Mapping) else dict.fromkeys(tables, given)
    found: dict[str, int | None] = dict.fromkeys(tables)
    for name, most in by_table.items():
        found[_one_table(tables, name, "rows_per_unit")] = None if most is None else _rows(most)
    return found


def _rows(most: Any) -> int:
    try:
        rows = operator.index(most)
    except TypeError:
        rows = 0
    if rows < 1 or rows > LARGEST or isinstance(most, bool):
        raise InputError("rows_per_unit must be a whole number above 0, for all tables or by table")
    return rows


def checked_ends(table: str, column: str, kind: str, given: Any) -> tuple[Any, Any]:
    """The range of a column, as values of its kind."""
    if given is None:
        return None, None
    if kind in ("bool", "text"):
        raise InputError(f"bounds are for numbers and dates, and {table}.{column} holds {CALLED[kind]}: leave it out")
    try:
        low, high = given
        low, high = _end(low, kind, math.ceil), _end(high, kind, math.floor)
        if not low < high or high - low == math.inf:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"bounds of {table}.{column} must be (low, high), two finite numbers or dates with low below high: it "
            f"holds {CALLED[kind]}"
        ) from None
    return low, high


def _end(one: Any, kind: str, inwards: Any) -> Any:
    if kind == "int":
        return max(-LARGEST, min(LARGEST, inwards(one)))
    return _as_kind(one, kind)


def _as_kind(one: Any, kind: str) -> Any:
    """A declared value as one of the column's kind; ValueError or TypeError where it is none."""
    if hasattr(one, "item"):  # NumPy's
        one = one.item()
    if kind == "bool" and isinstance(one, bool):
        return one
    if kind == "text" and isinstance(one, str):
        return one
    if kind in ("date", "timestamp"):
        return _as_time(one, kind)
    if isinstance(one, (bool, str)) or kind in ("bool", "text"):
        raise TypeError
    if kind == "int":
        if one != int(one) or abs(int(one)) > LARGEST:
            raise ValueError
        return int(one)
    if not abs(one) <= FURTHEST:
        raise ValueError
    return float(one)


def _as_time(one: Any, kind: str) -> date:
    read = datetime.fromisoformat(one) if isinstance(one, str) else one
    if not isinstance(read, date) or (isinstance(read, datetime) and read.tzinfo is not None):
        raise TypeError
    if kind == "timestamp":
        return datetime(*read.timetuple()[:6], getattr(read, "microsecond", 0))
    if isinstance(read, datetime) and (read.hour, read.minute, read.second, read.microsecond) != (0, 0, 0, 0):
        raise ValueError
    return date(read.year, read.month, read.day)


def checked_keys(table: str, column: str, kind: str, given: Any) -> tuple[Any, ...]:
    """A list of values to group by, as values of the column's kind, each once; None stands for a missing one."""
    where = f"keys of {table}.{column}"
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise InputError(f"{where} must be a list of values, such as ['A', 'B']")
    try:
        found = tuple(dict.fromkeys(None if one is None else _as_kind(one, kind) for one in given))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where} must be {CALLED[kind]}, as the column is") from None
    if not found:
        raise InputError(f"{where} are an empty list: name the values to group by")
    if len(found) > MOST_KEYS:
        raise InputError(f"{where} are more than {MOST_KEYS:,}: group by something coarser")
    return found


def refuse_other_kinds(tables: Tables, here: tuple[str, str], there: tuple[str, str]) -> None:
    """Both ends of a link hold the same kind of value: otherwise keys would be read as something else."""
    kinds = [kind_of(tables[table].columns[column].type)[0] for table, column in (here, there)]
    for (table, column), kind in zip((here, there), kinds, strict=True):
        if kind is None:
            raise InputError(f"links: {table}.{column} cannot be a key: make it text or whole numbers")
    groups = ["number" if kind in ("int", "decimal", "float") else kind for kind in kinds]
    if groups[0] != groups[1]:
        a, b = (CALLED[str(kind)].split(",")[0] for kind in kinds)
        raise InputError(
            f"links: {'.'.join(here)} holds {a}, and {'.'.join(there)} {b}: make them of one kind before registering"
        )
