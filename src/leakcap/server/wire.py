"""Answers as JSON and back: the same frame on both sides, with the ends of every interval."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from leakcap.sql.answer import SqlAnswer

__all__ = ["body_of", "frame_of"]


def body_of(answer: SqlAnswer, share: float) -> bytes:
    """An answer as bytes. They are stored, and are the same however often it is asked for."""
    frame = answer.frame
    return json.dumps(
        {
            "columns": [str(name) for name in frame.columns],
            "number": answer.number,
            "numbers": list(answer.numbers),
            "rows": [[_cell(value) for value in row] for row in frame.itertuples(index=False)],
            "share": share,
            "whole": answer.whole,
        },
        separators=(",", ":"),
        allow_nan=False,
    ).encode()


def frame_of(body: Mapping[str, Any]) -> Any:
    """The table of an answer, as pandas has it; released numbers of too few people are NaN."""
    import pandas

    columns: dict[str, Any] = {}
    released = {name + end for name in body["numbers"] for end in ("", " low", " high")}
    for at, name in enumerate(body["columns"]):
        values = [row[at] for row in body["rows"]]
        columns[name] = pandas.Series(
            [math.nan if one is None else _number(one) for one in values] if name in released else values,
            dtype="float64" if name in released else None,
        )
    return pandas.DataFrame(columns)


def _cell(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _number(one: Any) -> float:
    return float(one)
