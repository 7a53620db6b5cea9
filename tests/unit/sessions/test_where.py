"""Conditions: what they match, and what they refuse. The oracle is SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pytest

from leakcap.errors import InputError
from leakcap.sessions.where import matching

ROWS = [
    (34, "A", 1.5, True),
    (61, "B", None, False),
    (None, "A", -2.0, True),
    (18, None, 0.0, None),
    (40, "it's", 3.25, False),
]
NAMES = ("age", "ward", "score", "smokes")
CONDITIONS = (
    "age > 30",
    "age >= 40 and ward = 'B'",
    "age < 30 or score <= -2",
    "not age > 30",
    "not (age > 30 or ward = 'A')",
    "ward in ('A', 'B')",
    "ward not in ('A', 'C')",
    "age between 18 and 40",
    "age not between 18 and 40",
    "age is null",
    "ward is not null and score <> 0",
    "ward = 'it''s'",
    "score > -1e0 and score < .5",
    "age = score",
    "(age > 30) and (not (ward != 'A'))",
    "age > 30 and ward = 'A' or score = 0",
    '"age" <= 34',
)


def columns() -> dict[str, Any]:
    parts = list(zip(*ROWS, strict=True))
    numbers = [np.array([np.nan if x is None else float(x) for x in part]) for part in (parts[0], parts[2])]
    smokes = np.array([np.nan if x is None else float(x) for x in parts[3]])
    return dict(zip(NAMES, (numbers[0], np.array(parts[1], dtype=object), numbers[1], smokes), strict=True))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_match_what_a_database_matches(condition: str) -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (place, age, ward, score, smokes)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(at, *row) for at, row in enumerate(ROWS)])
        wanted = {at for (at,) in database.execute(f"SELECT place FROM t WHERE {condition}")}
    assert set(np.flatnonzero(matching(condition, columns(), len(ROWS)))) == wanted


@pytest.mark.parametrize(
    "condition",
    ["", "age", "age >", "age > 30 and", "height > 3", "age ; drop", "(age > 3", "age > 3)", "age in 3", "1 = ", "not"],
)
def test_what_cannot_be_read_is_refused_with_an_example(condition: str) -> None:
    with pytest.raises(InputError, match=r"condition|column"):
        matching(condition, columns(), len(ROWS))


def test_text_beside_a_number_is_neither_true_nor_false() -> None:
    mixed = {"x": np.array([1, "a", None, 2.5], dtype=object)}
    assert matching("x > 1", mixed, 4).tolist() == [False, False, False, True]
    assert matching("not x > 1", mixed, 4).tolist() == [True, False, False, False]
    assert matching("x = 'a'", mixed, 4).tolist() == [False, True, False, False]


def test_dates_are_compared_with_text() -> None:
    days = {"day": np.array(["2026-01-01", "2026-03-01", "NaT"], dtype="datetime64[D]")}
    assert matching("day >= '2026-02-01'", days, 3).tolist() == [False, True, False]
    with pytest.raises(InputError, match="no date"):
        matching("day >= 'spring'", days, 3)


def test_nesting_ends_in_our_words() -> None:
    with pytest.raises(InputError, match="deeply"):
        matching("(" * 300 + "age > 1" + ")" * 300, columns(), len(ROWS))
    with pytest.raises(InputError, match="letters"):
        matching("age > 1 and " * 2000 + "age > 1", columns(), len(ROWS))
