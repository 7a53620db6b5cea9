"""Numbers, coins and worlds for every unit from its name and a secret key: the same wherever they are asked for.

What a person's number is depends on no one else: it stays when others come or go, in another process, on another
machine, on any partition of the data. The keyed function is SipHash-2-4 of the name, and a one-to-one step after it.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Ints
from leakcap.ground.proofs import proves
from leakcap.worlds.draw import complement
from leakcap.worlds.names import as_labels
from leakcap.worlds.spelling import Spelt, spelt
from leakcap.worlds.worldset import Worlds

__all__ = [
    "KEYED",
    "KEY_BYTES",
    "bits_of",
    "keyed_bits",
    "keyed_blocks",
    "keyed_by_all",
    "keyed_numbers",
    "keyed_texts",
    "keyed_words",
    "keyed_worlds",
]

KEY_BYTES = 16
KEYED = "complementary pairs of keyed fair bits"
WORD = 64  # worlds
TOGETHER = 2**14  # names whose bytes stay in the second cache


@proves("keyed-worlds")
def keyed_numbers(names: npt.ArrayLike, key: bytes) -> npt.NDArray[np.uint64]:
    """64 bits for every name, which look random to whoever lacks the key; equal names have equal numbers.

    Names are canonical: whole numbers and texts of the same digits are one, since a file read twice may bring either.
    """
    return _numbers(names, [key])[0]


@proves("keyed-worlds")
def keyed_by_all(names: npt.ArrayLike, keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """`(keys, n)`: the same by several keys, for which names are spelt once."""
    return _numbers(names, list(keys))


def keyed_bits(names: npt.ArrayLike, key: bytes) -> Bools:
    """A fair coin for every name."""
    return bits_of(keyed_numbers(names, key))


def bits_of(numbers: npt.NDArray[np.uint64]) -> Bools:
    """The coins of keyed numbers."""
    return np.asarray(numbers >> np.uint64(63), dtype=bool)


def keyed_blocks(names: npt.ArrayLike, key: bytes, count: int) -> Ints:
    """A block for every name, each of `count` as likely as any other up to 2^-32."""
    upper = keyed_numbers(names, key) >> np.uint64(32)
    return np.asarray((upper * np.uint64(count)) >> np.uint64(32), dtype=np.intp)


def keyed_words(names: npt.ArrayLike, key: bytes, worlds: int) -> npt.NDArray[np.uint64]:
    """`(words, n)`: 64 fair coins a word for every name, one for each of so many worlds; every word has its own key."""
    return _numbers(names, [_of_word(key, word) for word in range(-(-worlds // WORD))])


@proves("keyed-worlds")
def keyed_worlds(names: npt.ArrayLike, key: bytes, m: int) -> Worlds:
    """`m` worlds in complementary pairs; a unit is in the first or the second of each by a keyed coin of its own.

    Guarantee: every unit is in exactly m/2 worlds, whatever the key and the function are; and worlds of some of the
    units are those of all, with these units alone.
    """
    if checks.count(at_least=2, worlds=m) % 2:
        raise InputError(f"worlds must be a multiple of 2: use {m + 1}")
    units = len(as_labels(names).ravel())
    packed = np.zeros((m // 2, -(-units // 8)), dtype=np.uint8)
    if units:
        from leakcap.worlds._siphash_loops import world_bytes

        for place, word in enumerate(keyed_words(names, key, m // 2)):
            world_bytes(word, packed[place * WORD : (place + 1) * WORD])
    return Worlds(np.concatenate([packed, complement(packed, units)]), units, Fraction(1, 2), paired=True, design=KEYED)


def _of_word(key: bytes, word: int) -> bytes:
    _checked(key)
    return hmac.digest(key, b"leakcap worlds %d" % word, "sha256")[:KEY_BYTES]


def _checked(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise InputError(f"the key must have {KEY_BYTES} bytes, such as secrets.token_bytes({KEY_BYTES})")


def _numbers(names: npt.ArrayLike, keys: list[bytes]) -> npt.NDArray[np.uint64]:
    """`(keys, n)`; some names at a time, which are spelt once for all keys."""
    for key in keys:
        _checked(key)
    given = as_labels(names).ravel()
    found = np.empty((len(keys), len(given)), dtype=np.uint64)
    for start in range(0, len(given), TOGETHER):
        written = spelt(given[start : start + TOGETHER])
        for key, numbers in zip(keys, found, strict=True):
            keyed_texts(written, key, numbers[start : start + TOGETHER])
    return found


def keyed_texts(texts: Spelt, key: bytes, into: npt.NDArray[np.uint64]) -> None:
    """The same of bytes, whatever they spell."""
    from leakcap.worlds._siphash_loops import siphash

    low, high = (np.uint64(int.from_bytes(half, "little")) for half in (key[:8], key[8:]))
    siphash(texts.data, texts.ends, low, high, True, into)
