"""Compiled loops of the quantiles. One thread each: callers split the work."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leakcap.ground.compiled import compiled
from leakcap.kernels.bits._loops import ones, pick_words, turn_words

__all__ = ["Windows", "find_ranks", "side_by_side"]


class Windows(NamedTuple):
    """Rows that follow each other in the order of a column."""

    starts: Any  # where each window begins in the next two, and the end
    at: Any  # places of the rows, as `turned_place` gives them, filled up to whole words
    values: Any
    counts: Any  # rows of each window
    below: Any  # (windows, words): bits of the rows before it


@compiled(set())
def _nth(word, n):  # type: ignore[no-untyped-def]
    """The place of the `n`-th set bit of a word, from 0: count one half of what is left, and go on with one of them."""
    place = np.uint64(0)
    for width in (32, 16, 8, 4, 2, 1):
        low = ones(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))
        if n >= low:
            n -= low
            word >>= np.uint64(width)
            place += np.uint64(width)
    return np.int64(place)


@compiled(set())
def _find(words, flip, count, rank):  # type: ignore[no-untyped-def]
    """Where among a window's `count` rows the one of some rank is; -1 where there are not so many."""
    for b in range((count + 63) >> 6):
        word = words[b] ^ flip
        if count - 64 * b < 64:
            word &= (np.uint64(1) << np.uint64(count - 64 * b)) - np.uint64(1)
        here = np.int64(ones(word))
        if rank < here:
            return 64 * b + _nth(word, np.uint64(rank))
        rank -= here
    return -1


@compiled(set())
def side_by_side(words, turned):  # type: ignore[no-untyped-def]
    """`turned[g]`: the bits of eight worlds side by side, a byte for each place."""
    for g in range(len(turned)):
        turn_words(words, 8 * g, turned[g])


@compiled(set())
def find_ranks(words, turned, windows, levels, ranks, wide, low, high):  # type: ignore[no-untyped-def]
    """Fill in the values of some ranks of one column in every world, where a window has them.

    `levels` says which of the ranks each window is for. `ranks`, `wide`, `low` and `high` are `(sides, worlds, ranks)`;
    the second side, if there is one, is for the complements. `low` becomes the value of a rank and `high` the one
    after it, or the same where not `wide`; then the rank is set to -1. A rank that is not in the window stays.
    """
    sides, worlds = ranks.shape[:2]
    mine = np.empty((8, len(windows.at) >> 6), np.uint64)
    for v in range(len(levels)):
        q, start, count = levels[v], windows.starts[v], windows.counts[v]
        under = windows.below[v]
        before = np.int64(0)
        for b in range(len(under)):
            before += np.int64(ones(under[b]))
        for w in range(worlds):
            if w % 8 == 0:
                pick_words(turned[w >> 3], windows.at[start : windows.starts[v + 1]], mine, 0)
            row = words[w]
            inside = np.int64(0)
            for b in range(len(row)):
                inside += np.int64(ones(row[b] & under[b]))
            for side in range(sides):
                rank = ranks[side, w, q] - (before - inside if side else inside)
                if ranks[side, w, q] < 0 or rank < 0:
                    continue
                flip = ~np.uint64(0) if side else np.uint64(0)
                place = _find(mine[w & 7], flip, count, rank)
                after = _find(mine[w & 7], flip, count, rank + 1) if wide[side, w, q] else place
                if place >= 0 and after >= 0:
                    low[side, w, q], high[side, w, q] = windows.values[start + place], windows.values[start + after]
                    ranks[side, w, q] = -1
