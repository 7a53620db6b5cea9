"""Answers in tables of polars: numbers are noised, and columns that name the rows must be the same in every world.

A table of polars has no index. What names its rows are columns of text and times, and those that the attribute
`label_columns` of the table lists: groups may go by numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.simulate.nodes import Keys, Node, Refused, Vector
from leakcap.simulate.plain import is_label, plain_copy, same

__all__ = ["PolarsTable", "describe_polars", "is_polars"]

Labels = tuple[tuple[str, tuple[Any, ...]], ...]


def is_polars(value: Any) -> bool:
    """Whether it is a DataFrame or a Series of polars, which need not be installed."""
    kind = type(value)
    return kind.__module__.split(".")[0] == "polars" and kind.__name__ in ("DataFrame", "Series")


@dataclass(frozen=True, eq=False)
class PolarsTable(Node):
    """A table of polars, or a series. Its labels leave too, so they must agree in all worlds."""

    columns: tuple[str, ...]  # all of them, in order
    row_labels: Labels  # columns that name the rows
    rows: int
    series: bool = False

    def noised(self) -> tuple[str, ...]:
        """The columns of numbers."""
        known = {name for name, _ in self.row_labels}
        return tuple(name for name in self.columns if name not in known)

    def size(self) -> int:
        return self.rows * len(self.noised())

    def differs(self, other: Node) -> str | None:
        if not isinstance(other, PolarsTable) or self.series != other.series:
            return "is of different kinds in different worlds"
        mine, theirs = ((one.columns, one.row_labels, one.rows) for one in (self, other))
        if not same(mine, theirs):
            return (
                "has different rows, columns or labels in different worlds; join it to all labels known beforehand, in "
                "a canonical order"
            )
        return None

    def group_keys(self) -> Iterator[Keys]:
        for name, values in self.row_labels:
            yield name, tuple(dict.fromkeys(values))

    def build(self, numbers: Vector) -> Any:
        import polars

        cells = numbers.reshape(self.rows, -1)
        if self.series:
            return polars.Series(self.columns[0], cells[:, 0].copy())
        labels, noised = dict(self.row_labels), self.noised()
        return polars.DataFrame(
            [
                polars.Series(name, list(plain_copy(labels[name])), strict=False)
                if name in labels
                else polars.Series(name, cells[:, noised.index(name)].copy())
                for name in self.columns
            ]
        )

    def labels(self, path: str = "") -> Iterator[str]:
        noised = self.noised()
        for row in range(self.rows):
            named = [str(values[row]) for _, values in self.row_labels]
            place = ", ".join(named) if named else f"[{row}]" if self.rows > 1 or self.series else ""
            for column in noised:
                yield ", ".join(part for part in (path, place, column) if part)


def describe_polars(value: Any) -> tuple[Node, Vector]:
    """The form of a table of polars, and its numbers row by row."""
    series = type(value).__name__ == "Series"
    columns = [value] if series else value.get_columns()
    listed = set(getattr(value, "label_columns", ()))
    labels, numbers = [], []
    for column in columns:
        if column.name in listed or not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
            labels.append((str(column.name), tuple(column.to_list())))
        else:
            numbers.append(np.asarray(column.to_numpy(), dtype=np.float64))
    if series and labels:
        return Refused("holds no numbers; encode text or categories as scores or counts"), np.empty(0)
    if not all(is_label(label) for _, values in labels for label in values):
        return Refused("has labels that are no plain values; use text or numbers"), np.empty(0)
    found = np.stack(numbers, axis=1) if numbers else np.empty((len(value), 0))
    names = tuple(str(column.name) for column in columns)
    return PolarsTable(names, tuple(labels), len(value), series), found.ravel()
