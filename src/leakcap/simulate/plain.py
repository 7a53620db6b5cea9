"""Plain values: those that are nothing but what they show, so that equal ones leave the same bytes.

What passes without noise is compared between worlds and then copied. Whatever a comparison does not see would leave
unseen: categories that no row has, attributes of subclasses, memory behind a view. Plain values have none of these, and
a copy is made of plain values alone.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["is_label", "own_labels", "plain_copy", "plain_dtype", "same"]

KINDS = frozenset("biufcSUmM")  # of numbers, text and times; records ("V") have titles, and memory behind them
SCALARS = (bool, int, float, str, bytes, type(None))
TIMES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal)
OF_PANDAS = {"Interval", "NAType", "NaTType", "Period", "Timedelta", "Timestamp"}


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are equal, arrays and nesting included. Values that are not plain never are."""
    if type(a) is not type(b):
        return _is_array(a) and _is_array(b) and _same_arrays(a, b)  # mapped into memory or not
    if type(a) in SCALARS:  # most of what is compared
        return bool(a == b) or (type(a) is float and math.isnan(a) and math.isnan(b))
    if _is_array(a):
        return _same_arrays(a, b)
    if isinstance(a, (list, tuple)):
        return _is_list(a) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return _is_dict(a) and same(list(a), list(b)) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, slice):
        return same([a.start, a.stop, a.step], [b.start, b.stop, b.step])
    if isinstance(a, (float, np.floating)):
        return _is_scalar(a) and bool(a == b or (np.isnan(a) and np.isnan(b)))
    if is_label(a):
        return a is b or bool(a == b)  # a missing value is itself, and equal to none
    if isinstance(a, np.dtype):
        return a.kind in KINDS | {"O"} and bool(a == b)
    return a is b and _is_importable(a)


def plain_copy(value: Any) -> Any:
    """A fresh copy of a value that is the `same` as itself: what was compared, and nothing else."""
    if isinstance(value, np.ndarray):
        fresh = np.empty_like(value, dtype=plain_dtype(value.dtype), subok=False)
        if value.dtype != object:
            fresh[...] = value  # a copy by np.array would keep the metadata
        else:
            for place in np.ndindex(value.shape):
                fresh[place] = plain_copy(value[place])
        return fresh
    if isinstance(value, (list, tuple)):
        parts = [plain_copy(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        items = {plain_copy(key): plain_copy(part) for key, part in value.items()}
        return type(value)(items) if type(value) in (dict, OrderedDict) else type(value)(**items)
    if isinstance(value, np.dtype):
        return plain_dtype(value)
    return value


def plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same numbers without metadata, which may be anything."""
    return np.dtype(dtype.str)


def own_labels(index: Any) -> Any:
    """The labels of a pandas table rebuilt from what it shows; None where some are no plain values.

    Categories and levels without rows stay behind, and so does the memory of which labels are a part.
    """
    import pandas

    if isinstance(index, pandas.MultiIndex):
        levels = [own_labels(index.get_level_values(place)) for place in range(index.nlevels)]
        named = all(map(is_label, index.names))
        return pandas.MultiIndex.from_arrays(levels, names=list(index.names)) if _all(levels) and named else None
    if not is_label(index.name):
        return None
    if isinstance(index, pandas.RangeIndex):
        return pandas.RangeIndex(index.start, index.stop, index.step, name=index.name)
    if isinstance(index.dtype, np.dtype) and index.dtype != object:
        return pandas.Index(plain_copy(index.to_numpy()), name=index.name)
    values = list(index)
    if not (set(map(type, values)) <= set(SCALARS) or all(map(is_label, values))):
        return None
    categories = isinstance(index.dtype, pandas.CategoricalDtype)
    return pandas.Index(values, dtype=None if categories else index.dtype, name=index.name)


def _all(levels: list[Any]) -> bool:
    return all(level is not None for level in levels)


def is_label(label: Hashable) -> bool:
    """Whether a row, column or key may go by it: text, a number, a time, or a tuple of these."""
    if type(label) is tuple:
        return all(map(is_label, label))
    pandas_own = type(label).__module__.startswith("pandas.") and type(label).__name__ in OF_PANDAS
    return _is_scalar(label) or type(label) in TIMES or pandas_own


def _is_scalar(value: Any) -> bool:
    if isinstance(value, np.generic):
        return type(value).__module__ == "numpy" and value.dtype.kind in KINDS
    return type(value) in SCALARS or (isinstance(value, enum.Enum) and _is_importable(type(value)))


def _is_list(value: Any) -> bool:
    return type(value) in (list, tuple) or (hasattr(value, "_fields") and not getattr(value, "__dict__", None))


def _is_dict(value: Any) -> bool:
    kind = type(value)
    return kind in (dict, OrderedDict) or f"{kind.__module__}.{kind.__name__}" == "sklearn.utils._bunch.Bunch"


def _is_array(value: Any) -> bool:
    return type(value) in (np.ndarray, np.memmap) and value.dtype.kind in KINDS | {"O"}


def _same_arrays(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _is_importable(value: Any) -> bool:
    """A function or class that its module holds under its own name: it carries nothing of any world."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for name in getattr(value, "__qualname__", "<none>").split("."):
        found = getattr(found, name, None)
    return found is value
