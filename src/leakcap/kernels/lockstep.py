"""Lloyd's algorithm in a group of worlds around an anchor, and groups that part when their worlds drift apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["DONE", "PLAIN", "RUNNING", "Group", "Pool", "advance", "alone", "pool_of", "start_group"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
# A world's state. PLAIN: rounding or an empty cluster decides, only a plain fit can tell; AWAY: in another group now.
RUNNING, DONE, PLAIN, AWAY = 0, 1, 2, 3
ROOM = 2**23  # numbers in the table of the rows that worlds look at; half of the pool always has room
BUCKETS = 32  # steps in which rivals are ordered by how far a world must be from the anchor for them to matter
SURVEY = 8  # what the survey of a tile costs, in tiles that a world looks at; a row that moves costs as much as one
WORTH = 4  # work of the worlds, in surveys, from which it is worth to think about smaller groups
APART = 0.25  # share of the spread left in two groups, if there are two (one normal group on a line leaves 0.36)


class Pool(NamedTuple):
    """All rows around their mean: one below the other, in tiles, their lengths, and groups of rows of equal weight."""

    table: Floats
    tiles: Floats
    lengths: Floats
    longest: float
    groups: Numbers


class Group(NamedTuple):
    """Worlds that share an anchor, after some iterations."""

    members: Numbers
    mates: int  # world `mates + i` is the complement of world `i`, unless this is 0
    centres: Floats  # (worlds, k, d)
    limits: Floats  # a world stops when its centres move by less (squared)
    factors: Floats  # (worlds, groups): what a row of each group weighs
    state: Numbers
    passed: int


class Rivals(NamedTuple):
    """Rows and rivals, sorted by cluster, rival and margin: `starts` has a place for every bucket of every pair."""

    starts: Numbers
    order: Numbers  # rows
    alone: npt.NDArray[np.bool_]  # whether a row has no other rival
    slacks: Floats  # what rounding may do to a difference of squared distances
    tiles: Floats
    chosen: Numbers  # room for the rows that go to the rival in a world


class Reach(NamedTuple):
    """How far the centres of the running worlds are from the anchor's, and the farthest for each cluster."""

    moves: Floats
    widest: Floats
    sizes: Floats  # lengths that the centres of a cluster do not exceed
    own: Floats  # squared lengths of the centres


