"""Compiled loops of the forest. One thread each: callers split the work.

All worlds go down a tree together. At a node the pool's rows are put in the order of their cells (bin of the node's
feature, then class), and the bits of all worlds with them; the rows of a world in a cell are then a count of ones
between two places, and a cut leaves a world's rows on two sides of one place. Worlds that cut near each other stay
together below: the rows between their cuts go along, with the bits cleared in the worlds that have them elsewhere.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled
from leakcap.kernels.bits._loops import gather_bits, ones, turned_place
from leakcap.kernels.forest.state import SMOOTHING_PARTS, FilledCells, WorldGroup

__all__ = ["finish", "grow"]

# What serving a group of worlds costs beside the passes over its rows, one for each world: so many more of them for
# putting the rows in order, and so many passes over a single row for all small things. Measured, and without
# influence on the answers.
ORDERING = 20
GROUP = 10_000


@compiled(set())
def _order(column, rows, size):  # type: ignore[no-untyped-def]
    """The rows in the order of their cells, the places they come from, and where each cell ends."""
    count = len(rows)
    ends = np.zeros(size + 1, np.uint32)
    own = np.empty(count, np.uint32)
    for i in range(count):
        own[i] = column[rows[i]]
        ends[own[i] + np.uint32(1)] += np.uint32(1)
    for c in range(size):
        ends[c + 1] += ends[c]
    ordered = np.empty(count, np.uint32)
    full = (count + 63) // 64 * 64
    at = np.full(full, np.uint32(full))
    for i in range(count):
        k = ends[own[i]]
        ends[own[i]] = k + np.uint32(1)
        ordered[k] = rows[i]
        at[k] = turned_place(i)
    return ordered, at, ends[:size]


@compiled(set())
def _cells(ends, bins, classes):  # type: ignore[no-untyped-def]
    """The cells that hold rows, from where each of all cells ends."""
    many, start = 0, np.uint32(0)
    for end in ends:
        many += end > start
        start = end
    found = FilledCells(
        np.empty(many, np.int64),
        np.empty(many, np.uint32),
        np.empty(many, np.int64),
        np.empty(many, np.uint32),
        np.empty(many, np.uint64),
        np.empty(many, np.uint32),
        np.zeros(many, np.bool_),
    )
    latest = np.full(classes, np.uint32(many))
    k, start = 0, np.uint32(0)
    for cell in range(len(ends)):
        if ends[cell] > start:
            start = ends[cell]
            b, c, last = cell // classes, cell % classes, np.int64(start) - 1
            found.bins[k], found.kinds[k], found.ends[k] = b, c, last + 1
            found.blocks[k], found.shifts[k] = last >> 6, 63 - (last & 63)
            found.before[k], latest[c] = latest[c], k
            found.closes[k] = b + 1 < bins
            if k and found.bins[k - 1] == b:
                found.closes[k - 1] = False
            k += 1
    return found


@compiled(set())
def _best_cut(words, cells, total, scale, logs, heads, counts, parts):  # type: ignore[no-untyped-def]
    """The last cell to the left of one world's best cut, the first of equals; -1 for a cut below all rows.

    `counts[k]` becomes how many rows of its class there are up to cell `k`; the entry after the last stays 0.
    """
    n, both = _whole(words, total, scale, logs, heads, parts)
    best, least = np.int64(-1), logs[n] - both
    if cells.bins[0] == 0:  # then the lowest cut has rows to its left
        least = np.int64(2**62)
    left, passed = np.uint32(0), np.uint32(0)
    for k in range(len(cells.ends)):
        b, c = cells.blocks[k], cells.kinds[k]
        here = np.uint32(heads[b] + np.uint32(ones(words[b] << cells.shifts[k])))
        mine = np.uint32(counts[cells.before[k]] + (here - passed))
        counts[k] = mine
        left = np.uint32(left + _times(np.uint32(here - passed), scale, c))
        passed = here
        part = logs[_times(mine, scale, c)] + logs[_times(np.uint32(total[c] - mine), scale, c)]
        both += part - parts[c]
        parts[c] = part
        if cells.closes[k]:
            cost = logs[left] + logs[np.uint32(n - left)] - both
            if cost < least:
                best, least = np.int64(k), cost
    return best


@compiled(set())
def _times(count, scale, c):  # type: ignore[no-untyped-def]
    """What so many rows of a class count."""
    return np.uint32(count * scale[c])


@compiled(set())
def _whole(words, total, scale, logs, heads, parts):  # type: ignore[no-untyped-def]
    """All that a world's rows count, and the logarithms of its classes, added; `heads` and `parts` are filled."""
    n = np.uint32(0)
    for b in range(len(words)):
        heads[b] = n
        n += np.uint32(ones(words[b]))
    n, both = np.uint32(0), np.int64(0)
    for c in range(len(total)):
        n += _times(total[c], scale, c)
        parts[c] = logs[_times(total[c], scale, c)]
        both += parts[c]
    return n, both


