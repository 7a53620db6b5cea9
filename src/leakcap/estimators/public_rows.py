"""Rows that everybody may know, beside the private ones: checked, and as many of them as can be asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints

__all__ = ["AskedRows", "public_rows"]

FEWEST = 10


@dataclass(frozen=True, eq=False)
class AskedRows:
    """Public rows as numbers, and which of those given they are."""

    rows: Floats
    places: Ints


def public_rows(given: Any, names: tuple[str, ...], most: int) -> AskedRows:
    """The rows that are asked about, evenly spaced among those given where these are more than `most`."""
    if given is None:
        raise InputError(
            "teachers vote on public rows: give queries=, rows with the columns of X that do not come from the data, "
            "without labels"
        )
    cells = _cells(given, names)
    if cells.shape[1] != len(names):
        more = cells.shape[1] > len(names)
        raise InputError(
            f"queries must have the {len(names)} columns of X, and have {cells.shape[1]}: "
            + ("leave out labels and whatever X does not hold" if more else "some are missing")
        )
    if not np.isfinite(cells).all():
        raise InputError("queries hold NaN or infinite numbers: leave such rows out, or fill them; they are public")
    if len(cells) < FEWEST:
        raise InputError(f"queries must be {FEWEST} public rows at least; thousands are best")
    places = np.arange(len(cells))
    if len(cells) > most:
        places = np.linspace(0, len(cells) - 1, most).astype(np.intp)
    return AskedRows(np.ascontiguousarray(cells[places]), places)


def _cells(given: Any, names: tuple[str, ...]) -> Floats:
    own = [str(name) for name in getattr(given, "columns", ())]
    if own and set(names) <= set(own) and len(own) == len(names):
        given = given[[given.columns[own.index(name)] for name in names]]  # in the order of X
    elif own and not all(name.isdigit() for name in names):
        odd = [name for name in own if name not in names] or [name for name in names if name not in own]
        raise InputError(
            f"queries must have the columns of X, which {odd[0]!r} is not among: leave out labels and whatever X does "
            "not hold"
            if odd[0] in own
            else f"queries lack the column {odd[0]!r} of X"
        )
    try:
        cells = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        cells = np.empty(0)
    if cells.ndim != 2:
        raise InputError("queries must be rows and columns of numbers, as X is")
    return cells
