"""Compiled loops of the masked sums. One thread each: callers split the work.

The compiler does not find the vector instructions of these loops by itself, so three small ones are spelt out as the
vectors they are; LLVM makes them NEON or AVX.
"""

from __future__ import annotations

from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir
from numba import types

from leakcap.ground.compiled import compiled

__all__ = ["LANES", "add_masked"]

LANES = 8  # columns that travel together; tables of more would not fit the first cache
BITS = 5  # rows of a table: one addition per world for every five rows, and 32 sums to prepare
TABLES = -(-64 // BITS)  # for the 64 rows of a word of a mask; the last table has the four rows left over
ENTRIES = 2**BITS

intrinsic: Any = numba.extending.intrinsic
_WORD, _VECTOR = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _at(builder: Any, data: Any, place: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


@intrinsic
def _load_word(typing, packed, place):  # type: ignore[no-untyped-def]
    """Eight bytes as one word."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = _data(context, builder, signature.args[0], args[0])
        return builder.load(_at(builder, data, args[1], _WORD), align=1)

    return types.uint64(packed, place), generate


@intrinsic
def _put_sum(typing, target, to, first, second):  # type: ignore[no-untyped-def]
    """`target[to] = target[first] + features[second]`, each a vector; `second` is `(features, place)`."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = _data(context, builder, signature.args[0], args[0])
        row, place = builder.extract_value(args[3], 0), builder.extract_value(args[3], 1)
        features = _data(context, builder, signature.args[3].types[0], row)
        old = builder.load(_at(builder, data, args[2], _VECTOR), align=8)
        new = builder.load(_at(builder, features, place, _VECTOR), align=8)
        builder.store(builder.fadd(old, new), _at(builder, data, args[1], _VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(target, to, first, second), generate


@intrinsic
def _add_entries(typing, out, to, tables, word):  # type: ignore[no-untyped-def]
    """Add to the vector `out[to]` the entry of each table that the bits of the word name."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        def constant(value: int) -> Any:
            return ir.Constant(_WORD, value)

        place = _at(builder, _data(context, builder, signature.args[0], args[0]), args[1], _VECTOR)
        data = _data(context, builder, signature.args[2], args[2])
        total = builder.load(place, align=8)
        for table in range(TABLES):
            entry = builder.and_(builder.lshr(args[3], constant(BITS * table)), constant(ENTRIES - 1))
            start = builder.add(builder.mul(entry, constant(LANES)), constant(table * ENTRIES * LANES))
            total = builder.fadd(total, builder.load(_at(builder, data, start, _VECTOR), align=8))
        builder.store(total, place, align=8)
        return context.get_dummy_value()

    return types.void(out, to, tables, word), generate


@compiled({"contract"})
def _words_of(packed, first, words):  # type: ignore[no-untyped-def]
    """`words[b, w]`: bits of the rows `8 * first + 64 b` and on in world `w`; worlds side by side, as they are read."""
    width = packed.shape[1]
    for w in range(len(packed)):
        for b in range(len(words)):
            byte = first + 8 * b
            if byte + 8 <= width:
                words[b, w] = _load_word(packed, w * width + byte)
            else:
                word = np.uint64(0)
                for i in range(width - byte):
                    word |= np.uint64(packed[w, byte + i]) << np.uint64(8 * i)
                words[b, w] = word


@compiled({"contract"})
def _prepare(tables, features, start, stop):  # type: ignore[no-untyped-def]
    """The sums of every choice among five rows, for the rows of one word.

    A bit of a word stands for the row that its byte says, the first row being a byte's highest bit. Rows beyond the
    last have no bit set in any world, so their entries are never read.
    """
    for bit in range(64):
        row = start + (bit & ~7) + 7 - (bit & 7)
        if row < stop:
            table, new = bit // BITS * ENTRIES, 1 << (bit % BITS)
            for known in range(new):
                _put_sum(tables, (table + new + known) * LANES, (table + known) * LANES, (features, row * LANES))


@compiled({"contract"})
def add_masked(features, packed, first, out):  # type: ignore[no-untyped-def]
    """Add to `out[:, w]` the features of all rows in world `w`, by tables of the sums of every five rows.

    `features` are `(tiles, rows, LANES)` and begin at row `8 * first`; `out` is `(tiles, worlds, LANES)`: what is used
    together lies together. The 32 sums of a table serve all
    worlds, so a world costs one addition for five rows (the method of the four Russians).
    """
    tiles, rows, _ = features.shape
    tables = np.zeros(TABLES * ENTRIES * LANES)
    words = np.zeros((min(16, -(-rows // 64)), len(packed)), dtype=np.uint64)
    for start in range(0, rows, 64 * len(words)):
        some = words[: -(-(rows - start) // 64)]
        _words_of(packed, first + start // 8, some)
        for tile in range(tiles):  # its sums stay in the first cache
            for b in range(len(some)):
                begin = start + 64 * b
                _prepare(tables, features[tile], begin, min(begin + 64, rows))
                for w in range(len(packed)):
                    _add_entries(out[tile], w * LANES, tables, some[b, w])
