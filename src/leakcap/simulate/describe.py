"""The shape of an answer: what is a number to be noised, and what must be the same in every world.

`describe` splits a returned value into a vector of numbers and a `Node` tree without any numbers from the
data. `rebuild` makes a fresh value of the same form from released numbers. Unknown types fail closed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import OutputError
from leakcap.simulate.estimators import describe_estimator, is_estimator
from leakcap.simulate.nodes import Array, Mapping, Node, Number, Record, Refused, Sequence, Table, Vector
from leakcap.simulate.plain import is_label, own_labels, plain_copy, plain_dtype, same
from leakcap.simulate.polars_tables import describe_polars, is_polars

__all__ = ["describe", "rebuild"]


def describe(value: Any, rows: int, drop: frozenset[str] = frozenset()) -> tuple[Node, Vector]:
    """The form of an answer and its numbers. `rows` is the number of rows that went into it."""
    leaves: list[Vector] = []
    node = _describe(value, rows, drop, leaves)
    return node, np.concatenate(leaves) if leaves else np.empty(0)


def _describe(value: Any, rows: int, drop: frozenset[str], leaves: list[Vector]) -> Node:
    def inner(part: Any) -> Node:
        return _describe(part, rows, drop, leaves)

    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        leaves.append(np.array([value], dtype=np.float64))
        return Number()
    if is_estimator(value):
        return describe_estimator(value, rows, drop, leaves)
    if isinstance(value, type):
        return Refused("is a class, which leakcap cannot cover")
    if hasattr(value, "to_numpy") and hasattr(value, "iloc"):
        return _pandas_table(value, leaves)
    if is_polars(value):
        node, cells = describe_polars(value)
        leaves.append(cells)
        return node
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.asarray(value)
        numbers = _numbers(array)
        if numbers is None:
            return Refused("is no array of real numbers; encode text or categories as scores or counts")
        leaves.append(numbers.ravel())
        wide = array.dtype.kind == "f" and array.dtype != np.float16
        kept = plain_dtype(array.dtype) if wide else np.dtype(np.float64)
        return Array(numbers.shape, kept)
    if isinstance(value, dict):
        if not all(same(key, key) for key in value):
            return Refused("has keys that are no plain values; use text or numbers")
        return Mapping(tuple(map(plain_copy, value)), tuple(inner(part) for part in value.values()))
    if isinstance(value, (list, tuple)):
        return Sequence(type(value), tuple(inner(part) for part in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init)
        return Record(type(value), tuple((name, inner(part)) for name, part in parts))
    return Refused(
        f"is a {type(value).__name__}, which leakcap cannot cover; return numbers, arrays, dicts, tuples, "
        "dataclasses, tables or a fitted scikit-learn estimator"
    )


def _pandas_table(value: Any, leaves: list[Vector]) -> Node:
    numbers = _numbers(value.to_numpy())
    if numbers is None:
        return Refused("holds text or mixed columns; return numbers only")
    labels = own_labels(value.index), own_labels(value.columns) if value.ndim == 2 else value.name
    if any(one is None for one in labels[: value.ndim]) or (value.ndim == 1 and not is_label(value.name)):
        return Refused("has labels that are no plain values; use text or numbers")
    leaves.append(numbers.ravel())
    return Table(type(value), labels, numbers.shape)


def _numbers(array: npt.NDArray[Any]) -> Vector | None:
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            return None
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def rebuild(node: Node, numbers: Vector) -> Any:
    """A fresh value of the answer's form, made from released numbers alone."""
    if len(numbers) != node.size():
        raise OutputError(f"the answer has {node.size()} numbers, {len(numbers)} were given")
    return node.build(numbers)
