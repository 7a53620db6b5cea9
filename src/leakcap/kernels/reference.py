"""What each kernel computes, in plain NumPy and one world at a time: slow, and easy to believe."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.worlds import Worlds

Floats = npt.NDArray[np.float64]


def means(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    found = np.zeros((worlds.m, table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows):
            found[w] = rows.mean(axis=0)
    return found
