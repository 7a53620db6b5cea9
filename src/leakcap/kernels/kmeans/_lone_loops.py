"""Compiled look at the rows of one world that goes on alone: only at those whose nearest centre may have changed.

A row keeps its cluster as long as its own centre cannot have become farther than any other (Hamerly's bounds): how far
the own centre was and how near the second, each changed by what centres have moved since. The records are those of
`state`, as plain tuples; see `leakcap.kernels.kmeans._loops` for the words.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled
from leakcap.kernels.kmeans._lanes import ROWS, two_nearest, weigh
from leakcap.kernels.kmeans._survey import hidden, slack_of, squared

__all__ = ["look", "loosen"]


@compiled({"contract"})
def change(row, line, by, sums, counts):  # type: ignore[no-untyped-def]
    """A row comes into a line, or goes."""
    counts[line] += by
    for j in range(len(row)):
        sums[line, j] += by * row[j]


@compiled({"contract"})
def look(pool, centres, many, labels, upper, lower, sums, counts):  # type: ignore[no-untyped-def]
    """Bring labels, bounds and sums to these centres; False where rounding would decide. Labels of -1 are none yet."""
    table, _, lengths, longest, groups = pool
    n, (k, d) = len(table), centres.shape
    weights, own, size = -2.0 * centres, np.empty(k), 0.0
    for c in range(k):
        own[c] = squared(centres[c])
        size = max(size, np.sqrt(own[c]))
    tile, distance = np.zeros(d * ROWS), np.empty((k, ROWS))
    best, second, label = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS, np.int64)
    some, x = np.empty(ROWS, np.int64), 0
    while x < n:
        found = 0
        while x < n and found < ROWS:
            some[found] = x
            found += not upper[x] + hidden(lengths[x] + size, longest) < lower[x]
            x += 1
        for i in range(found):
            for j in range(d):
                tile[j * ROWS + i] = table[some[i], j]
        if found:
            for c in range(k):
                weigh(tile, 0, weights, c * d, d, own[c], distance, c * ROWS)
            two_nearest(distance, 0, k, best, second, label)
            two_nearest(distance, ROWS // 2, k, best, second, label)
        for i in range(found):
            row, length = some[i], lengths[some[i]]
            if second[i] - best[i] <= slack_of(length + size, longest):
                return False
            upper[row] = np.sqrt(max(best[i] + length * length, 0.0))
            lower[row] = np.sqrt(max(second[i] + length * length, 0.0))
            line, before = label[i] * many + groups[row], labels[row]
            if line != before:
                labels[row] = line
                change(table[row], line, 1, sums, counts)
                if before >= 0:
                    change(table[row], before, -1, sums, counts)
    return True


@compiled({"contract"})
def loosen(before, centres, many, labels, upper, lower):  # type: ignore[no-untyped-def]
    """Change the bounds by what the centres have moved."""
    k, d = centres.shape
    moves = np.empty(k)
    for c in range(k):
        total = 0.0
        for j in range(d):
            total += (centres[c, j] - before[c, j]) ** 2
        moves[c] = np.sqrt(total)
    first = np.argmax(moves)
    farthest, next_farthest = moves[first], 0.0
    for c in range(k):
        if c != first:
            next_farthest = max(next_farthest, moves[c])
    for x in range(len(labels)):
        c = labels[x] // many
        upper[x] += moves[c]
        lower[x] -= next_farthest if c == first else farthest
