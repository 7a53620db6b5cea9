"""Statistics by group of a file: answers, names, and what must be declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.tables.groups import By
from leakcap.tables.questions import ask
from tests.unit.tables.people import PEOPLE, refused

VISITS = pd.DataFrame(
    {
        "ward": list("AABBBA"),
        "floor": [1, 2, 1, 2, 1, 2],
        "sick": [True, False, True, True, False, False],
        "cost": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
        "days": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)


@pytest.fixture
def visits(table: Any) -> Path:
    found: Path = table(VISITS.to_csv(index=False))
    return found


def answer(path: Path, fn: str, columns: Any = (), **options: Any) -> dict[str, float]:
    question = ask(path, fn, columns, **options)
    return dict(zip(question.names or (), np.asarray(question.fn(question.data), dtype=float).ravel(), strict=True))


def test_groups_are_answered_in_the_order_in_which_they_were_declared(visits: Path) -> None:
    assert answer(visits, "count", by=["ward=C,B,A"]) == {"ward = C": 0.0, "ward = B": 3.0, "ward = A": 3.0}
    means = answer(visits, "mean", ["cost", "days"], by=["ward=A,B"])
    assert means == {"cost, ward = A": 30.0, "days, ward = A": 3.0, "cost, ward = B": 40.0, "days, ward = B": 4.0}
    assert answer(visits, "sum", ["cost"], by=["ward=B"]) == {"cost, ward = B": 120.0}
    assert answer(visits, "share", ["sick"], by=["ward=A,B"]) == {
        "sick, ward = A": pytest.approx(1 / 3),
        "sick, ward = B": pytest.approx(2 / 3),
    }


def test_several_columns_make_all_combinations_and_codes_and_yes_no_are_groups_too(visits: Path) -> None:
    found = answer(visits, "count", by=["floor=1,2", "sick"])
    assert found == {
        "floor = 1, sick = no": 1.0,
        "floor = 1, sick = yes": 2.0,
        "floor = 2, sick = no": 2.0,
        "floor = 2, sick = yes": 1.0,
    }


def test_a_column_may_make_groups_and_be_averaged(visits: Path) -> None:
    assert answer(visits, "mean", ["floor"], by=["floor=1,2"]) == {"floor, floor = 1": 1.0, "floor, floor = 2": 2.0}


def test_rows_and_shares_without_groups(visits: Path) -> None:
    assert answer(visits, "count") == {"rows": 6.0}
    assert answer(visits, "sum", ["cost", "days"]) == {"cost": 210.0, "days": 21.0}
    assert answer(visits, "share", ["sick"]) == {"sick": 0.5}


def test_groups_that_were_read_from_the_pool_are_told_as_such(visits: Path) -> None:
    question = ask(visits, "count", by=["ward"])
    assert question.names == ("ward = A", "ward = B")
    assert question.public == ("The groups of ward were read from the whole pool.",)
    assert any("fewer than 10 rows" in note for note in question.notes)
    assert ask(visits, "count", by=["ward=A,B"]).public == ()


@pytest.mark.parametrize("fn", ["median", "quantile", "covariance", "histogram"])
def test_only_sums_over_people_come_by_group(visits: Path, fn: str) -> None:
    assert "mean, sum, count, share" in refused("--by is for", lambda: ask(visits, fn, ["cost"], by=["ward=A,B"]))


@pytest.mark.parametrize("text", ["ward=", "ward=A,A", "=A,B", "", "ward=,"])
def test_groups_that_say_nothing_are_refused(text: str) -> None:
    refused("declared by their values", lambda: By.of(text))


@pytest.mark.parametrize(
    ("words", "fn", "columns", "options"),
    [
        ("a count is of rows", "count", ["cost"], {}),
        ("name the columns to take the sum of", "sum", [], {"by": ["ward=A"]}),
        ("holds numbers: declare its groups", "count", [], {"by": ["floor"]}),
        ("its levels must be numbers too", "count", [], {"by": ["floor=first"]}),
        ("shelf", "count", [], {"by": ["shelf=1"]}),
        ("share is for yes and no", "share", ["cost"], {}),
        ("share is for columns of yes and no", "share", ["cost"], {"by": ["ward=A"]}),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    visits: Path, words: str, fn: str, columns: list[str], options: dict[str, Any]
) -> None:
    def asked() -> Any:
        question = ask(visits, fn, columns, **options)
        return question.fn(question.data)

    refused(words, asked)


def test_names_of_people_are_no_groups(table: Any) -> None:
    refused("may hold names or ids", lambda: ask(table(PEOPLE.to_csv(index=False)), "count", by=["name"]))


UNDECLARED: list[tuple[str, list[str], dict[str, Any], str]] = [
    ("count", [], {"by": ["ward"]}, "--by ward=this,that"),
    ("count", [], {"by": ["sick"]}, "--by sick=this,that"),
    ("mean", ["cost"], {"by": ["floor=1,2", "ward"]}, "--by ward=this,that"),
    ("histogram", ["ward"], {}, "--levels ward=this,that"),
    ("histogram", ["sick"], {}, "--levels sick=no,yes"),
    ("histogram", ["cost", "ward"], {"bins": ["0,20,40,90"]}, "--levels ward=this,that"),
]


@pytest.mark.parametrize(("fn", "columns", "options", "advice"), UNDECLARED)
def test_where_everything_must_be_declared_nothing_is_read_from_the_pool(
    visits: Path, fn: str, columns: list[str], options: dict[str, Any], advice: str
) -> None:
    ask(visits, fn, columns, **options)  # without a pool cap it may be
    said = refused("under a pool cap", lambda: ask(visits, fn, columns, declared=True, **options))
    assert said.endswith(advice)


def test_what_was_declared_is_the_form_whatever_the_file_holds(table: Any) -> None:
    """The same names with and without the only row of a group."""
    forms = []
    for number, rows in enumerate((VISITS, VISITS[VISITS.ward == "A"])):
        path = table(rows.to_csv(index=False), f"table{number}.csv")
        counts = ask(path, "count", by=["ward=A,B", "sick=no,yes"], declared=True)
        shares = ask(path, "histogram", ["ward", "sick"], levels=["ward=A,B", "sick=no,yes"], declared=True)
        forms.append((counts.names, counts.public, shares.names, shares.public, counts.title, shares.title))
    assert forms[0] == forms[1]
    assert forms[0][1] == forms[0][3] == ()
