"""Whose rows they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.tables.questions import ask
from leakcap.worlds.names import canonical_names
from tests.unit.tables.people import MARK, refused

LONG = 2**62 + 1  # a float would make one person of it and its neighbour


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("gap", [False, True])
def test_long_ids_are_not_rounded(table: Any, ending: str, gap: bool) -> None:
    """A gap in a column of whole numbers turns it into floats, in pandas."""
    ids = [LONG, LONG + 1, LONG, LONG + 1, None if gap else LONG + 2]
    frame = pd.DataFrame({"who": pd.array(ids, dtype="Int64"), "x": np.arange(5.0)})
    path = table(frame if ending == "parquet" else frame.to_csv(index=False), f"t.{ending}")
    question = ask(path, "mean", ["x"], unit="who", missing="drop")
    assert question.unit is not None
    assert list(map(int, question.unit)) == [one for one in ids if one is not None]


@pytest.mark.parametrize(
    ("cells", "people_in_it"),
    [
        ("1,01,1.0,2,2.0", 2),  # numbers written in several ways
        ("a,b,a ,b,c", 3),  # text, with a blank behind
        ("1,1,x,x,", 2),
        ("123456789012345678901,123456789012345678902,123456789012345678901,1,1", 3),  # beyond 64 bits
    ],
)
def test_one_person_is_one_label(table: Any, cells: str, people_in_it: int) -> None:
    path = table("who,x\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells.split(","))))
    question = ask(path, "mean", ["x"], unit="who", missing="drop")
    assert question.unit is not None
    assert len(set(question.unit.tolist())) == people_in_it


def test_what_somebody_is_called_does_not_hang_on_others(table: Any) -> None:
    cells = ["007", "1.0", "7", "+3", "12"]
    called = []
    for others in ([], ["x"], ["0.5"], [""]):
        path = table("who,x\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate([*cells, *others, "12"])))
        unit = ask(path, "mean", ["x"], unit="who", missing="drop").unit
        called.append(list(canonical_names(unit))[: len(cells)])
    assert called == [["7", "1", "7", "3", "12"]] * 4


def test_a_unit_for_every_row_is_noted_not_refused(people: Path) -> None:
    (note,) = ask(people, "mean", ["age"], unit="name").notes
    assert "every row is a unit of its own" in note


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("did you mean 'who'", {"unit": "whoo"}),
        ("leave it out of --columns", {"unit": "age"}),
        ("unit and stratum at once", {"unit": "who", "strata": ["who"]}),
        ("changes between the rows of one 'who', for 12 of them", {"unit": "who", "strata": ["member"]}),
        ("no column 'wher'", {"strata": ["wher"]}),
    ],
)
def test_labels_that_cannot_be_used_are_refused(people: Path, words: str, options: Any) -> None:
    refused(words, lambda: ask(people, "mean", ["age"], **options))


def test_rows_without_a_label_are_refused_or_dropped(table: Any) -> None:
    path = table(f"who,x,town\nSECRET1,{MARK},a\n,{MARK},b\nSECRET2,{MARK},\n")
    refused("1 of 3 rows have no label in who", lambda: ask(path, "mean", ["x"], unit="who"))
    refused("1 of 3 rows have no label in town", lambda: ask(path, "mean", ["x"], strata=["town"]))
    assert ask(path, "mean", ["x"], unit="who", missing="drop").data.shape == (2, 1)


def test_a_single_unit_is_refused(table: Any) -> None:
    refused("same unit", lambda: ask(table(f"who,x\n{MARK},1\n{MARK},2\n"), "mean", ["x"], unit="who"))
