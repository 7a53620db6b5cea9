"""Dates as numbers: year, month, day, weekday and hour, each a column of its own. Errors never quote a cell."""

from __future__ import annotations

from typing import Any

from leakcap.errors import InputError
from leakcap.tables.arrow_text import as_text

__all__ = ["PARTS", "date_parts", "part_of"]

PARTS = ("year", "month", "day", "weekday", "hour")
TYPED = ("date", "datetime", "datetime64")  # columns of a Parquet file
WORDS = {"y": "year", "m": "month", "d": "day"}


def part_of(name: str) -> tuple[str, str] | None:
    """`born.year` as the column and the part; None where it names no part."""
    column, _, part = name.rpartition(".")
    return (column, part) if column and part in PARTS else None


def date_parts(column: Any, name: str, order: str) -> dict[str, Any]:
    """Year, month, day, weekday (Monday is 1) and hour of every date, as numbers; missing where the date is."""
    import pandas

    if pandas.api.types.infer_dtype(column, skipna=True) in TYPED:
        days = pandas.to_datetime(column, errors="coerce")
    else:
        days = _written(column, order)
    if (days.isna() & column.notna()).any():
        raise InputError(
            f"some cells of column {name!r} are no dates of {', '.join(WORDS[one] for one in order)}, with four "
            "digits for the year: --read dates=dmy or dates=mdy say another order; leave cells without a date empty"
        )
    moment = days.dt
    found = {"year": moment.year, "month": moment.month, "day": moment.day}
    return found | {"weekday": moment.day_of_week + 1, "hour": moment.hour}


def _written(column: Any, order: str) -> Any:
    """Days and hours of dates that are text; missing where a cell is no such date."""
    import pandas
    from pyarrow import compute, int64  # type: ignore[import-untyped]

    ways = {"y": r"(?P<year>\d{4})", "m": r"(?P<month>\d{1,2})", "d": r"(?P<day>\d{1,2})"}
    pattern = rf"^\s*{'[-/.]'.join(ways[one] for one in order)}(?:[T ]\s*(?P<hour>\d{{1,2}}):.*)?\s*$"
    text = as_text(column)
    if text is None:
        return pandas.Series(pandas.NaT, index=column.index)
    split = compute.extract_regex(text, pattern)  # null where it does not fit
    parts = {part: compute.struct_field(split, part) for part in ("year", "month", "day", "hour")}
    parts["hour"] = compute.if_else(compute.equal(parts["hour"], ""), "0", parts["hour"])
    numbers = pandas.DataFrame({part: cells.cast(int64()).to_pandas() for part, cells in parts.items()})
    return pandas.to_datetime(numbers, errors="coerce").set_axis(column.index)
