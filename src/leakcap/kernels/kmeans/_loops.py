"""Compiled loops of K-Means in a group of worlds that move together. One thread: callers give every thread a group.

The *anchor* of a group is the mean of its worlds' centres. Its *survey* of the pool finds for every row the nearest
anchor centre and the *rivals*: other centres that could be nearer in some world of the group. Rows without rivals need
no look in any world, and the sums over the anchor's clusters change only by the rows that the anchor moves.

Rows may weigh differently in different worlds, group by group: sums are kept for every cluster and group, in *lines*
`cluster * groups + group`, and the weights come in when centres are taken from them.

`pool`, `rivals` and `reach` are the records of `state`, as plain tuples: what is compiled is kept on disk
and must not depend on the name of a class.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled
from leakcap.kernels.bits._loops import ones
from leakcap.kernels.kmeans._lanes import (
    ROWS,
    add_part,
    bytes_reversed,
    crossing,
    lowest_bit,
    pick_sums,
    sum_rows,
    weigh,
)
from leakcap.kernels.kmeans._survey import ADDING, prefix, slack_of, squared
from leakcap.kernels.kmeans.state import DONE, PLAIN, RUNNING

__all__ = [
    "ROWS",
    "anchor_of",
    "follow_anchor",
    "in_tiles",
    "leave_anchor",
    "move_centres",
    "side_by_side",
]

BLOCK = 32  # rows whose bits are taken together when the anchor moves rows


@compiled({"contract"})
def in_tiles(table, tiles):  # type: ignore[no-untyped-def]
    """Copy the first columns of a table into tiles."""
    for i in range(len(table)):
        tile, place = i // ROWS, i % ROWS
        for j in range(tiles.shape[1]):
            tiles[tile, j, place] = table[i, j]


@compiled(set())
def transposed(x):  # type: ignore[no-untyped-def]
    """Eight bytes of eight bits, rows and columns exchanged, by swapping blocks of one, two and four bits."""
    t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    x ^= t ^ (t << np.uint64(7))
    t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    x ^= t ^ (t << np.uint64(14))
    t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return x ^ t ^ (t << np.uint64(28))


@compiled(set())
def side_by_side(packed, members):  # type: ignore[no-untyped-def]
    """`[i // 8, row]`: whether the row takes part in each of eight worlds, the first of them in the lowest bit."""
    width = packed.shape[1]
    side = np.empty((-(-len(members) // 8), width), np.uint64)
    for first in range(0, len(members), 8):
        some = members[first : first + 8]
        for byte in range(width):
            x = np.uint64(0)
            for i in range(len(some)):
                x |= np.uint64(packed[some[i], byte]) << np.uint64(8 * i)
            side[first // 8, byte] = bytes_reversed(transposed(x))  # the first row is the highest bit of a byte
    return side.view(np.uint8)


@compiled({"contract"})
def anchor_of(centres, running):  # type: ignore[no-untyped-def]
    """The mean of the worlds' centres, and the fields of `Reach`."""
    k, d = centres.shape[1:]
    anchor, widest = np.zeros((k, d)), np.zeros(k)
    moves, own = np.empty((len(running), k)), np.empty((len(running), k))
    for w in running:
        for c in range(k):
            for j in range(d):
                anchor[c, j] += centres[w, c, j] / len(running)
    for i in range(len(running)):
        for c in range(k):
            total = 0.0
            for j in range(d):
                total += (centres[running[i], c, j] - anchor[c, j]) ** 2
            moves[i, c] = np.sqrt(total)
            own[i, c] = squared(centres[running[i], c])
            widest[c] = max(widest[c], moves[i, c])
    sizes = widest.copy()
    for c in range(k):
        sizes[c] += np.sqrt(squared(anchor[c]))
    return anchor, moves, widest, sizes, own


@compiled(set())
def moved_rows(labels, nearest, groups, many, lines):  # type: ignore[no-untyped-def]
    """Label rows by their new lines; those that move, by where they go, and where each of the ways begins."""
    starts = np.zeros((lines + 1) * lines + 1, np.int64)
    for x in range(len(labels)):
        line = nearest[x] * many + groups[x]
        if labels[x] != line:
            starts[labels[x] * lines + line + 1] += 1
    for way in range((lines + 1) * lines):
        starts[way + 1] += starts[way]
    moved, free = np.empty(starts[-1], np.int64), starts.copy()
    for x in range(len(labels)):
        line = nearest[x] * many + groups[x]
        if labels[x] != line:
            way = labels[x] * lines + line
            moved[free[way]] = x
            free[way] += 1
            labels[x] = line
    return moved, starts


