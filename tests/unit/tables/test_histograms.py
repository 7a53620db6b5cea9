"""Shares of bins and levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leakcap.tables.questions import ask
from tests.unit.tables.people import MARK, refused


def test_categories_of_the_pool_are_said_to_be_public(people: Path) -> None:
    question = ask(people, "histogram", ["town"])
    assert question.names == (f"town = t{MARK}a", f"town = t{MARK}b")
    assert question.public == ("The categories of town were read from the whole pool.",)
    assert question.fn(question.data).tolist() == [0.5, 0.5]
    assert question.notes == ()


def test_rare_categories_are_noted(table: Any) -> None:
    path = table("t\n" + "often\n" * 30 + "seldom\n" * 3)
    (note,) = ask(path, "histogram", ["t"]).notes
    assert "1 of the categories of t have fewer than 10 rows" in note
    assert "seldom" not in note


def test_columns_of_names_are_not_published_as_categories(people: Path) -> None:
    refused("names or ids", lambda: ask(people, "histogram", ["name"]))


def test_levels_are_what_was_asked_for(table: Any) -> None:
    path = table('sex,town\n0,"a, b"\n1,c\n2, c\n1,d\n')
    question = ask(path, "histogram", ["sex", "town"], levels=["sex=1,0", 'town="a, b",c,e'])
    assert question.names == ("sex = 1", "sex = 0", "town = a, b", "town = c", "town = e")
    assert question.fn(question.data).tolist() == [0.5, 0.25, 0.25, 0.5, 0]
    assert question.public == ()
    assert question.notes == (
        "1 rows of sex are at none of the levels given, and count in none",
        "no row of town is at 'e': is it spelt as in the file?",
        "1 rows of town are at none of the levels given, and count in none",
    )


def test_bins_may_be_given_by_column_or_once_for_all(table: Any) -> None:
    path = table("a,b,t\n1,10,u\n2,20,u\n")
    assert len(ask(path, "histogram", ["a", "b", "t"], bins=["0:30:10"], levels=["t=u"]).names or ()) == 7
    by_name = ask(path, "histogram", ["a", "b"], bins=["b=0,15,30", "a=0:0.3:0.1"])
    assert by_name.names == ("a, under 0.1", "a, 0.1 to 0.2", "a, 0.2 or more", "b, under 15", "b, 15 or more")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "would publish the smallest and the largest value"),
        ({"bins": ["0,18"]}, "at least three"),
        ({"bins": ["18,0,65"]}, "each above the one before"),
        ({"bins": ["0:100"]}, "start:stop:step"),
        ({"bins": ["0:100:30"]}, "whole number of times"),
        ({"bins": ["0:100:0"]}, "above 0"),
        ({"bins": ["0:1e9:1"]}, "to 10,000"),
        ({"bins": ["low,high,top"]}, "such as --bins"),
        ({"bins": ["nan,1,2"]}, "each above"),
        ({"bins": ["0,1,2", "0,1,2"]}, "2 --bins for 1 columns"),
        ({"bins": ["hours=0,1,2"]}, "add it to --columns"),
        ({"levels": ["age"]}, "column=level"),
        ({"levels": ["age="]}, "column=level"),
        ({"levels": ["age=1,1"]}, "twice"),
        ({"levels": ["age=old"]}, "must be numbers"),
        ({"levels": ["age=1"], "bins": ["0,1,2"]}, "no such column is left"),
        ({"levels": ["age=1"], "bins": ["age=0,1,2"]}, "asked for by category"),
    ],
    ids=str,
)
def test_bins_and_levels_that_make_no_sense_are_refused(people: Path, options: Any, words: str) -> None:
    refused(words, lambda: ask(people, "histogram", ["age"], **options))


@pytest.mark.parametrize(
    ("fn", "options", "words"),
    [
        ("meen", {}, "did you mean mean"),
        ("kmeans", {}, "module:function"),
        ("quantile", {"q": (0.0,)}, "strictly between"),
        ("quantile", {"q": (1.0,)}, "strictly between"),
        ("quantile", {"q": ()}, "one or several"),
        ("quantile", {"q": (0.5, 0.5)}, "different"),
        ("mean", {"q": (0.25,)}, "quantile only"),
        ("mean", {"bins": ["0,1,2"]}, "histogram only"),
        ("mean", {"levels": ["age=1"]}, "histogram only"),
        ("mean", {"missing": "ignore"}, "'refuse', 'drop'"),
    ],
)
def test_options_that_would_be_ignored_are_refused(people: Path, fn: str, options: Any, words: str) -> None:
    refused(words, lambda: ask(people, fn, ["age"], **options))
