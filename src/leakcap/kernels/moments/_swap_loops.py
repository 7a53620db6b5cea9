"""Compiled loop of quantiles after swaps. One thread: callers split the work."""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["swap_quantiles"]


@compiled(set())
def _after(before, at, after, gone, come):  # type: ignore[no-untyped-def]
    """What lies at a place when one value has gone and another has come."""
    left = before if gone > before else at  # at the place before, when one has gone
    right = at if gone > at else after  # at the place itself
    return min(max(come, left), right)


@compiled(set())
def swap_quantiles(values, order, mask, below, share, pairs, found):  # type: ignore[no-untyped-def]
    """Fill `found`, `(levels, columns, 1 + p)`, for one world and the swaps of `pairs`: who goes, who comes.

    `values` and `order`, `(columns, rows)`, hold every column and its rows by size. `below` is the place of the value
    below each level among those of the world, ascending, and `share` how far the level is beyond it.
    """
    out, into = pairs
    inside = np.empty(len(mask) + 5)  # values of the world by size, from the third place on
    for column in range(len(values)):
        own, rows = values[column], order[column]
        inside[:2] = -np.inf
        place, last = 2, below[-1] + 4
        for row in rows:  # all are written and some kept: there is nothing to guess about
            inside[place] = own[row]
            place += mask[row]
            if place > last:
                break
        inside[place : place + 3] = np.inf
        for level in range(len(below)):
            j = below[level] + 1
            a, b, c, d = inside[j], inside[j + 1], inside[j + 2], inside[j + 3]
            part = share[level]
            found[level, column, 0] = b + part * (c - b) if part > 0 else b
            for pair in range(len(out)):
                gone, come = own[out[pair]], own[into[pair]]
                low = _after(a, b, c, gone, come)
                if part > 0:
                    low += part * (_after(b, c, d, gone, come) - low)
                found[level, column, 1 + pair] = low
