"""The same people's data are known again, and those of others are not taken for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from leakcap.custody.contents import ContentsByPart, contents_prints

N = 300
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "size": RNG.normal(size=N),
        "ward": RNG.choice(["A", "B"], N),
        "name": [f"n{one}" for one in RNG.integers(0, 10**9, N)],
        "day": pd.date_range("2026-01-01", periods=N),
    }
)
KNOWN = set(contents_prints((PEOPLE,)))
SHUFFLED = PEOPLE.sample(frac=1, random_state=1)
SAME: dict[str, Any] = {
    "in another order": SHUFFLED,
    "with another index": SHUFFLED.reset_index(drop=True),
    "with columns in another order": PEOPLE[PEOPLE.columns[::-1]],
    "without ids": PEOPLE.drop(columns="id"),
    "one column": PEOPLE[["size"]],
    "a series": PEOPLE["size"],
    "an array": SHUFFLED[["id", "size"]].to_numpy(),
    "singles": PEOPLE["size"].to_numpy(np.float32),
    "names alone": PEOPLE[["name", "ward"]],
    "polars": pl.from_pandas(SHUFFLED),
    "ages without gaps": PEOPLE[["age", "ward"]],
    "the last of several": None,
    "lists": PEOPLE[["size"]].to_numpy().tolist(),
}
OTHERS: dict[str, Any] = {
    "some of them": PEOPLE.iloc[: N // 2],
    "a year": PEOPLE[["day", "ward"]],
    "numbers of rows": PEOPLE[["id"]],
    "a grid": np.linspace(0, 1, N),
    "categories": PEOPLE[["ward"]],
    "a design": np.repeat(np.arange(100.0), 3),
    "somebody else": PEOPLE.assign(age=PEOPLE["age"] + 1, size=-PEOPLE["size"], name=PEOPLE["name"].str.upper()),
}


@pytest.mark.parametrize("same", SAME)
def test_the_same_peoples_data_share_a_name(same: str) -> None:
    data = (np.zeros(N), SHUFFLED) if SAME[same] is None else (SAME[same],)
    assert KNOWN & set(contents_prints(data))


@pytest.mark.parametrize("others", OTHERS)
def test_what_may_be_of_others_shares_none(others: str) -> None:
    found = contents_prints((OTHERS[others],))
    assert found and not KNOWN & set(found)


def test_a_file_is_known_again(tmp_path: Path) -> None:
    SHUFFLED.to_csv(tmp_path / "people.csv", index=False)
    assert KNOWN & set(contents_prints((pd.read_csv(tmp_path / "people.csv"),)))


def test_where_no_column_tells_all_rows_do() -> None:
    few = np.repeat(np.arange(5.0), 4)[:, None]
    assert contents_prints((few,)) == contents_prints((few[::-1],)) != contents_prints((few[::4],))
    assert len(contents_prints(([object(), object()],))) == 1


def test_of_wide_data_some_columns_are_kept() -> None:
    wide = RNG.normal(size=(200, 300))
    whole = contents_prints((wide,))
    assert len(whole) == 64 and set(whole) & set(contents_prints((wide[:, :200],)))


def test_texts_with_missing_cells_are_known_too() -> None:
    """In one table and in parts, in whichever order."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"name": rng.permutation(np.arange(500)).astype(str).astype(object)})
    frame.loc[::7, "name"] = None
    parts = ContentsByPart()
    for part in (frame.iloc[200:], frame.iloc[:200]):
        parts.add(part)
    assert set(parts.prints()) == set(contents_prints((frame,)))
    assert set(contents_prints((frame.iloc[::-1],))) == set(contents_prints((frame,)))
    assert not set(contents_prints((frame.iloc[1:],))) & set(contents_prints((frame,)))