@compiled(set())
def _steady_cut(words, cells, total, scale, logs, heads, counts, parts, near, unit, penalties, costs):  # type: ignore[no-untyped-def]
    """The same with neighbours and penalties: the bin below the best cut, then the last cell to its left.

    `costs[b + 1]` becomes the entropy of the cut above bin `b`; before the first and after the last stands that of
    rows which are not cut at all.
    """
    n, both = _whole(words, total, scale, logs, heads, parts)
    uncut = logs[n] - both
    many = len(costs) - 2
    costs[0] = costs[many + 1] = cost = uncut
    left, passed = np.uint32(0), np.uint32(0)
    filled = np.int64(1)
    for k in range(len(cells.ends)):
        reach = min(cells.bins[k], many) + 1
        for cut in range(filled, reach):  # above bins without rows: the same rows as below them
            costs[cut] = cost
        filled = max(filled, reach)
        b, c = cells.blocks[k], cells.kinds[k]
        here = np.uint32(heads[b] + np.uint32(ones(words[b] << cells.shifts[k])))
        mine = np.uint32(counts[cells.before[k]] + (here - passed))
        counts[k] = mine
        left = np.uint32(left + _times(np.uint32(here - passed), scale, c))
        passed = here
        part = logs[_times(mine, scale, c)] + logs[_times(np.uint32(total[c] - mine), scale, c)]
        both += part - parts[c]
        parts[c] = part
        if cells.closes[k]:
            cost = logs[left] + logs[np.uint32(n - left)] - both
    for cut in range(filled, many + 1):
        costs[cut] = cost
    best, least = np.int64(0), np.int64(2**62)
    for cut in range(many):
        cost = (SMOOTHING_PARTS - near) * costs[cut + 1] + near * (costs[cut] + costs[cut + 2])
        if len(penalties):
            cost += unit * penalties[cut]
        if cost < least:
            best, least = np.int64(cut), cost
    return best, np.searchsorted(cells.bins, best + 1) - 1


@compiled(set())
def _cut(words, cells, group, ground, node):  # type: ignore[no-untyped-def]
    """For every world, the bin below its cut and the class counts there."""
    worlds, classes = group.totals.shape
    many = len(cells.ends)
    heads, parts = np.empty(words.shape[1], np.uint32), np.empty(classes, np.int64)
    counts = np.zeros(many + 1, np.uint32)
    costs = np.empty(ground.bins + 1, np.int64)
    penalties = ground.penalties[ground.nodes[node]]
    bins, lefts = np.zeros(worlds, np.int64), np.zeros((worlds, classes), np.uint32)
    latest = np.full((many + 1, classes), np.uint32(many))  # the last cell of each class before this one
    for k in range(many):
        for c in range(classes):
            latest[k + 1, c] = latest[k, c]
        latest[k + 1, cells.kinds[k]] = k
    for w in range(worlds):
        total, scale = group.totals[w], ground.scales[group.who[w]]
        if ground.near or len(penalties):
            shared = words[w], cells, total, scale, ground.logs, heads, counts, parts, ground.near
            bins[w], k = _steady_cut(*shared, ground.units[group.who[w]], penalties, costs)
        else:
            k = _best_cut(words[w], cells, total, scale, ground.logs, heads, counts, parts)
            if k >= 0:
                bins[w] = cells.bins[k]
        for c in range(classes):
            lefts[w, c] = counts[latest[k + 1, c]]
    return bins, lefts


