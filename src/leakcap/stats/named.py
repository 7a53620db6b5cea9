"""Answers about a table keep the names of its columns: they are a table of the library that the rows came in.

Arrays give arrays. The numbers, and their order, are the same either way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.contributions import Finish

__all__ = ["SecondAxis", "bin_names", "keeps_names", "table_form"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class SecondAxis:
    """The axis of an answer that is not the columns'; None for the columns, a second time."""

    title: str
    labels: Sequence[Any] | None = None
    first: bool = False  # whether it comes before the columns


def keeps_names(axis: Callable[..., SecondAxis | None] = lambda **_: None) -> Callable[[Function], Function]:
    """Mark a statistic of the columns of a table; `axis`, of its other arguments by name, gives a second axis."""

    def mark(function: Function) -> Function:
        known = inspect.signature(function)

        @functools.wraps(function)
        def named(rows: Any, *arguments: Any, **options: Any) -> Any:
            answer, form = function(rows, *arguments, **options), None
            if _is_table(rows):
                given = known.bind(rows, *arguments, **options).arguments
                form = _form(rows, axis(**dict(list(given.items())[1:])))
            return answer if form is None else form(np.asarray(answer))

        for what in ("adjacent", "bounded"):
            brings = getattr(function, what, None)
            setattr(named, what, None if brings is None else functools.partial(_brought, brings, axis))
        return named  # type: ignore[return-value]

    return mark


def _brought(brings: Callable[..., Any], axis: Callable[..., SecondAxis | None], *given: Any, **options: Any) -> Any:
    """What everybody brings; where an answer is made of noised sums, it is made in the same form."""
    found, rows = brings(*given, **options), given[0][0]
    if found.finish is None or not _is_table(rows):
        return found
    return replace(found, finish=Finish(found.finish, _form(rows, axis(**options))))


def table_form(rows: Any, axis: SecondAxis | None) -> Callable[[Floats], Any] | None:
    """What makes a table of numbers about the columns of a table; None where the rows are none."""
    return _form(rows, axis) if _is_table(rows) else None


def bin_names(edges: Sequence[float] | Floats) -> tuple[str, ...]:
    """Bins in words; the outermost ones hold what lies beyond, too."""
    ends = [f"{edge:.12g}" for edge in list(edges)[1:-1]]
    if not ends:
        return ("all",)
    return (f"under {ends[0]}", *(f"{low} to {high}" for low, high in pairwise(ends)), f"{ends[-1]} or more")


def _is_table(rows: Any) -> bool:
    return _library(rows) != "" and type(rows).__name__ == "DataFrame"


def _library(rows: Any) -> str:
    if hasattr(rows, "iloc"):
        return "pandas"
    return "polars" if type(rows).__module__.split(".")[0] == "polars" else ""


def _form(rows: Any, axis: SecondAxis | None) -> Callable[[Floats], Any]:
    """Numbers as a table: the columns, and rows or further columns by the other axis."""
    if _library(rows) == "pandas":
        return functools.partial(_pandas, columns=rows.columns, axis=axis)
    return functools.partial(_polars, columns=tuple(map(str, rows.columns)), axis=axis)


def _pandas(found: Floats, *, columns: Any, axis: SecondAxis | None) -> Any:
    import pandas

    if axis is None:
        return pandas.Series(found, index=columns)
    other = columns if axis.labels is None else pandas.Index(list(axis.labels))
    above, beside = (other, columns) if axis.first else (columns, other)
    return pandas.DataFrame(found.reshape(len(above), len(beside)), index=above, columns=beside)


def _polars(found: Floats, *, columns: tuple[str, ...], axis: SecondAxis | None) -> Any:
    import polars

    if axis is None:
        return polars.DataFrame([polars.Series(name, [value]) for name, value in zip(columns, found, strict=True)])
    other: tuple[Any, ...] = columns if axis.labels is None else tuple(axis.labels)
    above, beside = (other, columns) if axis.first else (columns, tuple(map(str, other)))
    title = axis.title if axis.first else "column"
    while title in beside:
        title = f"{title}_"  # a table has every name once
    cells = found.reshape(len(above), len(beside))
    table = polars.DataFrame(
        [
            polars.Series(title, list(above), strict=False),
            *(polars.Series(name, cells[:, place].copy()) for place, name in enumerate(beside)),
        ]
    )
    table.label_columns = (title,)  # type: ignore[attr-defined]
    return table
