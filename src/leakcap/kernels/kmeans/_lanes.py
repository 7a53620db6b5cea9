"""Loops of K-Means spelt out as vectors; LLVM makes them NEON or AVX. The compiler does not find them itself.

A *tile* holds 16 rows, column after column. Places count numbers from the beginning of an array, whatever its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.extending
from llvmlite import ir
from numba import types
from numba.core import cgutils

__all__ = [
    "ROWS",
    "add_part",
    "bytes_reversed",
    "crossing",
    "lowest_bit",
    "pick_sums",
    "sum_rows",
    "two_nearest",
    "weigh",
]

ROWS = 16  # of a tile
COLUMNS = 8  # of a table that travel together
intrinsic: Any = numba.extending.intrinsic
_room: Any = cgutils.alloca_once  # in a register, once compiled
_WORD = ir.IntType(64)
_ROWS, _HALF, _COLUMNS = (ir.VectorType(ir.DoubleType(), lanes) for lanes in (ROWS, ROWS // 2, COLUMNS))


def _word(value: int) -> Any:
    return ir.Constant(_WORD, value)


class _Places:
    """Loads and stores of vectors in the arrays that are the arguments of an intrinsic."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.kinds, self.args = context, builder, signature.args, args

    def at(self, argument: int, place: Any, kind: Any) -> Any:
        array = self.context.make_array(self.kinds[argument])(self.context, self.builder, self.args[argument])
        return self.builder.bitcast(self.builder.gep(array.data, [place]), kind.as_pointer())

    def load(self, argument: int, place: Any, kind: Any) -> Any:
        return self.builder.load(self.at(argument, place, kind), align=8)

    def store(self, value: Any, argument: int, place: Any) -> None:
        self.builder.store(value, self.at(argument, place, value.type), align=8)

    def spread(self, number: Any, lanes: int) -> Any:
        """A number in all lanes of a vector."""
        kind = ir.VectorType(number.type, lanes)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def times(self, count: Any, body: Callable[[Any], None]) -> None:
        with cgutils.for_range(self.builder, count) as loop:
            body(loop.index)


