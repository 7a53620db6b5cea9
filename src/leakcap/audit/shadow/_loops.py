"""Compiled loops over the scores of all units: sums of both sides in one pass, and ranks.

One thread each: callers split the units. The compiler does not find the vector instructions of the sums by itself, so
eight units at a time are spelt out as the vectors they are; LLVM makes them NEON or AVX.
"""

from __future__ import annotations

import math
from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir
from numba import types

from leakcap.ground.compiled import compiled

__all__ = ["add_sides", "add_sides_with_care", "first_scores", "log_ratios", "outside_ranks", "windows"]

LANES = 8  # units that travel together
ROWS = 2  # releases whose scores are added before the sums go back to memory

intrinsic: Any = numba.extending.intrinsic
_WORD, _VECTOR = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
_BYTES, _WORDS = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(_WORD, LANES)


@intrinsic
def _add_tile(typing, scores, inside, place, width, pivots, sums, to, room):  # type: ignore[no-untyped-def]
    """Add `ROWS` rows of `LANES` scores, from `place` on, to the four sums of their units, from `to` on.

    `width` numbers lie between rows of scores, `room` between those of pivots and sums.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        def at(argument: int, place: Any, kind: Any) -> Any:
            array = context.make_array(signature.args[argument])(context, builder, args[argument])
            return builder.bitcast(builder.gep(array.data, [place]), kind.as_pointer())

        single = signature.args[0].dtype == types.float32
        given = ir.VectorType(ir.FloatType(), LANES) if single else _VECTOR
        steps = [args[6]]
        for _ in range(3):
            steps.append(builder.add(steps[-1], args[7]))
        outside_pivot, inside_pivot = (builder.load(at(4, step, _WORDS), align=8) for step in steps[:2])
        totals = [builder.load(at(5, step, _VECTOR), align=8) for step in steps]
        place = args[2]
        for _ in range(ROWS):
            score = builder.load(at(0, place, given), align=4 if single else 8)
            score = builder.fpext(score, _VECTOR) if single else score
            # Bytes 0 and 1 become words of zeros and of ones: both sides are then got by "and", cheaper than by choice.
            member = builder.sext(builder.neg(builder.load(at(1, place, _BYTES), align=1)), _WORDS)
            pivot = builder.xor(outside_pivot, builder.and_(builder.xor(outside_pivot, inside_pivot), member))
            apart = builder.bitcast(builder.fsub(score, builder.bitcast(pivot, _VECTOR)), _WORDS)
            for side, mask in enumerate((builder.not_(member), member)):
                own = builder.bitcast(builder.and_(apart, mask), _VECTOR)
                totals[side] = builder.fadd(totals[side], own)
                square = builder.fmul(own, own, flags=("contract",))
                totals[2 + side] = builder.fadd(totals[2 + side], square, flags=("contract",))
            place = builder.add(place, args[3])
        for total, step in zip(totals, steps, strict=True):
            builder.store(total, at(5, step, _VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(scores, inside, place, width, pivots, sums, to, room), generate


@compiled(fastmath=set())
def add_sides(scores, inside, start, units, pivots, sums):  # type: ignore[no-untyped-def]
    """For units `start` to `start + units`: sums (rows 0, 1) and sums of squares (rows 2, 3) about the pivots.

    Even rows are of those outside, odd ones of those inside. Takes whole tiles of units and of rows only, and does not
    look for numbers that are not finite: they spoil the sums of their units, which shows. Returns how far it got.
    """
    n, room = scores.shape[1], sums.shape[1]
    tiles, rows = units // LANES, scores.shape[0] // ROWS
    for row in range(rows):
        for tile in range(tiles):
            first = row * ROWS * n + start + tile * LANES
            _add_tile(scores, inside, first, n, pivots, sums, tile * LANES, room)
    return rows * ROWS, tiles * LANES


@compiled(fastmath={"contract"})
def add_sides_with_care(scores, inside, units, begin, pivots, sums, counts):  # type: ignore[no-untyped-def]
    """The same for some units by number, from row `begin` on, leaving out what is not finite, and counting the rest."""
    for row in range(begin, scores.shape[0]):
        for place in range(len(units)):
            score = np.float64(scores[row, units[place]])
            if math.isfinite(score):
                side = 1 if inside[row, units[place]] else 0
                apart = score - pivots[side, place]
                sums[side, place] += apart
                sums[2 + side, place] += apart * apart
                counts[side, place] += 1


@compiled(fastmath=set())
def first_scores(scores, inside, start, units, pivots, found):  # type: ignore[no-untyped-def]
    """The first finite score of each unit outside (row 0) and inside (row 1): what its sums are measured from."""
    missing = 2 * units
    for row in range(scores.shape[0]):
        for place in range(units):
            side = 1 if inside[row, start + place] else 0
            if not found[side, place]:
                score = np.float64(scores[row, start + place])
                if math.isfinite(score):
                    pivots[side, place] = score
                    found[side, place] = True
                    missing -= 1
        if missing == 0:
            return


@compiled(fastmath={"contract"})
def log_ratios(target, offset, centres, weights, out):  # type: ignore[no-untyped-def]
    """`offset + weights[0] (x - centres[0])^2 - weights[1] (x - centres[1])^2` for every target; 0 if not finite."""
    for row in range(target.shape[0]):
        for unit in range(target.shape[1]):
            score = np.float64(target[row, unit])
            apart, near = score - centres[0, unit], score - centres[1, unit]
            ratio = offset[unit] + weights[0, unit] * apart * apart - weights[1, unit] * near * near
            out[row, unit] = ratio if math.isfinite(score) else 0.0


@compiled(fastmath=set())
def places(ordered, count, score):  # type: ignore[no-untyped-def]
    """How many of the first `count` sorted numbers lie below a score, and how many do not lie above it."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < score:
            low = middle + 1
        else:
            high = middle
    below, high = low, count
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return below, low


