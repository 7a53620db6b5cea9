"""A number for every unit from its name and a secret key: the same wherever and whenever it is asked for.

What a person's number is depends on no one else: it stays when others come or go, in another process, on another
machine. The keyed function is SipHash-2-4, as pandas carries it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Ints
from leakcap.worlds.names import canonical_names

__all__ = ["KEY_BYTES", "keyed_bits", "keyed_blocks", "keyed_numbers"]

KEY_BYTES = 16


def keyed_numbers(names: npt.ArrayLike, key: bytes) -> npt.NDArray[np.uint64]:
    """64 bits for every name, which look random to whoever lacks the key; equal names have equal numbers.

    Names are canonical: whole numbers and texts of the same digits are one, since a file read twice may bring either.
    """
    if len(key) != KEY_BYTES:
        raise InputError(f"the key must have {KEY_BYTES} bytes, such as secrets.token_bytes({KEY_BYTES})")
    from pandas.util import hash_array

    # Numbers would be hashed without the key, so that texts are made of them; a key is read as latin-1 because all
    # bytes are characters there. Texts come as UTF-8 bytes written as latin-1, which takes any name.
    texts = _texts(names)
    found = hash_array(texts, encoding="latin-1", hash_key=key.decode("latin-1"), categorize=False)
    return np.asarray(found, dtype=np.uint64)


def keyed_bits(names: npt.ArrayLike, key: bytes) -> Bools:
    """A fair coin for every name."""
    return np.asarray(keyed_numbers(names, key) >> np.uint64(63), dtype=bool)


def keyed_blocks(names: npt.ArrayLike, key: bytes, count: int) -> Ints:
    """A block for every name, each of `count` as likely as any other up to 2^-32."""
    upper = keyed_numbers(names, key) >> np.uint64(32)
    return np.asarray((upper * np.uint64(count)) >> np.uint64(32), dtype=np.intp)


def _texts(names: npt.ArrayLike) -> npt.NDArray[Any]:
    texts = canonical_names(names)
    if all(map(str.isascii, texts)):
        return texts
    return np.array([text.encode("utf-8", "surrogatepass").decode("latin-1") for text in texts], dtype=object)
