"""Compiled loops over the bytes that names are spelt with: digits, UTF-8, and SipHash-2-4 of every name.

SipHash: a fast short-input PRF (Aumasson and Bernstein, 2012). Its two loops per word and four at the end are written
out as they are printed there.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["digits", "siphash", "utf8", "world_bytes"]

LARGEST_DIGITS = 20  # of a number of 64 bits; one below 0 has 19 and a sign
POWERS = np.array([10**power for power in range(LARGEST_DIGITS)], dtype=np.uint64)
TENS = np.array([48 + pair // 10 for pair in range(100)], dtype=np.uint8)
ONES = np.array([48 + pair % 10 for pair in range(100)], dtype=np.uint8)
U100 = np.uint64(100)

# SipHash's start: "somepseudorandomlygeneratedbytes"
S0, S1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
S2, S3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
LAST = np.uint64(0xFF)
# The one-to-one step after it (splitmix64), as pandas has it: bits of accounts that are open hang on it.
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
U0, U1, U2, U3, U4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
U5, U6, U7, U14, U28 = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(14), np.uint64(28)
U8, U24, U40 = np.uint64(8), np.uint64(24), np.uint64(40)
U13, U16, U17, U21, U32 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21), np.uint64(32)
U27, U30, U31, U43 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(43)
U47, U48, U51, U56 = np.uint64(47), np.uint64(48), np.uint64(51), np.uint64(56)
T7, T14, T28 = np.uint64(0x00AA00AA00AA00AA), np.uint64(0x0000CCCC0000CCCC), np.uint64(0x00000000F0F0F0F0)


@compiled(set())
def _round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v0 += v1
    v1 = ((v1 << U13) | (v1 >> U51)) ^ v0
    v0 = (v0 << U32) | (v0 >> U32)
    v2 += v3
    v3 = ((v3 << U16) | (v3 >> U48)) ^ v2
    v0 += v3
    v3 = ((v3 << U21) | (v3 >> U43)) ^ v0
    v2 += v1
    v1 = ((v1 << U17) | (v1 >> U47)) ^ v2
    v2 = (v2 << U32) | (v2 >> U32)
    return v0, v1, v2, v3


@compiled(set())
def _word(data, at):  # type: ignore[no-untyped-def]
    """Eight bytes, the first one lowest: a single load, since a place that has no sign is not looked at before."""
    return (
        np.uint64(data[at])
        | (np.uint64(data[at + U1]) << U8)
        | (np.uint64(data[at + U2]) << U16)
        | (np.uint64(data[at + U3]) << U24)
        | (np.uint64(data[at + U4]) << U32)
        | (np.uint64(data[at + U5]) << U40)
        | (np.uint64(data[at + U6]) << U48)
        | (np.uint64(data[at + U7]) << U56)
    )


@compiled(set())
def _one(data, first, end, k0, k1):  # type: ignore[no-untyped-def]
    """SipHash-2-4 of `data[first:end]`, behind which there are eight bytes more at least."""
    v0, v1, v2, v3 = k0 ^ S0, k1 ^ S1, k0 ^ S2, k1 ^ S3
    at = first
    while at + U8 <= end:
        word = _word(data, at)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        at += U8
    own = (U1 << (U8 * (end - at))) - U1  # bits of the last word that are the name's
    word = (_word(data, at) & own) | ((end - first) & LAST) << U56
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= LAST
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@compiled(set())
def siphash(data, ends, k0, k1, mixed, out):  # type: ignore[no-untyped-def]
    """Of every name, which ends where `ends` says and begins where the one before it ended."""
    first = U0
    for name in range(len(ends)):
        end = np.uint64(ends[name])
        x = _one(data, first, end, k0, k1)
        if mixed:
            x = (x ^ (x >> U30)) * M1
            x = (x ^ (x >> U27)) * M2
            x ^= x >> U31
        out[name] = x
        first = end


@compiled(set())
def digits(numbers, data, ends):  # type: ignore[no-untyped-def]
    """Whole numbers of 64 bits by their digits."""
    at = U0
    for name in range(len(numbers)):
        rest, length = np.uint64(numbers[name]), U1
        if numbers[name] < 0:
            rest = ~rest + U1  # also of the least, which has no opposite
            data[at] = 45
            at += U1
        while length < LARGEST_DIGITS and rest >= POWERS[length]:
            length += U1
        at += length
        ends[name] = place = at
        while length > U1:
            hundreds = rest // U100
            pair = rest - hundreds * U100
            data[place - U1], data[place - U2] = ONES[pair], TENS[pair]
            place, length, rest = place - U2, length - U2, hundreds
        if length:
            data[place - U1] = 48 + np.uint8(rest)


@compiled(set())
def utf8(letters, data, ends):  # type: ignore[no-untyped-def]
    """Texts of fixed width, one code point a column and zeros behind them, as UTF-8; surrogates have three bytes."""
    at = 0
    for name in range(len(letters)):
        width = letters.shape[1]
        while width and letters[name, width - 1] == 0:
            width -= 1
        for place in range(width):
            point = letters[name, place]
            if point < 0x80:
                data[at] = point
                at += 1
                continue
            if point < 0x800:
                data[at] = 0xC0 | (point >> 6)
                at += 1
            else:
                if point < 0x10000:
                    data[at] = 0xE0 | (point >> 12)
                else:
                    data[at] = 0xF0 | (point >> 18)
                    data[at + 1] = 0x80 | ((point >> 12) & 0x3F)
                    at += 1
                data[at + 1] = 0x80 | ((point >> 6) & 0x3F)
                at += 2
            data[at] = 0x80 | (point & 0x3F)
            at += 1
        ends[name] = at


@compiled(set())
def world_bytes(words, packed):  # type: ignore[no-untyped-def]
    """Words of 64 worlds for every unit as a row of bits for every world; what is left of the last byte stays 0.

    Eight units and eight worlds at a time are a square of bits in one word, which is turned over (Warren, Hacker's
    Delight, 7-3).
    """
    worlds = len(packed)
    for byte in range(packed.shape[1]):
        first = 8 * byte
        for eight in range((worlds + 7) // 8):
            x, shift = U0, np.uint64(8 * eight)
            for place in range(min(8, len(words) - first)):
                x |= ((words[first + place] >> shift) & LAST) << np.uint64(8 * (7 - place))
            t = (x ^ (x >> U7)) & T7
            x ^= t ^ (t << U7)
            t = (x ^ (x >> U14)) & T14
            x ^= t ^ (t << U14)
            t = (x ^ (x >> U28)) & T28
            x ^= t ^ (t << U28)
            for place in range(min(8, worlds - 8 * eight)):
                packed[8 * eight + place, byte] = np.uint8((x >> np.uint64(8 * place)) & LAST)
