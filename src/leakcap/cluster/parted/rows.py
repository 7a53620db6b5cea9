"""A keyed number for every row, of its cells and of whose it is: equal for equal rows, whatever batch they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.worlds.keyed import keyed_numbers, keyed_texts
from leakcap.worlds.spelling import Spelt

__all__ = ["is_of_numbers", "row_numbers"]

TOGETHER = 2**14  # rows whose words stay in the second cache
MISSING = np.uint64(0x9E3779B97F4A7C15)  # the word of missing cells but those of floats, which are NaN


def row_numbers(batch: Any, whose: npt.NDArray[np.uint64], keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """`(keys, rows)`: SipHash-2-4 of a word for each cell of a row, after the number of whose it is, by every key."""
    found = np.empty((len(keys), len(whose)), dtype=np.uint64)
    if all(map(_is_number, batch.schema.types)):  # whose words hang on no key
        _put_numbers(batch, whose, keys, found)
    else:
        for place, key in enumerate(keys):
            _put_numbers(batch, whose, [key], found[place : place + 1])
    return found


def _put_numbers(
    batch: Any, whose: npt.NDArray[np.uint64], keys: Sequence[bytes], found: npt.NDArray[np.uint64]
) -> None:
    columns = [whose, *(_words(batch.column(name), name, keys[0]) for name in batch.schema.names)]
    width = 8 * len(columns)
    for start in range(0, len(whose), TOGETHER):
        some = [column[start : start + TOGETHER] for column in columns]
        words = np.zeros(len(some[0]) * len(columns) + 1, dtype="<u8")  # one more: the loop reads whole words
        np.stack(some, axis=1, out=words[:-1].reshape(-1, len(columns)))
        ends = np.arange(1, len(some[0]) + 1, dtype=np.int64) * width
        for key, into in zip(keys, found, strict=True):
            keyed_texts(Spelt(words.view(np.uint8), ends), key, into[start : start + TOGETHER])


def is_of_numbers(kind: Any) -> bool:
    """Whether cells of a type of Arrow are numbers, or truth values."""
    import pyarrow as pa

    return _is_number(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _words(column: Any, name: str, key: bytes) -> npt.NDArray[np.uint64]:
    """A word for every cell; it hangs on the cell alone, so that batches without a missing one are like others."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind):
        raise InputError(f"column {name!r} holds {kind} in each cell: make columns of one value a cell")
    try:
        words = _plain_words(column.dictionary_decode() if pa.types.is_dictionary(kind) else column, key)
        if column.null_count and not pa.types.is_floating(kind):
            words = np.where(column.is_null().to_numpy(zero_copy_only=False), MISSING, words)
        return words
    except (pa.ArrowException, ValueError) as error:
        why = type(error).__name__
    raise InputError(f"column {name!r} of type {kind} cannot be read ({why}): make numbers, texts or dates of it")


def _plain_words(column: Any, key: bytes) -> npt.NDArray[np.uint64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan  # of all of them one
        return numbers.view(np.uint64)
    if pa.types.is_boolean(kind):
        return pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint64)
    if pa.types.is_integer(kind):
        whole = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        return whole.astype(np.int64 if kind.bit_width < 64 else whole.dtype).view(np.uint64)
    return keyed_numbers(pc.fill_null(column.cast(pa.large_utf8()), "").to_numpy(zero_copy_only=False), key)
