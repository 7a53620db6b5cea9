"""The public columns beside a label column, as numbers: what label-private models learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.tables.label_column import LabelColumn

__all__ = ["FeatureColumn", "PublicFeatures", "read_features"]

MOST_VALUES = 64  # of a column of text
OTHERWISE = "or name the columns to use with --features"


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """One public column.

    Args:
        name: of the column.
        values: different texts of its cells, the commonest first; none in a column of numbers.
        cells: numbers, or the place of every cell's text among the values.
    """

    name: str
    values: tuple[str, ...]
    cells: Floats


@dataclass(frozen=True, eq=False)
class PublicFeatures:
    """The public columns of a table, in its order."""

    columns: tuple[FeatureColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def marked(self) -> tuple[Floats, list[dict[str, Any]]]:
        """Numbers as they are and a mark for every text; and for every column so made, what it was made of."""
        made: list[Floats] = []
        entries: list[dict[str, Any]] = []
        for column in self.columns:
            values = column.values or (None,)
            entries += [{"column": column.name, "value": value} for value in values]
            made += [(column.cells == place).astype(np.float64) for place in range(len(column.values))]
            made += [] if column.values else [column.cells]
        return np.stack(made, axis=1), entries

    def placed(self) -> tuple[Floats, list[dict[str, Any]]]:
        """Numbers as they are and texts by their place, the commonest at 0; and how each column was made."""
        entries = [{"column": column.name, "values": list(column.values) or None} for column in self.columns]
        return np.stack([column.cells for column in self.columns], axis=1), entries


def read_features(labels: LabelColumn, names: Sequence[str] = ()) -> PublicFeatures:
    """The named columns, or all but the labels, as numbers and categories.

    Raises:
        InputError: there are none, or one holds something else: missing numbers, or text of too many kinds.
    """
    wanted = labels.file.find(names) if names else [name for name in labels.file.columns if name != labels.name]
    if labels.name in wanted:
        raise InputError(f"column {labels.name!r} holds the labels: --features are the public columns beside it")
    if not wanted:
        raise InputError("there is no column but the labels: a model has nothing to learn from")
    return PublicFeatures(tuple(_column(labels, name) for name in wanted))


def _column(labels: LabelColumn, name: str) -> FeatureColumn:
    cells = labels.public_cells(name)
    shown = "a column" if labels.file.nameless else f"column {name!r}"  # without names, the first row is in their place
    if cells.dtype.kind == "f":
        if not np.isfinite(cells).all():
            raise InputError(f"{shown} has cells that are missing or infinite: fill them, {OTHERWISE}")
        return FeatureColumn(name, (), cells)
    found, places, counts = np.unique(cells.astype(str), return_inverse=True, return_counts=True)
    if len(found) > MOST_VALUES:
        raise InputError(
            f"{shown} is text of more than {MOST_VALUES} kinds, as names of people are: put rare ones together, mend "
            f"cells that were to be numbers, {OTHERWISE}"
        )
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), dtype=np.float64)
    rank[order] = np.arange(len(order))
    return FeatureColumn(name, tuple(found[order].tolist()), rank[places.ravel()])
