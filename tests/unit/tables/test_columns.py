"""Columns of the wrong kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leakcap.tables.questions import ask
from tests.unit.tables.people import MARK, refused


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["SECRET1", "SECRET2"], "--fn histogram"),
        (['"1,234"', '"77,123,451"'], "thousands"),
        (['"1,5"', '"7712345,25"'], "decimal comma"),
        (["7712345", "?"], r"marks such as \?"),
        (["7712345", "-"], "marks such as"),
        (["7712345%", "3%"], "per cent"),
        (["$7712345", "3"], "currency"),
        (["7712345", "4", "SECRET"], "67% of its cells are numbers"),
        (["2020-01-31", "2021-12-01"], "dates or times"),
        (["31/01/2020", "1/2/2021"], "dates or times"),
        (["7712345", "inf"], "infinite"),
    ],
)
def test_columns_that_are_no_numbers_get_the_likely_cause(table: Any, cells: list[str], words: str) -> None:
    path = table("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    refused(words, lambda: ask(path, "mean", ["y", "x"]))


def test_kinds_of_parquet_columns_are_told_apart(table: Any) -> None:
    frame = pd.DataFrame(
        {
            "x": [1.5, 2.5],
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            "long": pd.to_timedelta([1, 2], unit="D"),
            "list": [[int(MARK)], [2]],
            "group": pd.Categorical(["u", "v"]),
            "flag": [True, None],
            "level": pd.Categorical([3, 4]),
        }
    )
    path = table(frame, "kinds.parquet")
    said = refused("such as --columns", lambda: ask(path, "mean"))
    assert "It can use: x (number), flag (yes/no), level (number)." in said
    assert "when (date), long (date), list (other), group (text)" in said
    for name in ("when", "long"):
        refused("dates or times", lambda name=name: ask(path, "mean", [name]))
    refused("neither numbers nor text", lambda: ask(path, "mean", ["list"]))
    refused("cannot say whose", lambda: ask(path, "mean", ["x"], unit="list"))
    refused("cannot make strata", lambda: ask(path, "mean", ["x"], strata=["list"]))
    assert ask(path, "mean", ["level", "flag"], missing="drop").data.tolist() == [[3, 1]]


def test_without_columns_the_message_lists_what_there_is(people: Path) -> None:
    said = refused("such as --columns", lambda: ask(people, "mean", unit="who"))
    assert "It can use: age (number), hours (number), member (yes/no)." in said
    assert "It cannot use: town (text), name (text), born (date)" in said.replace("born (text)", "born (date)")
    assert "town (text)" in refused("It can use", lambda: ask(people, "histogram"))


def test_a_wide_file_is_not_listed_to_the_end(table: Any) -> None:
    path = table(",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join("1" for _ in range(3000)) + "\n")
    said = refused("no column 'd'", lambda: ask(path, "mean", ["d"]))
    assert said.endswith("and 2,976 more")
    assert ask(path, "mean", ["c2999"]).names == ("c2999",)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["agee"], "did you mean 'age'"),
        (["AGE"], "did you mean 'age'"),
        (["zzz"], "The columns are: who, age"),
        (["age", "age"], "named twice"),
    ],
)
def test_unknown_columns_get_the_likely_one(people: Path, columns: list[str], words: str) -> None:
    refused(words, lambda: ask(people, "mean", columns))
