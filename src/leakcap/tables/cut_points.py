"""Cut points as they are written on the command line: ends of bins, grids for quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from leakcap.errors import InputError

__all__ = ["column_and_rest", "edges", "grids"]

MAX_BINS = 10_000


def column_and_rest(text: str, columns: Sequence[str] | dict[str, str]) -> tuple[str, str]:
    """`column=rest` as both parts; the column is empty where none is named."""
    names = [name for name in columns if text.startswith(f"{name}=")]
    if names:
        name = max(names, key=len)
        return name, text[len(name) + 1 :]
    if "=" in text:
        raise InputError(f"{text.partition('=')[0]!r} is none of the columns asked about: add it to --columns")
    return "", text


def edges(text: str, option: str = "--bins") -> tuple[float, ...]:
    """`0,18,65` or `start:stop:step`."""
    try:
        ends = [Decimal(end) for end in text.replace(":", ",").split(",")]
    except InvalidOperation:
        ends = []
    if ":" in text and len(ends) == 3 and all(end.is_finite() for end in ends):
        start, stop, step = ends
        steps = (stop - start) / step if step > 0 else Decimal(0)
        if steps < 2 or steps != int(steps) or steps > MAX_BINS:
            raise InputError(
                f"{option} {text} reads as from {start} to {stop} in steps of {step}: the step must be above 0 and fit "
                f"in a whole number of times, from 2 to {MAX_BINS:,}"
            )
        ends = [start + step * place for place in range(int(steps) + 1)]
    elif ":" in text:
        ends = []
    found = tuple(map(float, ends))
    if len(found) < 3 or not all(low < high for low, high in pairwise(found)):
        raise InputError(
            f"{option} needs at least three numbers, each above the one before, such as {option} 0,18,65,120, or "
            f"start:stop:step, such as {option} 0:100:10"
        )
    return found


def grids(names: Sequence[str], texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Cut points for each column, from `0:100:5` for all of them, or `age=0:100:5` for one."""
    found: dict[str, tuple[float, ...]] = {}
    for text in texts:
        name, rest = column_and_rest(text, names)
        cuts = edges(rest, "--grid")
        found |= {column: cuts for column in ([name] if name else names) if name or column not in found}
    absent = [name for name in names if name not in found]
    if absent:
        raise InputError(
            f"no grid for column {absent[0]!r}: every column needs one, such as --grid {absent[0]}=0:100:5"
        )
    return tuple(found[name] for name in names)
