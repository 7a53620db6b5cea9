"""Answers as Arrow: the columns of a question, known before it is asked, and the stored answer in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from leakcap.server.datasets import RegisteredSet
from leakcap.server.flight_catalog import KINDS
from leakcap.sql.compile import compiled
from leakcap.sql.program import Output, Program

__all__ = ["columns_of", "table_of"]

NO_TIME = "NaT"


def columns_of(known: RegisteredSet, text: str) -> Any:
    """The columns of an answer: from the question and the declarations alone, so they cost nothing.

    Raises:
        InputError: it cannot be answered; why, and what to do.
    """
    program = compiled(text, known.catalog, hidden_pool=known.design == "pool")
    columns: dict[str, Any] = {}
    for one in program.outputs:
        name = _unused(one.name, columns)
        columns[name] = KINDS[one.kind]
        if _with_interval(program, one):
            columns |= dict.fromkeys((name, f"{name} low", f"{name} high"), pa.float64())
    return pa.schema(list(columns.items()))


def table_of(columns: Any, body: Mapping[str, Any]) -> Any:
    """A stored answer in the columns that were announced; an end that it does not have is missing."""
    places = {name: at for at, name in enumerate(body["columns"])}
    return pa.Table.from_arrays([_array(one, places, body["rows"]) for one in columns], schema=columns)


def _array(column: Any, places: Mapping[str, int], rows: Sequence[Sequence[Any]]) -> Any:
    place = places.get(column.name)
    if place is None:
        return pa.nulls(len(rows), column.type)
    return pa.array([_value(row[place], column.type) for row in rows], type=column.type)


def _value(one: Any, kind: Any) -> Any:
    if one is None or one == NO_TIME:
        return None
    if kind == pa.float64():
        return math.nan if one == "nan" else float(one)
    if kind == pa.int64():
        return int(one)
    if kind == pa.date32():
        return date.fromisoformat(one[:10])
    if kind == pa.timestamp("us"):
        return datetime.fromisoformat(one)
    return bool(one) if kind == pa.bool_() else str(one)


def _with_interval(program: Program, one: Output) -> bool:
    """Whether the ends of its interval stand beside it: where all that its groups are called by is in the answer."""
    if one.ratio is None:
        return False
    shown = {each.released[1] for each in program.outputs if each.released}
    release = next(each for each in program.releases if each.table == one.ratio.table)
    names = release.key_names[:-1] if release.tree is not None else release.key_names
    return shown.issuperset(names)


def _unused(name: str, columns: Mapping[str, Any]) -> str:
    """As answers name columns that would be called the same."""
    made, at = name, 2
    while made in columns:
        made, at = f"{name} {at}", at + 1
    return made
