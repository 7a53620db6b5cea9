"""An answer as people read it: a table for every released number, with its interval in figures and as a bar."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.report.html import Markup, shortened
from leakcap.report.numbers import data, decimals_for, neat, outward, shown
from leakcap.report.release.answers import RowScale

__all__ = ["AnswerTable", "answer_tables", "plain_table"]

MOST_ROWS = 200  # that a page shows; all of them are in the file
TOO_FEW = "too few"


@dataclass(frozen=True)
class AnswerTable:
    """One released number, for each row of the answer."""

    name: str
    heads: tuple[str, ...]
    rows: list[tuple[Markup | str, ...]]
    note: str


def answer_tables(facts: Mapping[str, Any]) -> list[AnswerTable]:
    """Of the facts of a stored answer."""
    return [_table(facts, name) for name in facts["numbers"]]


def plain_table(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[Markup | str, ...]]]:
    """Columns that have no interval: what follows from released numbers, or is public."""
    hidden = {name + end for name in facts["numbers"] for end in ("", " low", " high")}
    places = [at for at, name in enumerate(facts["columns"]) if name not in hidden]
    heads = tuple(facts["columns"][at] for at in places)
    return heads, [tuple(_cell(row[at]) for at in places) for row in facts["rows"][:MOST_ROWS]]


def _table(facts: Mapping[str, Any], name: str) -> AnswerTable:
    columns, rows = facts["columns"], facts["rows"][:MOST_ROWS]
    released = {each + end for each in facts["numbers"] for end in ("", " low", " high")}
    keys = [at for at, column in enumerate(columns) if column not in released]
    ends = tuple(np.array([_number(row[columns.index(name + end)]) for row in rows]) for end in ("", " low", " high"))
    known = np.isfinite(ends[0]) & np.isfinite(ends[1]) & np.isfinite(ends[2])
    scale = RowScale.of(ends[1][known], ends[2][known]) if known.any() else RowScale(None)
    label = ", ".join(columns[at] for at in keys) or "of"
    listed = list(_rows(zip(rows, *ends, strict=True), keys, scale))
    return AnswerTable(name, (label, name, "95 % interval", "as a bar"), listed, scale.ends() if known.any() else "")


def _rows(rows: Any, keys: list[int], scale: RowScale) -> Iterator[tuple[Markup | str, ...]]:
    for row, value, low, high in rows:
        who = shortened(", ".join(_cell(row[at]) for at in keys) or "everybody asked about")
        if not np.isfinite([value, low, high]).all():
            yield who, TOO_FEW, "", ""
            continue
        decimals = decimals_for((high - low) / 2)
        ends = " … ".join(outward(low, high, decimals))
        yield who, data(value, shown(value, decimals)), ends, scale.bar(value, low, high)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return neat(float(value), 6) if isinstance(value, (int, float)) else str(value)
