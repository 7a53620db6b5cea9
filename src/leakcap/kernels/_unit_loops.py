"""Compiled sums of everybody's rows, in twice the usual precision: the order of rows changes nothing."""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["add_by_unit"]


@compiled(set())
def add_by_unit(rows, of_row, high, low):  # type: ignore[no-untyped-def]
    """Add rows to those of their units: `high` and `low` are sums and what rounding took from them (Knuth's TwoSum)."""
    for row in range(len(rows)):
        unit = of_row[row]
        for column in range(rows.shape[1]):
            value, so_far = rows[row, column], high[unit, column]
            total = so_far + value
            part = total - so_far
            low[unit, column] += (so_far - (total - part)) + (value - part)
            high[unit, column] = total
    for unit in range(len(high)):
        for column in range(high.shape[1]):
            whole = high[unit, column] + low[unit, column]
            if np.isfinite(whole):
                high[unit, column] = whole
