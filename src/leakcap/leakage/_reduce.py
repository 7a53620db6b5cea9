"""The compiled inner loop of `units.py`, in a module of its own so that numba loads only when it runs."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_panel"]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def add_panel(deviation, weight, cuts, total, squares, stick_total, stick_squares, best):  # type: ignore[no-untyped-def]
    """Add |a|, a^2 and (a - cut)_+ of a panel of releases x units to running sums; keep each release's largest a."""
    releases, units = deviation.shape
    s1 = np.empty(units, deviation.dtype)
    s2 = np.empty(units, deviation.dtype)
    zero = deviation.dtype.type(0)
    step = 64  # sums of 64 stay accurate in f32; then they join the f64 totals
    for start in range(0, releases, step):
        stop = min(start + step, releases)
        s1[:] = zero
        s2[:] = zero
        for j in range(start, stop):
            w = deviation.dtype.type(weight[j])
            top = deviation[j, 0]
            for u in range(units):
                a = deviation[j, u]
                top = max(top, a)
                b = abs(a)
                s1[u] += w * b
                s2[u] += w * b * b
            best[j] = max(best[j], top)
        for u in range(units):
            total[u] += s1[u]
            squares[u] += s2[u]
        for k in range(len(cuts)):
            cut = cuts[k]
            s1[:] = zero
            s2[:] = zero
            for j in range(start, stop):
                w = deviation.dtype.type(weight[j])
                for u in range(units):
                    a = max(deviation[j, u] - cut, zero)
                    s1[u] += w * a
                    s2[u] += w * a * a
            for u in range(units):
                stick_total[k, u] += s1[u]
                stick_squares[k, u] += s2[u]
