"""Columns of a table: what kind they are, and their cells as numbers. Errors name columns, never cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.tables.offered import offered_parts, offered_reading
from leakcap.tables.reading import MARKS

__all__ = ["kind_of", "kind_of_arrow", "numbers", "refuse_unusable"]


KINDS = {
    "boolean": "yes/no",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "string": "text",
    "datetime64": "date",
    "datetime": "date",
    "date": "date",
    "time": "date",
    "timedelta64": "date",
    "timedelta": "date",
    "period": "date",
    "empty": "empty",
}
DATE = r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?\s*"
SAMPLE_CELLS = 100  # that tell text from dates
NUMBER = r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*"
SIGNS = rf"\s*[$€£¥]?{NUMBER}[%$€£¥]?\s*"


def kind_of(column: Any) -> str:
    """number, yes/no, text, date, empty or other."""
    import pandas

    values = column.cat.categories if isinstance(column.dtype, pandas.CategoricalDtype) else column
    if not column.notna().any():
        return "empty"
    if getattr(values.dtype, "kind", "O") in "iuf":
        return "number"
    kind = KINDS.get(pandas.api.types.infer_dtype(values, skipna=True), "other")
    return "date" if kind == "text" and _matches(column.dropna().head(SAMPLE_CELLS), DATE) == 1 else kind


def kind_of_arrow(arrow: Any) -> str:
    """The same of a column type in a Parquet file."""
    from pyarrow import types  # type: ignore[import-untyped]

    if types.is_dictionary(arrow):
        return kind_of_arrow(arrow.value_type)
    if types.is_boolean(arrow):
        return "yes/no"
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return "number"
    if types.is_string(arrow) or types.is_large_string(arrow):
        return "text"
    return "date" if types.is_temporal(arrow) else "empty" if types.is_null(arrow) else "other"


def refuse_unusable(column: Any, name: str, statistic: str) -> str:
    """The kind of a column that a statistic can use, or why it cannot."""
    kind = kind_of(column)
    if kind == "empty":
        raise InputError(f"column {name!r} is empty from top to bottom: leave it out")
    if kind == "text" and statistic != "histogram":
        raise InputError(f"column {name!r} is text, and the {statistic} needs numbers. {_why_text(column)}")
    if kind == "date":
        raise InputError(
            f"column {name!r} holds dates or times: {offered_parts(column, name)}turn them into numbers (days since a "
            "fixed day, age in years) inside a function of your own (--fn module:function), or in a new column"
        )
    if kind == "other":
        raise InputError(
            f"column {name!r} holds things that are neither numbers nor text: turn them into numbers inside a function "
            "of your own (--fn module:function)"
        )
    return kind


def numbers(column: Any, name: str) -> Floats:
    """The cells of a usable column as float64; none of them missing."""
    try:
        exact = column if column.dtype.kind in "iuf" else column.astype(object)
        cells = exact.to_numpy(dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        cells = None
    if cells is None:
        raise InputError(f"column {name!r} cannot be turned into numbers: do it inside a function of your own")
    if not np.isfinite(cells).all():
        raise InputError(
            f"column {name!r} has infinite numbers (or numbers beyond 1e308): no mean or share of them is finite. "
            "Correct them, or bound them inside a function of your own (np.clip)"
        )
    return np.asarray(cells)


def _why_text(column: Any) -> str:
    cells = column.dropna().astype(str)
    plain = _matches(cells, NUMBER)
    if offer := offered_reading(column):
        return offer
    if _matches(cells[~cells.str.strip().str.lower().isin(MARKS)], SIGNS) == 1:
        return "The cells look like numbers with a currency or per cent sign: save the file without it"
    if plain >= 0.5:
        return f"{plain:.0%} of its cells are numbers: correct the others, or leave them empty and see --missing"
    return "For the share of rows at each category use --fn histogram; otherwise leave the column out"


def _matches(cells: Any, pattern: str) -> float:
    """Share of the cells that look like this from start to end."""
    return float(cells.astype(str).str.fullmatch(pattern, case=False).mean()) if len(cells) else 0.0