@intrinsic
def weigh(typing, tiles, place, weights, first, length, start, out, to):  # type: ignore[no-untyped-def]
    """`out[to + i] = start + sum over columns of weights[first + j] * tile[j, i]` for the 16 rows of a tile."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)
        total = _room(builder, _ROWS)
        builder.store(places.spread(args[5], ROWS), total)

        def column(j: Any) -> None:
            rows = places.load(0, builder.add(args[1], builder.mul(j, _word(ROWS))), _ROWS)
            weight = places.load(2, builder.add(args[3], j), ir.DoubleType())
            product = builder.fmul(rows, places.spread(weight, ROWS), flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)

        places.times(args[4], column)
        places.store(builder.load(total), 6, args[7])
        return context.get_dummy_value()

    integer, real = types.int64, types.float64
    return types.void(tiles, integer, weights, integer, integer, real, out, integer), generate


@intrinsic
def two_nearest(typing, values, place, count, best, second, label):  # type: ignore[no-untyped-def]
    """For the 8 rows at `place` of `values[count][16]`: the smallest, the second smallest, which is smallest."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)
        words = ir.VectorType(_WORD, ROWS // 2)
        one, two, which = (_room(builder, kind) for kind in (_HALF, _HALF, words))
        infinite = places.spread(ir.Constant(ir.DoubleType(), float("inf")), ROWS // 2)
        builder.store(infinite, one)
        builder.store(infinite, two)
        builder.store(ir.Constant(words, [0] * (ROWS // 2)), which)

        def cluster(c: Any) -> None:
            value = places.load(0, builder.add(args[1], builder.mul(c, _word(ROWS))), _HALF)
            old, older = builder.load(one), builder.load(two)
            nearer = builder.fcmp_ordered("<", value, old)
            builder.store(builder.select(nearer, places.spread(c, ROWS // 2), builder.load(which)), which)
            builder.store(builder.select(nearer, value, old), one)
            loser = builder.select(nearer, old, value)
            builder.store(builder.select(builder.fcmp_ordered("<", loser, older), loser, older), two)

        places.times(args[2], cluster)
        places.store(builder.load(one), 3, args[1])
        places.store(builder.load(two), 4, args[1])
        places.store(builder.load(which), 5, args[1])
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64, best, second, label), generate


@intrinsic
def crossing(typing, values, slacks, place, bits, bit):  # type: ignore[no-untyped-def]
    """A word with a bit for each of 16 values that is not above the slack at its place, where a world has its bit."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)
        below = builder.fcmp_ordered("<=", places.load(0, _word(0), _ROWS), places.load(1, args[2], _ROWS))
        bytes_ = builder.load(places.at(3, args[2], ir.VectorType(ir.IntType(8), ROWS)), align=1)
        here = builder.and_(bytes_, places.spread(args[4], ROWS))
        both = builder.and_(below, builder.icmp_unsigned("!=", here, ir.Constant(here.type, [0] * ROWS)))
        return builder.zext(builder.bitcast(both, ir.IntType(ROWS)), _WORD)

    return types.uint64(values, slacks, types.int64, bits, types.uint8), generate


@intrinsic
def lowest_bit(typing, word):  # type: ignore[no-untyped-def]
    """The position of the lowest bit that is set."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def sum_rows(typing, part, table, chosen, count, length):  # type: ignore[no-untyped-def]
    """`part[:length]`: the sum of the chosen rows of a table; the length is a multiple of eight."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)
        total = _room(builder, _COLUMNS)

        def columns(chunk: Any) -> None:
            j = builder.mul(chunk, _word(COLUMNS))
            builder.store(ir.Constant(_COLUMNS, [0.0] * COLUMNS), total)

            def row(i: Any) -> None:
                start = builder.add(builder.mul(places.load(2, i, _WORD), args[4]), j)
                builder.store(builder.fadd(builder.load(total), places.load(1, start, _COLUMNS)), total)

            places.times(args[3], row)
            places.store(builder.load(total), 0, j)

        places.times(builder.udiv(args[4], _word(COLUMNS)), columns)
        return context.get_dummy_value()

    return types.void(part, table, chosen, types.int64, types.int64), generate


@intrinsic
def pick_sums(typing, part, tables, word, length):  # type: ignore[no-untyped-def]
    """`part[:length]`: the sum of the entries of eight tables of sixteen rows that the nibbles of the word name."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)
        starts = []
        for q in range(8):
            nibble = builder.and_(builder.lshr(args[2], _word(4 * q)), _word(15))
            starts.append(builder.mul(builder.add(nibble, _word(16 * q)), args[3]))

        def columns(chunk: Any) -> None:
            j = builder.mul(chunk, _word(COLUMNS))
            total = places.load(1, builder.add(starts[0], j), _COLUMNS)
            for start in starts[1:]:
                total = builder.fadd(total, places.load(1, builder.add(start, j), _COLUMNS))
            places.store(total, 0, j)

        places.times(builder.udiv(args[3], _word(COLUMNS)), columns)
        return context.get_dummy_value()

    return types.void(part, tables, types.uint64, types.int64), generate


@intrinsic
def bytes_reversed(typing, word):  # type: ignore[no-untyped-def]
    """The word with its last byte first."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bswap(args[0])

    return types.uint64(types.uint64), generate


@intrinsic
def add_part(typing, sums, source, target, total, part, length):  # type: ignore[no-untyped-def]
    """Rows leave one cluster for another: `sums[target] += total - part`, `sums[source] -= total - part`."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        places = _Places(context, builder, signature, args)

        def columns(chunk: Any) -> None:
            j = builder.mul(chunk, _word(COLUMNS))
            moved = builder.fsub(places.load(3, j, _COLUMNS), places.load(4, j, _COLUMNS))
            source, target = (builder.add(builder.mul(line, args[5]), j) for line in args[1:3])
            places.store(builder.fsub(places.load(0, source, _COLUMNS), moved), 0, source)
            places.store(builder.fadd(places.load(0, target, _COLUMNS), moved), 0, target)

        places.times(builder.udiv(args[5], _word(COLUMNS)), columns)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(sums, integer, integer, total, part, integer), generate
