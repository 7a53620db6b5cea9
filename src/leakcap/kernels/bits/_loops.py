"""Compiled loops on the bits of worlds, in words of 64 rows: bit `r` of `words[w, b]` is the row at `64 b + r`."""

from __future__ import annotations

from typing import Any

import numba.extending
import numpy as np
from numba import types

from leakcap.ground.compiled import compiled

__all__ = ["gather_bits", "ones", "pick_words", "turn_words", "turned_place"]

intrinsic: Any = numba.extending.intrinsic


@intrinsic
def ones(typing, word):  # type: ignore[no-untyped-def]
    """How many bits of a word are set."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@compiled(set())
def _swap(a, b, shift, mask):  # type: ignore[no-untyped-def]
    """Exchange the upper half of every block of `a` with the lower half of that of `b`."""
    t = (a >> shift ^ b) & mask
    return a ^ t << shift, b ^ t


@compiled(set())
def _turn(a, b, c, d, e, f, g, h):  # type: ignore[no-untyped-def]
    """Eight words as rows of eight blocks of eight bits: rows and columns exchanged within every block."""
    by, low = np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F)
    a, e = _swap(a, e, by, low)
    b, f = _swap(b, f, by, low)
    c, g = _swap(c, g, by, low)
    d, h = _swap(d, h, by, low)
    by, low = np.uint64(2), np.uint64(0x3333333333333333)
    a, c = _swap(a, c, by, low)
    b, d = _swap(b, d, by, low)
    e, g = _swap(e, g, by, low)
    f, h = _swap(f, h, by, low)
    by, low = np.uint64(1), np.uint64(0x5555555555555555)
    a, b = _swap(a, b, by, low)
    c, d = _swap(c, d, by, low)
    e, f = _swap(e, f, by, low)
    g, h = _swap(g, h, by, low)
    return a, b, c, d, e, f, g, h


@compiled(set())
def turned_place(place):  # type: ignore[no-untyped-def]
    """Which byte holds a row of eight worlds after a turn: the row `8 q + i` of 64 is byte `q` of word `i`."""
    return np.uint32(place & ~63 | (place & 7) << 3 | place >> 3 & 7)


@compiled(set())
def _eight(side, at, k):  # type: ignore[no-untyped-def]
    """The bytes of eight places, every eighth from `k`, as one word."""
    x = np.uint64(side[at[k]]) | np.uint64(side[at[k + 8]]) << np.uint64(8)
    x |= np.uint64(side[at[k + 16]]) << np.uint64(16) | np.uint64(side[at[k + 24]]) << np.uint64(24)
    x |= np.uint64(side[at[k + 32]]) << np.uint64(32) | np.uint64(side[at[k + 40]]) << np.uint64(40)
    return x | np.uint64(side[at[k + 48]]) << np.uint64(48) | np.uint64(side[at[k + 56]]) << np.uint64(56)


@compiled(set())
def turn_words(words, w, turned):  # type: ignore[no-untyped-def]
    """The bits of eight worlds from `w` side by side: a byte for each place, in the order of `turned_place`.

    `turned` has eight words for each word of a world and one more, for places where no bit is set.
    """
    a, b, c, d = words[w], words[w + 1], words[w + 2], words[w + 3]
    e, f, g, h = words[w + 4], words[w + 5], words[w + 6], words[w + 7]
    for k in range(words.shape[1]):
        t = turned[8 * k : 8 * k + 8]
        t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7] = _turn(a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k])
    turned[8 * words.shape[1]] = 0


@compiled(set())
def pick_words(turned, at, out, w):  # type: ignore[no-untyped-def]
    """Write to eight worlds of `out` from `w` their bits at some places, a multiple of 64 of them, in that order."""
    side = turned.view(np.uint8)
    a, b, c, d = out[w], out[w + 1], out[w + 2], out[w + 3]
    e, f, g, h = out[w + 4], out[w + 5], out[w + 6], out[w + 7]
    for k in range(len(at) >> 6):
        p = 64 * k
        a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k] = _turn(
            _eight(side, at, p), _eight(side, at, p + 1), _eight(side, at, p + 2), _eight(side, at, p + 3),
            _eight(side, at, p + 4), _eight(side, at, p + 5), _eight(side, at, p + 6), _eight(side, at, p + 7),
        )  # fmt: skip


@compiled(set())
def gather_bits(words, at, out):  # type: ignore[no-untyped-def]
    """`out[w]`: the bits of every world at some places, in their order; both have a multiple of eight worlds.

    `at` are the places as `turned_place` gives them, filled up to whole words with `64 words.shape[1]`, where no bit
    is set. With the bits of eight worlds side by side, moving a byte moves eight bits.
    """
    turned = np.empty(8 * words.shape[1] + 1, np.uint64)
    for w in range(0, len(words), 8):
        turn_words(words, w, turned)
        pick_words(turned, at, out, w)
