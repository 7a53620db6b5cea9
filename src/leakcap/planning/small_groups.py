"""Classes and group keys that few people carry: they leave as they are, and tell that one of these few is in the pool.

That is the second game of the threat model, about which no certificate speaks: a warning is all that can be given. Keys
are known again in the data: text in a column that holds it, numbers in a column that holds just these.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import SmallGroupWarning
from leakcap.ground.callers import frames_of_ours
from leakcap.simulate import Node, Pool
from leakcap.worlds import Units

__all__ = ["MIN_CARRIERS", "warn_of_keys", "warn_of_small_groups", "warn_where_few_carry"]

MIN_CARRIERS = 5  # people who carry a key, below which it is hardly more than one of them
NUMBERS = (bool, int, float, np.number, np.bool_)
Column = tuple[Any, npt.NDArray[Any]]  # a name, or None, and a value for each row


def warn_of_small_groups(node: Node, pool: Pool, units: Units) -> None:
    """Warn where a key of the answer is a value of the data that fewer than five units carry."""
    warn_of_keys([(name, set(labels)) for name, labels in node.group_keys()], pool, units)


def warn_of_keys(sets: list[tuple[Any, set[Any]]], pool: Pool, units: Units) -> None:
    """The same of keys that leave beside the answer, by the names of their columns where these have one."""
    texts = [label for _, labels in sets for label in labels if isinstance(label, str)]
    numbers = [(name, found) for name, labels in sets if (found := {one for one in labels if isinstance(one, NUMBERS)})]
    if (texts or numbers) and any(_few_carry(texts, numbers, column, units) for column in _columns(pool)):
        _warn()


def warn_where_few_carry(codes: npt.ArrayLike, whose: npt.ArrayLike | None) -> None:
    """Warn where fewer than five units carry one of the classes that `codes` has for the rows."""
    values = np.asarray(codes)
    if _fewest(values, Units.of(len(values), whose)) < MIN_CARRIERS:
        _warn()


def _few_carry(texts: list[str], numbers: list[tuple[Any, set[Any]]], column: Column, units: Units) -> bool:
    """Text is a key where a column holds it. Numbers are where a column holds just these, or has the index's name."""
    title, values = column
    if values.dtype.kind in "OU":
        import pandas

        try:
            rows = pandas.Series(values).isin(texts).to_numpy()
        except TypeError:  # lists and the like in its cells are no keys
            return False
        return _fewest(values, units, rows) < MIN_CARRIERS
    for name, wanted in numbers:
        rows = np.isin(values, list(wanted))
        alike = (name is not None and name == title) or (rows.all() and wanted <= set(values.tolist()))
        if alike and _fewest(values, units, rows) < MIN_CARRIERS:
            return True
    return False


def _fewest(values: npt.NDArray[Any], units: Units, rows: npt.NDArray[np.bool_] | None = None) -> int:
    """How many units carry the value that fewest of them carry, among some of the rows; many where there are none."""
    chosen = np.arange(len(values)) if rows is None else np.flatnonzero(rows)
    if not len(chosen):
        return MIN_CARRIERS
    found = values[chosen]
    _, codes = np.unique(found.astype(np.str_) if found.dtype == object else found, return_inverse=True)
    carriers = chosen if units.of_row is None else units.of_row[chosen]
    pairs = np.unique(np.stack([codes, carriers]), axis=1)
    return int(np.bincount(pairs[0]).min())


def _columns(pool: Pool) -> Iterator[Column]:
    """What of the data could be keys: columns and arguments of text, whole numbers or truth values."""
    for data in pool.data:
        if hasattr(data, "columns"):
            given = [(name, data[name]) for name in data.columns if getattr(data[name], "ndim", 1) == 1]
        else:
            given = [(getattr(data, "name", None), data)] if len(getattr(data, "shape", ())) == 1 else []
        for name, column in given:
            values = np.asarray(column)
            if values.dtype.kind in "biufOU" and values.ndim == 1:
                yield name, values


def _warn() -> None:
    warnings.warn(
        f"fewer than {MIN_CARRIERS} people carry a class or group key that leaves as it is: it tells that one of them "
        "is in the pool, and no certificate speaks about that (docs/second-game.md). Merge small groups, or use keys "
        "known beforehand",
        SmallGroupWarning,
        stacklevel=1 + frames_of_ours(),
    )