@compiled(set())
def _part(words, same, froms, tos, first, last):  # type: ignore[no-untyped-def]
    """The words `first:last` of some worlds, each with the bits at its own places only."""
    out = np.zeros(((len(same) + 7) // 8 * 8, last - first), np.uint64)
    full = ~np.uint64(0)
    for k in range(len(same)):
        if froms[k] < tos[k]:
            a, b = froms[k] >> 6, (tos[k] + 63) >> 6
            row, to = words[same[k], a:b], out[k, a - first : b - first]
            for i in range(len(to)):
                to[i] = row[i]
            to[0] &= full << np.uint64(froms[k] & 63)
            to[-1] &= full >> np.uint64(-tos[k] & 63)
    return out


@compiled(set())
def _side(words, group, ordered, same, bins, lefts, split, right):  # type: ignore[no-untyped-def]
    """Some worlds of a group with their rows on one side of their cuts."""
    many, classes, count = len(same), lefts.shape[1], len(ordered)
    froms, tos = np.zeros(many, np.int64), np.full(many, count)
    totals, who = np.empty((many, classes), np.uint32), np.empty(many, np.int64)
    begin, end = count, 0
    for k in range(many):
        w = same[k]
        who[k] = group.who[w]
        if right:
            froms[k] = split[bins[w]]
        else:
            tos[k] = split[bins[w]]
        begin, end = min(begin, froms[k]), max(end, tos[k])
        for c in range(classes):
            totals[k, c] = group.totals[w, c] - lefts[w, c] if right else lefts[w, c]
    first, last = begin >> 6, (end + 63) >> 6
    if begin >= end:
        end = 64 * first  # no world has rows here
    return WorldGroup(_part(words, same, froms, tos, first, max(first, last)), totals, who, ordered[64 * first : end])


@compiled(set())
def _together(lowest, tally, split, count):  # type: ignore[no-untyped-def]
    """The highest bin whose worlds go on with those of the lowest: as long as that costs less than a group apart."""
    many, highest = tally[lowest], lowest
    for b in range(lowest + 1, len(tally)):
        if tally[b]:
            one = (count + split[b] - split[lowest]) * (many + tally[b] + ORDERING)
            two = (count + split[highest] - split[lowest]) * (many + ORDERING) + count * (tally[b] + ORDERING) + GROUP
            if one > two:
                break
            highest = b
            many += tally[b]
    return highest


@compiled(set())
def _within(bins, lowest, highest):  # type: ignore[no-untyped-def]
    """Which worlds have a bin in a range."""
    same, k = np.empty(len(bins), np.int64), 0
    for w in range(len(bins)):
        if lowest <= bins[w] <= highest:
            same[k] = w
            k += 1
    return same[:k]


@compiled(set())
def grow(ground, group, node, level, cuts, leaves):  # type: ignore[no-untyped-def]
    """Grow what is below `node` in all worlds of a group: `cuts[w, node]` is the bin below the cut.

    `leaves[w]` are the class counts of the leaves, 0 at first. What is in `cuts` at first is what nodes without rows
    keep.
    """
    bins, classes = ground.bins, ground.classes
    ordered, at, all_ends = _order(ground.codes[ground.nodes[node]], group.rows, bins * classes)
    words = np.empty((len(group.words), len(at) >> 6), np.uint64)
    gather_bits(group.words, at, words)
    cells = _cells(all_ends, bins, classes)
    below, lefts = _cut(words, cells, group, ground, node)
    tally = np.zeros(bins, np.int64)
    for w in range(len(below)):
        cuts[group.who[w], node] = below[w]
        tally[below[w]] += 1
    if level + 1 == ground.depth:
        leaf = 2 * node + 2 - 2**ground.depth
        for w in range(len(below)):
            for c in range(classes):
                leaves[group.who[w], leaf, c] = lefts[w, c]
                leaves[group.who[w], leaf + 1, c] = group.totals[w, c] - lefts[w, c]
        return
    split = all_ends[classes - 1 :: classes].astype(np.int64)  # where each bin ends
    lowest = np.int64(0)
    while lowest < bins:
        if tally[lowest]:
            highest = _together(lowest, tally, split, len(ordered))
            same = _within(below, lowest, highest)
            for right in range(2):
                child = _side(words, group, ordered, same, below, lefts, split, right == 1)
                if len(child.rows):
                    grow(ground, child, 2 * node + 1 + right, level + 1, cuts, leaves)
            lowest = highest
        lowest += 1


@compiled(set())
def finish(cuts, leaves, nodes, thresholds, scales, of_world, out):  # type: ignore[no-untyped-def]
    """`out[w]`: the thresholds of one tree's nodes, then the class shares of its leaves."""
    inner, classes = len(nodes), leaves.shape[2]
    counts, sizes = np.empty((2 * inner + 1, classes), np.int64), np.zeros(2 * inner + 1, np.int64)
    for w in range(len(out)):
        for a in range(inner):
            out[w, a] = thresholds[nodes[a], cuts[w, a]]
        for a in range(2 * inner, -1, -1):
            sizes[a] = 0
            for c in range(classes):
                if a >= inner:
                    counts[a, c] = np.int64(leaves[w, a - inner, c]) * np.int64(scales[w, c])
                else:
                    counts[a, c] = counts[2 * a + 1, c] + counts[2 * a + 2, c]
                sizes[a] += counts[a, c]
        for leaf in range(inner + 1):
            a = inner + leaf
            while a and sizes[a] == 0 and not of_world:
                a = (a - 1) // 2
            size = sizes[0] if of_world else sizes[a]
            equal = 1 / (classes * (inner + 1)) if of_world else 1 / classes
            for c in range(classes):
                out[w, inner + leaf * classes + c] = counts[a, c] / size if size else equal
