"""Lloyd's algorithm in a group of worlds around an anchor, and groups that part when their worlds drift apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Bits, Floats
from leakcap.kernels.kmeans.state import AWAY, PLAIN, RUNNING, AnchoredGroup, CentredPool, Numbers, Reach, Rivals

__all__ = ["advance", "alone", "pool_of", "start_group"]

MAX_RIVAL_NUMBERS = 2**23  # numbers in the table of the rows that worlds look at; half of the pool always has room
MAX_BUCKETS = 32  # steps in which rivals are ordered by how far a world must be from the anchor for them to matter
# What the survey of a tile costs, in tiles that a world looks at; a row that moves costs as much as one.
SURVEY_TILES = 8
MIN_SURVEYS_TO_PART = 4  # work of the worlds, in surveys, from which it is worth to think about smaller groups
# Share of the spread left in two groups, if there are two; one normal group on a line leaves 0.36.
MAX_SPREAD_LEFT = 0.25


def pool_of(centred: Floats, groups: Numbers) -> CentredPool:
    """Rows in the layouts that the compiled loops read."""
    from leakcap.kernels.kmeans._loops import ROWS, in_tiles

    n, d = centred.shape
    table = np.zeros((n, -(-d // 8) * 8))
    table[:, :d] = centred
    tiles = np.zeros((-(-n // ROWS), d, ROWS))
    in_tiles(table, tiles)
    lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    return CentredPool(table=table, tiles=tiles, lengths=lengths, longest=float(lengths.max()), groups=groups)


def start_group(members: Numbers, mates: int, start: Floats, limits: Floats, factors: Floats) -> AnchoredGroup:
    """Worlds that have not moved yet."""
    g = len(members)
    centres = np.repeat(start[None], g, axis=0)
    return AnchoredGroup(
        members=members,
        mates=mates,
        centres=centres,
        limits=limits[members],
        factors=factors[members],
        state=np.full(g, RUNNING),
        passed=0,
    )


def advance(pool: CentredPool, packed: Bits, group: AnchoredGroup, iterations: int) -> list[AnchoredGroup]:
    """Iterate until no world is RUNNING, or until smaller groups would be better: these are returned.

    Changes centres and states.
    """
    from leakcap.kernels.kmeans import _loops as compiled
    from leakcap.kernels.kmeans import _survey as surveying

    _, mates, centres, limits, factors, state, passed = group
    g, k, d = centres.shape
    n, width = pool.table.shape
    lines = k * factors.shape[1]  # a sum for each group in each cluster
    labels, nearest = np.full(n, lines), np.empty(n, np.int64)  # the last line is no cluster
    sums, counts = np.zeros((g, lines + 1, width)), np.zeros((g, lines + 1), np.int64)
    buckets = max(1, min(MAX_BUCKETS, 2**17 // (k * k)))
    rows, keys = np.empty((2, min(n * (k - 1), max(n // 2, MAX_RIVAL_NUMBERS // d))), np.int64)
    rivals = tuple(_room(len(rows), k, d, buckets))
    side = compiled.side_by_side(packed, group.members)
    others: list[AnchoredGroup] = []
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
        surveys = (work + listed) / (SURVEY_TILES * len(pool.tiles))
        if g > 1 and surveys > MIN_SURVEYS_TO_PART:
            others += _leave(group, passed, *_leaving(centres, running, surveys))
    return others


def _leaving(centres: Floats, running: Numbers, surveys: float) -> list[Numbers]:
    """Worlds that should leave their group, by new groups."""
    if surveys > len(running) / 2:  # each by itself: it has half of the rows to survey
        return list(running[:, None])
    apart = _parted(centres[running[:: 1 + len(running) // 64]])[1] < MAX_SPREAD_LEFT
    return [_fewer(centres, running)] if apart else []


def _fewer(centres: Floats, running: Numbers) -> Numbers:
    """The smaller part of the running worlds when they part in two."""
    near, _ = _parted(centres[running])
    return running[near] if 2 * near.sum() < len(running) else running[~near]


def _leave(group: AnchoredGroup, passed: int, *parts: Numbers) -> list[AnchoredGroup]:
    """Running worlds leave as groups of their own."""
    found = []
    for part in parts:
        some = part[group.state[part] == RUNNING]
        if len(some):
            members, _, centres, limits, factors, state, _ = group
            found.append(
                AnchoredGroup(
                    members=members[some],
                    mates=0,
                    centres=centres[some],
                    limits=limits[some],
                    factors=factors[some],
                    state=state[some],
                    passed=passed,
                )
            )
            group.state[some] = AWAY
    return found


def alone(pool: CentredPool, packed: Bits, group: AnchoredGroup, iterations: int) -> None:
    """Iterate in the only world of a group, on its own rows. Changes centres and states."""
    from leakcap.kernels.kmeans import _lone_loops as compiled
    from leakcap.kernels.kmeans._loops import move_centres

    here = np.unpackbits(packed[group.members[0]], count=len(pool.table)).view(np.bool_)
    own = tuple(pool._replace(table=pool.table[here], lengths=pool.lengths[here], groups=pool.groups[here]))
    rows, (_, k, _), many = int(here.sum()), group.centres.shape, group.factors.shape[1]
    labels, upper, lower = np.full(rows, -1), np.full(rows, np.inf), np.zeros(rows)
    sums, counts = np.zeros((1, k * many + 1, pool.table.shape[1])), np.zeros((1, k * many + 1), np.int64)
    running, centres = np.zeros(1, np.int64), group.centres[0]
    for _ in range(group.passed, iterations):
        if group.state[0] != RUNNING:
            break
        if not compiled.look(own, centres, many, labels, upper, lower, sums[0], counts[0]):
            group.state[0] = PLAIN
            break
        before = centres.copy()
        move_centres(group.centres, group.state, group.limits, group.factors, running, sums, counts, pool.longest)
        compiled.loosen(before, centres, many, labels, upper, lower)


def _room(longest: int, k: int, d: int, buckets: int) -> Rivals:
    """For a list of rivals."""
    from leakcap.kernels.kmeans._loops import ROWS

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