def pool_of(centred: Floats, groups: Numbers) -> Pool:
    """Rows in the layouts that the compiled loops read."""
    from leakcap.kernels.compiled.kmeans import ROWS, in_tiles

    n, d = centred.shape
    table = np.zeros((n, -(-d // 8) * 8))
    table[:, :d] = centred
    tiles = np.zeros((-(-n // ROWS), d, ROWS))
    in_tiles(table, tiles)
    lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    return Pool(table, tiles, lengths, float(lengths.max()), groups)


def start_group(members: Numbers, mates: int, start: Floats, limits: Floats, factors: Floats) -> Group:
    """Worlds that have not moved yet."""
    g = len(members)
    centres = np.repeat(start[None], g, axis=0)
    return Group(members, mates, centres, limits[members], factors[members], np.full(g, RUNNING), 0)


def advance(pool: Pool, packed: Bits, group: Group, iterations: int) -> list[Group]:
    """Iterate until no world is RUNNING, or until smaller groups would be better: these are returned.

    Changes centres and states.
    """
    from leakcap.kernels.compiled import kmeans as compiled
    from leakcap.kernels.compiled import survey as surveying

    _, mates, centres, limits, factors, state, passed = group
    g, k, d = centres.shape
    n, width = pool.table.shape
    lines = k * factors.shape[1]  # a sum for each group in each cluster
    labels, nearest = np.full(n, lines), np.empty(n, np.int64)  # the last line is no cluster
    sums, counts = np.zeros((g, lines + 1, width)), np.zeros((g, lines + 1), np.int64)
    buckets = max(1, min(BUCKETS, 2**17 // (k * k)))
    rows, keys = np.empty((2, min(n * (k - 1), max(n // 2, ROOM // d))), np.int64)
    rivals = tuple(_room(len(rows), k, d, buckets))
    side = compiled.side_by_side(packed, group.members)
    others: list[Group] = []
    while passed < iterations:
        running = np.flatnonzero(state == RUNNING)
        if not len(running):
            break
        anchor, *rest = compiled.anchor_of(centres, running)
        reach = Reach(*rest)
        listed = surveying.survey(tuple(pool), anchor, tuple(reach), nearest, rows, keys, buckets)
        if listed < 0 and reach.widest.max() == 0:
            state[running] = PLAIN  # most rows are as near to one centre as to another
        elif listed < 0:
            others += _leave(group, passed, _fewer(centres, running))
        if listed < 0:
            continue
        surveying.arrange(tuple(pool), reach.sizes, rows[:listed], keys[:listed], buckets, rivals)
        compiled.follow_anchor(tuple(pool), labels, nearest, lines // k, side, mates, state, sums, counts)
        some, many = sums[running], counts[running]
        work = compiled.leave_anchor(tuple(pool), centres, state, rivals, side, running, tuple(reach), some, many)
        compiled.move_centres(centres, state, limits, factors, running, some, many, pool.longest)
        passed += 1
        surveys = (work + listed) / (SURVEY * len(pool.tiles))
        if g > 1 and surveys > WORTH:
            others += _leave(group, passed, *_leaving(centres, running, surveys))
    return others


def _leaving(centres: Floats, running: Numbers, surveys: float) -> list[Numbers]:
    """Worlds that should leave their group, by new groups."""
    if surveys > len(running) / 2:  # each by itself: it has half of the rows to survey
        return list(running[:, None])
    apart = _parted(centres[running[:: 1 + len(running) // 64]])[1] < APART
    return [_fewer(centres, running)] if apart else []


def _fewer(centres: Floats, running: Numbers) -> Numbers:
    """The smaller part of the running worlds when they part in two."""
    near, _ = _parted(centres[running])
    return running[near] if 2 * near.sum() < len(running) else running[~near]


def _leave(group: Group, passed: int, *parts: Numbers) -> list[Group]:
    """Running worlds leave as groups of their own."""
    found = []
    for part in parts:
        some = part[group.state[part] == RUNNING]
        if len(some):
            members, _, centres, limits, factors, state, _ = group
            found.append(Group(members[some], 0, centres[some], limits[some], factors[some], state[some], passed))
            group.state[some] = AWAY
    return found


def alone(pool: Pool, packed: Bits, group: Group, iterations: int) -> None:
    """Iterate in the only world of a group, on its own rows."""
    rows = np.unpackbits(packed[group.members[0]], count=len(pool.table)).view(np.bool_)
    own = pool_of(pool.table[rows, : pool.tiles.shape[1]], pool.groups[rows])
    everyone = np.packbits(np.ones((1, len(own.table)), dtype=np.bool_), axis=1)
    advance(own, everyone, group._replace(members=np.zeros(1, np.int64)), iterations)


def _room(longest: int, k: int, d: int, buckets: int) -> Rivals:
    """For a list of rivals."""
    from leakcap.kernels.compiled.kmeans import ROWS

    tiles = longest // ROWS + k * k + 1
    places = tiles * ROWS
    return Rivals(
        starts=np.empty(k * k * buckets + 1, np.int64),
        order=np.zeros(places, np.int64),
        alone=np.empty(places, np.bool_),
        slacks=np.empty(places),
        tiles=np.zeros((tiles, d, ROWS)),
        chosen=np.empty(places, np.int64),
    )


def _parted(centres: Floats) -> tuple[npt.NDArray[np.bool_], float]:
    """Which worlds are near one of two, far from each other; the share of the spread that is left in the two parts."""
    flat = centres.reshape(len(centres), -1)

    def away(one: Floats) -> Floats:
        return np.asarray(((flat - one) ** 2).sum(axis=1))

    whole = away(flat.mean(axis=0))
    one = flat[whole.argmax()]
    other = flat[away(one).argmax()]
    for _ in range(4):
        near = away(one) < away(other)
        if near.all() or not near.any():
            return np.arange(len(flat)) % 2 == 0, 1.0
        one, other = flat[near].mean(axis=0), flat[~near].mean(axis=0)
    left = np.minimum(away(one), away(other))
    return near, float(left.sum() / whole.sum())
