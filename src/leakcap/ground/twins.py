"""Names that stand for several columns of a table: which they are, and where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leakcap.errors import InputError

__all__ = ["refuse_twin_columns", "twins_of"]

MAX_TWINS = 5  # names that a message shows


def twins_of(names: Iterable[Any]) -> str:
    """Names that come more than once, and the numbers of their columns, from 1 on; empty where there are none."""
    places: dict[Any, list[str]] = {}
    for number, name in enumerate(names, 1):
        places.setdefault(name, []).append(str(number))
    found = [f"{name} (columns {_and(at)})" for name, at in places.items() if len(at) > 1]
    return ", ".join(found[:MAX_TWINS]) + (f" and {len(found) - MAX_TWINS:,} more" if len(found) > MAX_TWINS else "")


def refuse_twin_columns(table: Any) -> None:
    """Refuse a table of pandas in which a name stands for several columns; no other library has such tables."""
    columns = getattr(table, "columns", None)
    if columns is None or getattr(columns, "is_unique", True):
        return
    raise InputError(
        f"the table has several columns of the same name: {twins_of(columns)}. A name must stand for one column. "
        "Rename them, table.columns = [...], or keep the first of each, table.loc[:, ~table.columns.duplicated()]"
    )


def _and(numbers: list[str]) -> str:
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"
