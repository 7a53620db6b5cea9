"""Names as bytes: what canonical texts are in UTF-8, for every kind of label."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcap.worlds.names import canonical_names
from leakcap.worlds.spelling import SPARE, Spelt, spelt

KINDS = [
    np.array([0, 1, -1, 9, 10, 99, 100, 2**63 - 1, -(2**63)]),
    np.array([2**64 - 1, 0, 10**19], dtype=np.uint64),
    np.array([-128, 127, 0], dtype=np.int8),
    np.array([300, -4], dtype=">i4"),
    np.array([True, False]),
    np.array([7.0, -12.0, 0.0, -0.0]),
    np.array([7.5, 3e20, 12.0]),
    np.array([7.0, 12.0], dtype=np.float32),
    np.array(["a", "", "Zoë", "李李", "\U0001f600", "\udc80", "a\0b"]),
    np.array(["Ann", "", "Zoë", "\U0001f600"], dtype=object),
    np.array(["\udc80", "a"], dtype=object),
    np.array(["a\0", "\udc80\0"], dtype=object),
    np.array(["7", 7, 7.0, True, b"7", date(2020, 1, 2)], dtype=object),
    np.array(["2020-01-02", "1969-12-31"], dtype="M8[D]"),
    np.array([b"abc", b"\xff"]),
    np.array([], dtype=np.int64),
    np.array([], dtype="U1"),
    np.array([], dtype=object),
]


def texts(names: Spelt) -> list[bytes]:
    starts = [0, *names.ends.tolist()][: len(names.ends)]
    return [names.data[first:end].tobytes() for first, end in zip(starts, names.ends.tolist(), strict=True)]


@pytest.mark.parametrize("labels", KINDS, ids=lambda labels: f"{labels.dtype.str}-{len(labels)}")
def test_names_are_spelt_as_their_canonical_texts(labels: Any) -> None:
    found = spelt(labels)
    assert texts(found) == [name.encode("utf-8", "surrogatepass") for name in canonical_names(labels)]
    assert len(found.data) >= (found.ends[-1] if len(found.ends) else 0) + SPARE


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_are_their_digits(numbers: list[int]) -> None:
    assert texts(spelt(np.array(numbers, dtype=np.int64))) == [str(number).encode() for number in numbers]


@given(st.lists(st.text(st.characters(exclude_characters="\0"))))
def test_texts_of_any_kind_of_array_are_spelt_alike(words: list[str]) -> None:
    together = np.array(words, dtype=str if words else "U1")
    assert texts(spelt(together)) == texts(spelt(np.array(words, dtype=object)))


def test_names_are_not_padded() -> None:
    """An array of texts keeps no NUL at their end, and neither may any other that holds them."""
    names = ["a", "a\0", "a\0\0", "\0a", "a\0b\0", "\0", ""]
    expected = [b"a", b"a", b"a", b"\0a", b"a\0b", b"", b""]
    assert texts(spelt(np.array(names))) == texts(spelt(np.array(names, dtype=object))) == expected
    assert texts(spelt(np.array([name.encode() for name in names], dtype=object))) == expected
    assert texts(spelt(np.array([*names, 7], dtype=object))) == [*expected, b"7"]
