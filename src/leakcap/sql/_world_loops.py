"""Compiled loops of sums in every world: one thread each, callers split the entries."""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["add_entries"]


@compiled({"contract"})
def add_entries(units, cells, values, packed, out):  # type: ignore[no-untyped-def]
    """Add to `out[cell, sum]`, in every world with the entry's unit, the entry's values.

    Entries are in the order of their units, so that a unit's bits are looked up once; `out` is `(cells, sums, worlds)`:
    the worlds of a sum lie together.
    """
    worlds = len(packed)
    words, inside = np.zeros(worlds, dtype=np.uint8), np.zeros(worlds)
    byte, unit = -1, -1
    for at in range(len(units)):
        if units[at] != unit:
            unit = units[at]
            if unit >> 3 != byte:
                byte = unit >> 3
                for w in range(worlds):
                    words[w] = packed[w, byte]
            shift = 7 - (unit & 7)
            for w in range(worlds):
                inside[w] = (words[w] >> shift) & 1
        for one in range(values.shape[1]):
            value, row = values[at, one], out[cells[at], one]
            if value != 0.0:
                for w in range(worlds):
                    row[w] += value * inside[w]
