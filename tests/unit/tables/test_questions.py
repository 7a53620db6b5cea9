"""What comes out of a question to a table, and missing values on the way."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.tables.questions import ask
from tests.unit.tables.people import GAPS, MARK, PEOPLE, refused

# What comes out


def test_a_mean_is_that_of_the_columns_in_their_order(people: Path) -> None:
    question = ask(people, "mean", ["hours", "age"])
    np.testing.assert_allclose(question.data, PEOPLE[["hours", "age"]].to_numpy(float))
    assert question.data.dtype == np.float64
    assert question.data.flags.c_contiguous
    np.testing.assert_allclose(question.fn(question.data), PEOPLE[["hours", "age"]].mean())
    assert question.names == ("hours", "age")
    assert question.title == "mean of hours, age"
    assert (question.unit, question.strata, question.public, question.notes) == (None, None, (), ())


def test_columns_may_come_in_one_word_with_commas(people: Path) -> None:
    assert ask(people, "median", ["hours, age"]).names == ("hours", "age")


@pytest.mark.parametrize(
    ("fn", "options", "names"),
    [
        ("median", {}, ("age", "hours")),
        ("quantile", {"q": (0.25, 0.999)}, ("age, 25 %", "hours, 25 %", "age, 99.9 %", "hours, 99.9 %")),
        ("covariance", {}, ("age, variance", "age × hours", "hours, variance")),  # noqa: RUF001
        (
            "histogram",
            {"bins": ["0,18.5,65", "0:3:1"]},
            ("age, under 18.5", "age, 18.5 or more", "hours, under 1", "hours, 1 to 2", "hours, 2 or more"),
        ),
    ],
)
def test_there_is_a_name_for_every_output(people: Path, fn: str, options: Any, names: tuple[str, ...]) -> None:
    question = ask(people, fn, ["age", "hours"], **options)
    assert question.names == names
    assert np.asarray(question.fn(question.data)).size == len(names)


def test_yes_and_no_are_numbers(people: Path) -> None:
    question = ask(people, "mean", ["member"])
    assert question.fn(question.data) == 0.5
    shares = ask(people, "histogram", ["member"])
    assert shares.names == ("member = no", "member = yes")
    assert shares.public == ()


def test_a_question_can_be_planned_with_its_units_and_strata(table: Any) -> None:
    people = table(PEOPLE.to_csv(index=False))
    question = ask(people, "mean", ["age"], unit="who", strata=["town"])
    plan = lc.plan(
        question.fn,
        question.data,
        cap=lc.membership(0.7),
        unit=question.unit,
        strata=question.strata,
        worlds=16,
        draws=256,
        public=question.public,
    )
    assert plan.worlds.n == 12


def test_several_strata_are_one_label(people: Path) -> None:
    question = ask(people, "mean", ["age"], strata=["town,member"])
    assert question.strata is not None
    assert len(set(question.strata.tolist())) == 4


def test_labels_are_those_of_the_file(people: Path) -> None:
    question = ask(people, "mean", ["age"], unit="who", strata=["town"])
    assert question.unit is not None and question.strata is not None
    assert question.unit.tolist() == PEOPLE["who"].tolist()
    assert question.strata.tolist() == PEOPLE["town"].tolist()


def test_questions_travel_to_worker_processes(people: Path) -> None:
    for fn, options in (("mean", {}), ("quantile", {"q": (0.1, 0.2)}), ("histogram", {"bins": ["0:4:1"]})):
        question = ask(people, fn, ["age"], **options)
        again = pickle.loads(pickle.dumps(question.fn))
        np.testing.assert_array_equal(again(question.data), question.fn(question.data))


def test_a_question_does_not_show_its_rows(people: Path) -> None:
    assert MARK not in repr(ask(people, "mean", ["age"], unit="who", strata=["town"]))


# Missing values


def test_missing_values_are_refused_with_the_two_ways_out(table: Any) -> None:
    said = refused("2 of 4 rows have a missing value in a, b", lambda: ask(table(GAPS), "mean", ["a", "b"]))
    assert "--missing drop (row by row, before worlds are drawn)" in said
    assert "function of your own" in said


def test_dropping_looks_at_the_chosen_columns_only(table: Any) -> None:
    question = ask(table(GAPS), "mean", ["a"], missing="drop")
    assert question.data.tolist() == [[1], [3], [5]]
    assert question.notes == ("1 of 4 rows with missing values were left out",)
    assert question.public == ("Rows with a missing value in a were left out.",)


def test_columns_without_values_and_tables_without_rows_are_refused(table: Any) -> None:
    refused("'empty' is empty from top to bottom", lambda: ask(table(GAPS), "mean", ["a", "empty"], missing="drop"))
    refused("nothing is left", lambda: ask(table("a,b\n1,\n,2\n"), "mean", ["a", "b"], missing="drop"))