@compiled(fastmath=set())
def outside_ranks(ordered, before, counts, target, below, upto):  # type: ignore[no-untyped-def]
    """How many of a unit's scores as an outsider lie below each target, and how many do not lie above it.

    A row of `ordered` holds the sorted scores of one unit, `before[unit, i]` tells how many of the first `i` are of
    releases that it took part in.
    """
    for unit in range(target.shape[1]):
        for row in range(target.shape[0]):
            low, high = places(ordered[unit], counts[unit], target[row, unit])
            below[row, unit] = low - before[unit, low]
            upto[row, unit] = high - before[unit, high]


@compiled(fastmath=set())
def members_below(ordered, before, count, rank):  # type: ignore[no-untyped-def]
    """How many of the first `rank` of the sorted scores are a member's; equal scores count in equal parts."""
    if rank >= count:
        return np.float64(before[count])
    first, last = places(ordered, count, ordered[int(rank)])
    return before[first] + (before[last] - before[first]) * (rank - first) / (last - first)


@compiled(fastmath=set())
def windows(ordered, before, counts, widths, target, members, everybody):  # type: ignore[no-untyped-def]
    """Around the rank of each target among its unit's scores: how many scores, and how many of them as a member.

    The window holds the scores that equal the target, and as many on either side as make up `widths[unit]`.
    """
    for unit in range(target.shape[1]):
        own, insiders, count = ordered[unit], before[unit], counts[unit]
        for row in range(target.shape[0]):
            below, upto = places(own, count, target[row, unit])
            reach = max(0.0, (widths[unit] - (upto - below)) / 2)
            low, high = max(below - reach, 0.0), min(upto + reach, float(count))
            found = members_below(own, insiders, count, high) - members_below(own, insiders, count, low)
            members[row, unit] = max(found, 0.0)
            everybody[row, unit] = max(high - low, found)
