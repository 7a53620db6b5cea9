"""What people are called: their own label alone says it, and whoever is called the same is one unit."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.worlds import Units
from leakcap.worlds.keyed import keyed_numbers
from leakcap.worlds.names import as_labels, canonical_names
from tests.refusals import refusal

KEY = bytes(range(16))
DAY = "2026-01-02T00:00:00.000000"
LATER = "2026-01-02T03:04:05.000006"
BERLIN = timezone(timedelta(hours=1))


def objects(*cells: Any) -> np.ndarray:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


STORED = {  # by the function that the first accounts were written with
    "0": 0xC62B679CF69BC5BD,
    "7": 0x2BCA3BF946590660,
    "-12": 0x222EAD71A65FF1BA,
    "9007199254740991": 0xDFA68BBDE59BB851,
    "4611686018427387905": 0xF1D9A1222426BD2A,
    "18446744073709551615": 0x8BA94E5B62103713,
    "Ann": 0x7A7FC550212F1122,
    "Zoë": 0x3D9EC0650BEB67FB,
    "李": 0x8BC68E7A0474EA75,
    "": 0x57DE8DB504223160,
    " 7": 0xCD74771B7CA31269,
    "7.0": 0xB8E28795873FA36B,  # a text
}


@pytest.mark.parametrize(
    "given",
    [
        np.array(list(STORED)),
        np.array(list(STORED), dtype=object),
        list(STORED),
        np.array([0, 7, -12, 2**53 - 1, 2**62 + 1]),
        np.array([0, 7, 2**64 - 1], dtype=np.uint64),
        np.array([0.0, 7.0, -12.0, 2.0**53 - 1]),
        np.array([0, 7, -12], dtype=np.float16),
        pd.array([0, 7, -12], dtype="Int64"),
        pd.Series([0.0, 7.0], dtype="Float64"),
    ],
    ids=["U", "objects", "list", "int", "uint", "float", "half", "Int64", "Float64"],
)
def test_people_of_stored_accounts_keep_their_numbers(given: Any) -> None:
    numbers = np.array([STORED[name] for name in canonical_names(given)], dtype=np.uint64)
    assert np.array_equal(keyed_numbers(given, KEY), numbers)


SAME: dict[str, tuple[str, Any]] = {
    "a whole float": ("7", 7.0),
    "a negative zero": ("0", -0.0),
    "true": ("1", True),
    "NumPy's true": ("1", np.True_),
    "a small float": ("7", np.float32(7)),
    "a long number": ("123456789012345678901", 123456789012345678901),
    "a decimal": ("7", Decimal("7.00")),
    "part of a decimal": ("0.5", Decimal("0.50")),
    "part of a number": ("0.5", 0.5),
    "a float beyond whole numbers": ("9007199254740992.0", 2.0**53),
    "bytes": ("Zoë", "Zoë".encode()),
    "older bytes": ("Zoë", "Zoë".encode("latin-1")),
    "a day": (DAY, date(2026, 1, 2)),
    "its midnight": (DAY, datetime(2026, 1, 2)),
    "NumPy's day": (DAY, np.datetime64("2026-01-02")),
    "NumPy's nanoseconds": (DAY, np.datetime64("2026-01-02", "ns")),
    "a moment": (LATER, datetime(2026, 1, 2, 3, 4, 5, 6)),
    "a moment in UTC": (LATER, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    "a moment elsewhere": (LATER, datetime(2026, 1, 2, 4, 4, 5, 6, tzinfo=BERLIN)),
    "pandas' moment": (LATER, pd.Timestamp("2026-01-02T03:04:05.000006")),
    "pandas' moment elsewhere": (LATER, pd.Timestamp("2026-01-02T04:04:05.000006+01:00")),
    "nanoseconds": (LATER + "007", pd.Timestamp("2026-01-02T03:04:05.000006007")),
    "NumPy's own nanoseconds": (LATER + "007", np.datetime64("2026-01-02T03:04:05.000006007")),
    "another object": ("00000000-0000-0000-0000-000000000007", uuid.UUID(int=7)),
}


@pytest.mark.parametrize("kind", SAME)
def test_a_label_has_one_name_alone_and_among_others(kind: str) -> None:
    name, label = SAME[kind]
    for others in ((), ("x",), (0.5, 3), (b"y", date(1999, 1, 1), 2**80)):
        assert canonical_names(objects(label, *others))[0] == name
    assert canonical_names([label])[0] == name
    assert canonical_names([label, "x"])[0] == name


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "D"])
def test_days_have_one_name_at_every_precision(unit: str) -> None:
    days = np.array(["2026-01-02", "1969-12-31"], dtype=f"M8[{unit}]")
    assert canonical_names(days).tolist() == [DAY, "1969-12-31T00:00:00.000000"]
    assert canonical_names(pd.Series(days).dt.tz_localize("UTC")).tolist() == canonical_names(days).tolist()


@pytest.mark.parametrize(
    "labels",
    [
        [1, 1.0, "1", b"1", True],
        [date(2026, 1, 2), datetime(2026, 1, 2), np.datetime64("2026-01-02"), pd.Timestamp("2026-01-02"), DAY],
        ["Zoë", "Zoë".encode(), "Zoë".encode("latin-1")],
    ],
)
def test_whoever_is_called_the_same_is_one_unit(labels: list[Any]) -> None:
    for given in (objects(*labels), labels):
        units = Units.of(len(labels) + 1, np.append(as_labels(given), "other"))
        assert units.count == 2
        assert len(set(keyed_numbers(units.names, KEY).tolist())) == 2


def test_truth_values_bytes_and_moments_are_named_before_they_are_told_apart() -> None:
    assert Units.of(3, [True, False, True]).names.tolist() == ["0", "1"]
    assert Units.of(3, np.array([b"b", b"a", b"b"])).names.tolist() == ["a", "b"]
    fine = np.array([0, 1, 0], dtype="M8[ps]")  # all within a nanosecond
    assert Units.of(3, fine).count == 1


def test_owners_are_told_by_name_and_in_the_order_of_units() -> None:
    for labels in ([30, 4, 30], [30.0, 4.0, 30.0]):
        names, place = Units.of(3, labels).owners or ()
        assert (names.tolist(), place.tolist()) == (["4", "30"], [1, 0, 1])
    names, place = Units.of(3, ["30", "4", "30"]).owners or ()  # as texts they come in another order
    assert (names.tolist(), place.tolist()) == (["30", "4"], [0, 1, 0])
    assert Units.of(3, None).owners is None


LOST: dict[str, Any] = {
    "parts of numbers": np.array([1.0, 2.0, 0.5]),
    "large floats": np.array([1.0, 2.0**53]),
    "large small floats": np.array([1.0, 2.0**24], dtype=np.float32),
    "long ids beside a part": [2**53 + 1, 0.5],
    "a part among objects": objects("a", 0.5),
    "a large float among objects": objects("a", -(2.0**53)),
    "infinity": np.array([1.0, np.inf]),
    "durations": np.array([1, 2], dtype="m8[s]"),
    "durations among objects": objects(timedelta(1), "a"),
    "complex numbers": np.array([1j, 2]),
}


@pytest.mark.parametrize("kind", LOST)
def test_ids_that_may_have_been_lost_are_refused(kind: str) -> None:
    refusal(lambda: Units.of(len(LOST[kind]), LOST[kind]), "give ids as text or as whole numbers", lc.InputError)


def test_groups_may_be_any_numbers() -> None:
    assert Units.of(3, None).strata([0.5, 2.0**60, 0.5]).tolist() == [0, 1, 0]
    assert Units.of(3, None).strata(objects(0.5, "a", 0.5)).tolist() == [0, 1, 0]