@compiled({"contract"})
def follow_anchor(pool, labels, nearest, many, side, mates, state, sums, counts):  # type: ignore[no-untyped-def]
    """Bring every world's sums from the labels to the nearest anchor centres, by tables of the sums of four rows.

    Rows that go the same way are taken in blocks; a world's bits for four of them pick one of sixteen sums. World
    `mates + i` is the complement of world `i`, unless `mates` is 0: its sums are what is left of the block.
    """
    table, groups = pool[0], pool[4]
    g, lines, width = sums.shape[0], sums.shape[1] - 1, sums.shape[2]
    moved, starts = moved_rows(labels, nearest, groups, many, lines)
    tables = np.zeros((BLOCK // 4, 16, width))
    total, part, nothing = np.empty(width), np.empty(width), np.zeros(width)
    words = np.empty(BLOCK // 8, np.uint64)
    for way in range((lines + 1) * lines):
        source, target = way // lines, way % lines
        for first in range(starts[way], starts[way + 1], BLOCK):
            some = moved[first : min(first + BLOCK, starts[way + 1])]
            sum_rows(total, table, some, len(some), width)
            for spot in range(BLOCK):
                new, q = 1 << (spot % 4), spot // 4
                for low in range(new):
                    for j in range(width):
                        tables[q, new + low, j] = tables[q, low, j] + (
                            table[some[spot], j] if spot < len(some) else 0.0
                        )
            for w in range(mates if mates else g):
                if w % 8 == 0:
                    for q in range(BLOCK // 8):
                        x = np.uint64(0)
                        for i in range(min(8, len(some) - 8 * q)):
                            x |= np.uint64(side[w // 8, some[8 * q + i]]) << np.uint64(8 * i)
                        words[q] = transposed(x)
                if state[w] != RUNNING and not (mates and state[w + mates] == RUNNING):
                    continue
                word = np.uint64(0)
                for q in range(BLOCK // 8):
                    word |= ((words[q] >> np.uint64(8 * (w % 8))) & np.uint64(255)) << np.uint64(8 * q)
                here = np.int64(ones(word))
                pick_sums(part, tables, word, width)
                add_part(sums[w], source, target, part, nothing, width)
                counts[w, source] -= here
                counts[w, target] += here
                if mates:
                    add_part(sums[w + mates], source, target, total, part, width)
                    counts[w + mates, source] -= len(some) - here
                    counts[w + mates, target] += len(some) - here


@compiled({"contract"})
def leave_anchor(pool, centres, state, rivals, side, running, reach, sums, counts):  # type: ignore[no-untyped-def]
    """Correct the sums of the running worlds for rows nearer to a rival there than to the anchor's choice.

    Returns how many tiles were seen and rows moved. A decision that rounding could turn makes a world PLAIN.
    """
    starts, order = rivals[:2]
    n, k, work = len(pool[0]), centres.shape[1], 0
    buckets = (len(starts) - 1) // (k * k)
    ends = np.zeros(len(side) + 1, np.int64)  # of the running worlds in each eight
    for w in running:
        ends[w // 8 + 1] += 1
    visits = np.full((n, 3), -1.0)  # of rows with several rivals: the last, where they went, how much nearer that was
    bits = np.empty(len(order), np.uint8)
    for eight in range(len(side)):
        ends[eight + 1] += ends[eight]
        first, last = ends[eight], ends[eight + 1]
        if first == last:
            continue
        for pair in range(k * k):
            begin = end = starts[pair * buckets]
            if begin < starts[(pair + 1) * buckets]:
                for i in range(first, last):
                    end = max(end, prefix(reach, i, pair // k, pair % k, starts, buckets))
            for place in range(begin, end):
                bits[place] = side[eight, order[place]]
        for a in range(k):
            work += leave_cluster(
                pool, centres, state, rivals, a, running, first, last, reach, bits, visits, sums, counts
            )
    return work


@compiled({"contract"})
def leave_cluster(pool, centres, state, rivals, a, running, first, last, reach, bits, visits, sums, counts):  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915
    """Correct the sums of up to eight worlds for rows that leave the anchor's cluster `a` for a rival."""
    table, _, lengths, longest, groups = pool
    starts, order, alone, slacks, tiles, chosen = rivals
    own = reach[3]
    width, (k, d) = table.shape[1], centres.shape[1:]
    buckets, many = (len(starts) - 1) // (k * k), (sums.shape[1] - 1) // k
    weights, values, part, nothing = np.empty(d), np.empty(ROWS), np.empty(width), np.zeros(width)
    work = 0
    for i in range(first, last):
        w, visit = running[i], a * len(running) + i
        mine, mine_squared = centres[w], own[i]
        for b in range(k):
            key = (a * k + b) * buckets
            begin = starts[key]
            if begin == starts[key + buckets]:
                continue
            end = prefix(reach, i, a, b, starts, buckets)
            for j in range(d):
                weights[j] = 2 * (mine[a, j] - mine[b, j])
            leaving = 0
            for place in range(begin, end, ROWS):
                work += 1
                weigh(tiles, place * d, weights, 0, d, mine_squared[b] - mine_squared[a], values, 0)
                rows = crossing(values, slacks, place, bits, np.uint8(1 << (w % 8)))
                while rows:
                    value, spot = values[lowest_bit(rows)], place + lowest_bit(rows)
                    rows &= rows - np.uint64(1)
                    x, slack = order[spot], slacks[spot]
                    if value >= -slack:  # for the worst world: what is it here?
                        slack = slack_of(lengths[x] + np.sqrt(max(mine_squared[a], mine_squared[b])), longest)
                        if value > slack:
                            continue
                        if value >= -slack:
                            state[w] = PLAIN
                    chosen[leaving] = x
                    leaving += 1
                    if alone[spot]:
                        continue
                    last_visit = visits[x]
                    if last_visit[0] == visit:  # gone to another rival already: which is nearer?
                        leaving -= 1
                        goal = int(last_visit[1])
                        slack = slack_of(lengths[x] + np.sqrt(max(mine_squared[goal], mine_squared[b])), longest)
                        if abs(last_visit[2] - value) <= slack:
                            state[w] = PLAIN
                        if value >= last_visit[2]:
                            continue
                        source, target = goal * many + groups[x], b * many + groups[x]
                        add_part(sums[i], source, target, table[x], nothing, width)
                        counts[i, source] -= 1
                        counts[i, target] += 1
                    last_visit[0], last_visit[1], last_visit[2] = visit, b, value
            work += leaving
            if leaving and many == 1:
                sum_rows(part, table, chosen, leaving, width)
                add_part(sums[i], a, b, part, nothing, width)
                counts[i, a] -= leaving
                counts[i, b] += leaving
                continue
            for x in chosen[:leaving]:
                source, target = a * many + groups[x], b * many + groups[x]
                add_part(sums[i], source, target, table[x], nothing, width)
                counts[i, source] -= 1
                counts[i, target] += 1
    return work


@compiled({"contract"})
def move_centres(centres, state, limits, factors, running, sums, counts, longest):  # type: ignore[no-untyped-def]
    """Put the centres of the running worlds on the means of their clusters, and see which worlds stop."""
    (k, d), many = centres.shape[1:], factors.shape[1]
    mean = np.empty(d)
    for i in range(len(running)):
        w = running[i]
        shift = 0.0
        for c in range(k):
            weight = 0.0
            mean[:] = 0.0
            for g in range(many):
                line, factor = c * many + g, factors[w, g]
                if counts[i, line] and factor > 0:  # what is left of a sum without rows is rounding
                    weight += factor * counts[i, line]
                    for j in range(d):
                        mean[j] += factor * sums[i, line, j]
            if weight == 0:
                state[w] = PLAIN
                break
            for j in range(d):
                value = mean[j] / weight
                shift += (value - centres[w, c, j]) ** 2
                centres[w, c, j] = value
        if state[w] == RUNNING:
            state[w] = stops(shift, limits[w], longest)


@compiled({"contract"})
def stops(shift, limit, longest):  # type: ignore[no-untyped-def]
    """What a world does after its centres moved by `shift` (squared)."""
    rounding = 10 * ADDING * longest
    if shift <= rounding * rounding:
        return DONE  # no row changed its cluster
    if abs(shift - limit) <= 1e-9 * limit + rounding * np.sqrt(limit):
        return PLAIN
    return DONE if shift <= limit else RUNNING
