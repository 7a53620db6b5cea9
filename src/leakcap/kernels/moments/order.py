"""Quantiles of columns in all worlds at once.

The quantile of a world lies near that of the pool, so only a window of each sorted column is looked at: counting ones
tells how many of a world's rows lie below it, and a walk through the window finds the row. Where it lies outside, the
window is made wider.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores
from leakcap.kernels.bits.words import as_words, place_of, turned
from leakcap.kernels.rows import table_of
from leakcap.worlds import Worlds

__all__ = ["quantiles"]

DEVIATIONS = 5.0  # how far the first windows reach, in standard deviations of a random world's quantile
MARGIN = 24.0  # and that many of a world's rows more, for the smallest and the largest values
WIDER = 8.0  # how many times further the next ones reach


def quantiles(table: Floats, worlds: Worlds, q: npt.ArrayLike) -> Floats:
    """`(m, len(q), d)`: quantiles of every column, linear between neighbouring values: those of `numpy.quantile`.

    They are the same to the last bit. 0 in a world without rows.
    """
    from leakcap.kernels.moments._quantile_loops import find_ranks, side_by_side

    columns, levels = table_of(table, worlds), np.atleast_1d(np.asarray(q, dtype=np.float64))
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise InputError("q must be a number from 0 to 1, or a list of them")
    m, n, sizes = worlds.m, worlds.n, worlds.sizes()
    spots = np.maximum(sizes - 1, 0)[:, None] * levels  # where the quantile lies among a world's sorted values
    share = spots - np.floor(spots)
    every_rank = np.where(sizes[:, None] > 0, np.floor(spots), -1).astype(np.int64)
    rate = max(sizes.mean() / n, 1 / n)
    near = DEVIATIONS * np.sqrt(n * levels * (1 - levels) * (1 - rate) / rate) + MARGIN / rate
    by_side = (2, m // 2, len(levels)) if worlds.paired else (1, m, len(levels))
    words = as_words(worlds.packed[: by_side[1]])
    side = np.empty((len(words) // 8, 8 * words.shape[1] + 1), dtype=np.uint64)
    side_by_side(words, side)
    found = np.empty((m, len(levels), columns.shape[1]))

    def solve(column: int) -> None:
        values, reach = np.ascontiguousarray(columns[:, column]), near
        ranks, wide = every_rank.reshape(by_side).copy(), (share > 0).reshape(by_side)
        low, high = np.zeros(by_side), np.zeros(by_side)
        while len(left := np.flatnonzero((ranks >= 0).any(axis=(0, 1)))):
            windows = _windows(values, levels[left], reach[left], words.shape[1])
            find_ranks(words, side, windows, left, ranks, wide, low, high)
            reach = reach * WIDER
        found[:, :, column] = _between(low.reshape(m, -1), high.reshape(m, -1), share)

    on_all_cores(solve, range(columns.shape[1]))
    return found


def _between(low: Floats, high: Floats, share: Floats) -> Floats:
    """From the nearer end, as numpy does it: then the last bit is the same."""
    gap = high - low
    return np.where(share >= 0.5, high - gap * (1 - share), low + gap * share)


def _windows(values: Floats, levels: Floats, reach: Floats, blocks: int) -> Any:
    """For each level the rows of a column whose ranks are within reach of the pool's quantile."""
    from leakcap.kernels.moments._quantile_loops import Windows

    n = len(values)
    firsts = np.maximum(levels * (n - 1) - reach, 0).astype(np.intp)
    lasts = np.minimum(levels * (n - 1) + reach + 2, n).astype(np.intp)
    inner = np.unique(np.concatenate([firsts, lasts]))
    order = np.argpartition(values, inner[inner < n])
    starts = np.concatenate([[0], np.cumsum(-(-(lasts - firsts) // 64) * 64)])
    at, sorted_values = np.full(starts[-1], 64 * blocks, dtype=np.uint32), np.zeros(starts[-1])
    below = np.zeros((len(levels), 8 * blocks), dtype=np.uint8)
    for k, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        rows = order[first:last]
        rows = rows[np.argsort(values[rows])]
        stop = starts[k] + len(rows)
        at[starts[k] : stop] = turned(place_of(rows))
        sorted_values[starts[k] : stop] = values[rows]
        before = np.zeros(n, dtype=np.bool_)
        before[order[:first]] = True
        below[k, : -(-n // 8)] = np.packbits(before)
    return Windows(starts=starts, at=at, values=sorted_values, counts=lasts - firsts, below=below.view(np.uint64))
