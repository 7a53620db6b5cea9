"""How names are spelt: the bytes of their canonical texts one after the other, whole arrays at a time.

It is what `canonical_names` says, encoded as UTF-8, without a Python object for each of many million names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Bits, Ints
from leakcap.worlds.names import PADDING, are_whole, as_labels, canonical_names

__all__ = ["Spelt", "spelt"]

WHOLE = "biu"  # kinds of numbers that are spelt with digits
SPARE = 8  # bytes behind the last name, so that a loop may read whole words


@dataclass(frozen=True, eq=False)
class Spelt:
    """Names one after the other; each begins where the one before it ends, and `SPARE` bytes follow the last."""

    data: Bits
    ends: Ints


def spelt(labels: npt.ArrayLike) -> Spelt:
    """The names of some labels, whose kinds are looked at here: of many millions give some at a time."""
    given = as_labels(labels).ravel()
    kind = given.dtype.kind
    if kind == "f" and are_whole(given):
        given, kind = given.astype(np.int64), "i"
    if kind in WHOLE:
        return _of_whole(given)
    if kind == "U":
        return _of_letters(given)
    if kind != "O" or not _all_texts(given):
        given = canonical_names(given)
    written = _of_texts(given)
    return _of_texts(canonical_names(given)) if _padded(written) else written


def _padded(written: Spelt) -> bool:
    """Whether one ends in what a name is not padded with."""
    starts = np.append(0, written.ends)[:-1]
    last = written.ends[written.ends > starts] - 1
    return bool((written.data[last] == ord(PADDING)).any())


def _of_whole(given: npt.NDArray[Any]) -> Spelt:
    from leakcap.worlds._siphash_loops import LARGEST_DIGITS, digits

    data = np.empty(LARGEST_DIGITS * len(given) + SPARE, dtype=np.uint8)
    ends = np.empty(len(given), dtype=np.int64)
    digits(given.astype(np.uint64 if given.dtype.kind == "u" else np.int64, copy=False), data, ends)
    return Spelt(data, ends)


def _of_letters(given: npt.NDArray[Any]) -> Spelt:
    from leakcap.worlds._siphash_loops import utf8

    width = given.dtype.itemsize // 4
    letters = np.ascontiguousarray(given, dtype=given.dtype.newbyteorder("=")).view(np.uint32).reshape(-1, width)
    data, ends = np.empty(4 * letters.size + SPARE, dtype=np.uint8), np.empty(len(given), dtype=np.int64)
    utf8(letters, data, ends)
    return Spelt(data, ends)


def _all_texts(given: npt.NDArray[Any]) -> bool:
    return set(map(type, given)) <= {str}


def _of_texts(texts: npt.NDArray[Any]) -> Spelt:
    """As Arrow lays texts down; it refuses lone surrogates, which are encoded one by one."""
    import pyarrow as pa

    try:
        _, ends, data = pa.array(texts, type=pa.large_utf8()).buffers()
    except (pa.ArrowException, UnicodeError):
        letters = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum(np.fromiter(map(len, letters), dtype=np.int64, count=len(letters)))
        return Spelt(np.frombuffer(b"".join([*letters, bytes(SPARE)]), dtype=np.uint8), ends)
    places = np.frombuffer(ends, dtype=np.int64)[: len(texts) + 1]
    together = np.zeros(places[-1] + SPARE, dtype=np.uint8)
    together[:-SPARE] = np.frombuffer(data, dtype=np.uint8)[: places[-1]]
    return Spelt(together, places[1:])
