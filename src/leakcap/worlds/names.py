"""What a person is called: one text for every label, whoever else is there and however a file was read.

Whole numbers are their digits, whether they come as numbers, floats or truth values; dates are one form of ISO 8601, in
UTC; bytes are the text they spell; texts are as they are, but for NULs at their end, which arrays of texts do not keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PADDING", "are_whole", "as_labels", "canonical_names", "merges_people"]

PADDING = "\0"
EXACT = 2.0**53  # whole numbers below it are floats of their own


def as_labels(labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """Labels as an array, each of its own kind: in a list, one text would make texts of all the others."""
    kinds = set(map(type, labels)) if isinstance(labels, (list, tuple)) else set()
    mixed = len(kinds) > 1 and any(issubclass(kind, (str, bytes)) for kind in kinds)
    if not mixed or any(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        return np.asarray(labels)
    return _of_objects(labels)  # type: ignore[arg-type]


def canonical_names(labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """A text for every label, `(n,)` of objects: equal for labels of the same person, and a matter of theirs alone."""
    given = as_labels(labels).ravel()
    kind = given.dtype.kind
    if kind == "f" and are_whole(given):
        given, kind = given.astype(np.int64), "i"
    if kind == "b":
        given, kind = given.astype(np.int8), "i"
    if kind in "iu":
        return _of_objects(map(str, given.tolist()))
    if kind == "U":
        return given.astype(object)
    if kind == "M":
        return _moments(given)
    cells = given.tolist() if kind in "fS" else list(given)  # floats that NumPy prints in its own way
    return _of_objects([_name(cell) for cell in cells])


def merges_people(labels: npt.NDArray[Any]) -> bool:
    """Whether ids may have been lost: floats that are not whole, or too large to tell whole numbers apart; durations.

    A column of whole numbers becomes one of floats where a single cell is none, and long ids become each other.
    """
    kind = labels.dtype.kind
    if kind == "f":
        return not are_whole(labels)
    if kind == "O":
        kinds = {type(cell) for cell in labels}
        if any(issubclass(one, (timedelta, np.timedelta64, complex, np.complexfloating)) for one in kinds):
            return True
        floats = [cell for cell in labels if isinstance(cell, (float, np.floating))] if kinds != {str} else []
        return not are_whole(np.array(floats, dtype=np.float64))
    return kind in "cmV"


def are_whole(numbers: npt.NDArray[Any]) -> bool:
    """Whether floats are whole numbers, none so large that others are written alike."""
    largest = min(EXACT, 2.0 ** (np.finfo(numbers.dtype).nmant + 1))
    return bool((numbers == np.rint(numbers)).all() and (np.abs(numbers) < largest).all())


def _name(label: Any) -> str:
    if isinstance(label, str):
        return str(label).rstrip(PADDING)
    if isinstance(label, bytes):
        return _spelt(label).rstrip(PADDING)
    if isinstance(label, (int, np.integer, np.bool_)):
        return str(int(label))
    if isinstance(label, (float, np.floating)):
        number = float(label)
        return str(int(number)) if number.is_integer() and abs(number) < EXACT else repr(number)
    if isinstance(label, Decimal) and label.is_finite():
        return str(int(label)) if label == label.to_integral_value() else format(label.normalize(), "f")
    if isinstance(label, np.datetime64):
        return str(_moments(np.array([label]))[0])
    return _moment(label) if isinstance(label, date) else str(label)


def _spelt(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _moment(when: date) -> str:
    """Dates are their midnight; moments that do not say where are taken for UTC."""
    if not isinstance(when, datetime):
        return f"{when.isoformat()}T00:00:00.000000"
    plain = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    return _without_zeros(plain.isoformat(timespec="microseconds") + f"{getattr(when, 'nanosecond', 0):03d}")


def _moments(when: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if np.datetime_data(when.dtype)[0] not in ("ns", "ps", "fs", "as"):
        return np.datetime_as_string(when.astype("M8[us]"), unit="us").astype(object)
    texts = np.datetime_as_string(when.astype("M8[ns]"), unit="ns")
    return _of_objects([_without_zeros(text) for text in texts.tolist()])


def _without_zeros(text: str) -> str:
    """Microseconds, and nanoseconds only where there are any: most clocks have none."""
    return text[:-3] if text.endswith("000") else text


def _of_objects(cells: Iterable[Any]) -> npt.NDArray[Any]:
    return np.array(list(cells), dtype=object)
