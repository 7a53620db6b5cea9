"""Compiled loops of the survey of K-Means: which rows could be nearer to another centre in some world of a group.

The records are those of `state`, as plain tuples; see `leakcap.kernels.kmeans._loops` for the words.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled
from leakcap.kernels.kmeans._lanes import ROWS, two_nearest, weigh

__all__ = ["ADDING", "arrange", "hidden", "prefix", "slack_of", "squared", "survey"]

ROUNDING = 1e-12  # share of a squared distance that may be rounding: nothing is decided by less
ADDING = 1e-14  # share of the longest row by which rounding of sums may move a centre


@compiled({"contract"})
def squared(row):  # type: ignore[no-untyped-def]
    """The squared length of a row."""
    total = 0.0
    for value in row:
        total += value * value
    return total


@compiled({"contract"})
def bucket(margin, wide, buckets):  # type: ignore[no-untyped-def]
    """The step a margin falls into; never decreases with the margin."""
    if margin <= 0 or wide <= 0:
        return 0
    return min(int(margin * (buckets / wide)), buckets - 1)


@compiled({"contract"})
def prefix(reach, i, a, b, starts, buckets):  # type: ignore[no-untyped-def]
    """Where the rows end that could leave `a` for `b` in a running world; whole tiles, since pairs begin with one."""
    moves, widest, _, _ = reach
    step = bucket(moves[i, a] + moves[i, b], widest[a] + widest[b], buckets)
    return -(-starts[(a * len(widest) + b) * buckets + step + 1] // ROWS) * ROWS


@compiled({"contract"})
def slack_of(scale, longest):  # type: ignore[no-untyped-def]
    """What rounding may do to a difference of squared distances; `scale` is the length of the row and of a centre."""
    return ROUNDING * scale * scale + ADDING * longest * scale


@compiled({"contract"})
def hidden(scale, longest):  # type: ignore[no-untyped-def]
    """A difference of distances for which the difference of their squares exceeds that slack."""
    return np.sqrt(ROUNDING) * scale + np.sqrt(ADDING) * (longest + scale) / 2


@compiled({"contract"})
def survey(pool, anchor, reach, nearest, rows, keys, buckets):  # type: ignore[no-untyped-def]
    """Nearest anchor centre of every row, and a list of rows and rivals; its length, or -1 if there is no room for it.

    A rival `b` of a row nearest to `a` is listed unless `distance(b) - distance(a)` exceeds all that `a` and `b` are
    away from the anchor's in any world (triangle inequality) and what rounding could hide.
    """
    _, tiles, lengths, longest, _ = pool
    _, widest, sizes, _ = reach
    n, (k, d) = len(lengths), anchor.shape
    distance = np.empty((k, ROWS))  # squared, less the squared length of the row
    best, second, label = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS, np.int64)
    weights, own = -2.0 * anchor, np.empty(k)
    for c in range(k):
        own[c] = squared(anchor[c])
    farthest, size = widest.max(), sizes.max()
    listed = 0
    for t in range(len(tiles)):
        for c in range(k):
            weigh(tiles, t * d * ROWS, weights, c * d, d, own[c], distance, c * ROWS)
        two_nearest(distance, 0, k, best, second, label)
        two_nearest(distance, ROWS // 2, k, best, second, label)
        for i in range(min(ROWS, n - t * ROWS)):
            x, a = t * ROWS + i, label[i]
            nearest[x] = a
            length = lengths[x]
            near = max(best[i] + length * length, 0.0)
            edge = widest[a] + farthest + hidden(length + size, longest)
            rest = second[i] - best[i] - edge * edge
            if rest > 0 and rest * rest > 4 * near * edge * edge:
                continue  # no rival: sqrt(second) > sqrt(best) + edge
            near = np.sqrt(near)
            for b in range(k):
                if b == a:
                    continue
                wide = widest[a] + widest[b]
                slack = hidden(length + max(sizes[a], sizes[b]), longest)
                margin = np.sqrt(max(distance[b, i] + length * length, 0.0)) - near - slack
                if margin <= wide:
                    if listed == len(rows):
                        return -1
                    rows[listed] = x
                    keys[listed] = (a * k + b) * buckets + bucket(margin, wide, buckets)
                    listed += 1
    return listed


@compiled({"contract"})
def arrange(pool, sizes, rows, keys, buckets, rivals):  # type: ignore[no-untyped-def]
    """Sort the listed rows by key (a counting sort) and copy their features into tiles; a pair begins with a tile."""
    table, _, lengths, longest, _ = pool
    starts, order, alone, slacks, tiles, _ = rivals
    starts[:] = 0
    for key in keys:
        starts[key + 1] += 1
    for key in range(1, len(starts)):
        starts[key] += starts[key - 1]
        if key % buckets == 0:
            starts[key] = -(-starts[key] // ROWS) * ROWS
    ends = starts.copy()
    for i in range(len(rows)):
        x, place = rows[i], ends[keys[i]]
        ends[keys[i]] += 1
        order[place] = x
        # The rivals of a row were listed one after the other.
        alone[place] = (i == 0 or rows[i - 1] != x) and (i + 1 == len(rows) or rows[i + 1] != x)
    k = len(sizes)
    for pair in range(k * k):
        end = ends[(pair + 1) * buckets - 1]
        for place in range(starts[pair * buckets], end):
            x, tile, spot = order[place], place // ROWS, place % ROWS
            slacks[place] = slack_of(lengths[x] + max(sizes[pair // k], sizes[pair % k]), longest)
            for j in range(tiles.shape[1]):
                tiles[tile, j, spot] = table[x, j]
        slacks[end : starts[(pair + 1) * buckets]] = -np.inf  # no row there
