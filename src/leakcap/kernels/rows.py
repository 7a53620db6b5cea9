"""The data as kernels take them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.worlds import Units, Worlds

__all__ = ["table_of"]


def table_of(features: npt.ArrayLike, worlds: Worlds, units: Units | None = None) -> npt.NDArray[np.float64]:
    """A table of finite numbers, with a row for each row of the worlds (or of their units)."""
    table = np.asarray(features, dtype=np.float64)
    rows = worlds.n if units is None else units.rows
    if table.ndim != 2 or len(table) != rows:
        raise InputError(f"features must be a table with a row for each of {rows} rows")
    if not np.isfinite(table).all():
        raise InputError("features must be finite: fill or drop what is missing before fitting")
    return table
