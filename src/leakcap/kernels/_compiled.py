"""Compiled loops of the kernels. Plain numba, one thread each: callers split the work."""

from __future__ import annotations

import numpy as np

from leakcap.compiled import compiled

__all__ = ["add_masked"]

BYTES = 4  # bytes of a mask, eight units each, that share one pass over the worlds


@compiled({"contract"})
def add_masked(features, packed, first, out):  # type: ignore[no-untyped-def]  # noqa: PLR0912
    """Add to `out[w]` the features of all units in world `w`, by tables of the sums of every four units.

    `features` begin at unit `8 * first`. Sixteen sums serve all worlds, so a world costs one addition for four units
    (the method of the four Russians).
    """
    units, d = features.shape
    worlds = len(packed)
    tables = np.zeros((2 * BYTES, 16, d))
    nibbles = (units + 3) // 4
    for start in range(0, nibbles, 2 * BYTES):
        count = min(2 * BYTES, nibbles - start)
        for t in range(count):
            table = tables[t]
            for k in range(1, 16):
                low = k & -k
                # The first of four units is the highest bit of a nibble.
                unit = 4 * (start + t) + (3 if low == 1 else 2 if low == 2 else 1 if low == 4 else 0)
                rest = k & (k - 1)
                if unit < units:
                    for j in range(d):
                        table[k, j] = table[rest, j] + features[unit, j]
                else:
                    for j in range(d):
                        table[k, j] = table[rest, j]
        byte = first + start // 2
        if count == 2 * BYTES:
            for w in range(worlds):
                row = out[w]
                b0, b1 = np.int64(packed[w, byte]), np.int64(packed[w, byte + 1])
                b2, b3 = np.int64(packed[w, byte + 2]), np.int64(packed[w, byte + 3])
                t0, t1 = tables[0, b0 >> 4], tables[1, b0 & 15]
                t2, t3 = tables[2, b1 >> 4], tables[3, b1 & 15]
                t4, t5 = tables[4, b2 >> 4], tables[5, b2 & 15]
                t6, t7 = tables[6, b3 >> 4], tables[7, b3 & 15]
                for j in range(d):
                    row[j] += ((t0[j] + t1[j]) + (t2[j] + t3[j])) + ((t4[j] + t5[j]) + (t6[j] + t7[j]))
        else:
            for w in range(worlds):
                row = out[w]
                for t in range(count):
                    bits = np.int64(packed[w, byte + t // 2])
                    entry = tables[t, (bits >> (4 * (1 - t % 2))) & 15]
                    for j in range(d):
                        row[j] += entry[j]
