"""Questions that parties agree on: read from files, equal by what they say, refused where they say nothing sound."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.local import JointQuestion, promise, together
from tests.parties import free_places, small_question
from tests.refusals import refusal

TOML = """
ask = "mean"
columns = ["a", "b"]
cap = 0.6
[bounds]
a = [0, 1]
b = [0, 10.0]
"""


def test_a_question_is_the_same_in_json_toml_and_python(tmp_path):
    (tmp_path / "q.toml").write_text(TOML)
    (tmp_path / "q.json").write_text(
        json.dumps({"bounds": {"b": [0.0, 10], "a": [0, 1]}, "ask": "mean", "columns": ["a", "b"], "cap": 0.6})
    )
    digests = {JointQuestion.read(tmp_path / name).digest for name in ("q.toml", "q.json")} | {small_question().digest}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"cap": 0.61},
        {"bounds": {"a": (0, 1), "b": (0, 11)}},
        {"columns": ("b", "a")},
        {"ask": "covariance"},
        {"parties": 5},
        {"parties": 5, "threshold": 2},
        {"design": "bits", "rows": 100},
    ],
)
def test_whatever_changes_the_question_changes_its_digest(changed):
    assert small_question(**changed).digest != small_question().digest


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ask": "median"}, "ask must be one of"),
        ({"columns": ()}, "list of names"),
        ({"columns": "ab"}, "list of names"),
        ({"columns": 7}, "list of names"),
        ({"columns": [["a"], "b"]}, "list of names"),
        ({"target": ["a"]}, "name of a column"),
        ({"edges": "x"}, "edges"),
        ({"cap": "x"}, "cap"),
        ({"parties": "x"}, "parties"),
        ({"alpha": -1}, "alpha"),
        ({"columns": ("a", "a")}, "named once"),
        ({"bounds": {"a": (0, 1)}}, "bounds has"),
        ({"bounds": {"a": (0, 1), "b": (10, 0)}}, "low below high"),
        ({"bounds": {"a": (0, 1), "b": (0, float("inf"))}}, "finite"),
        ({"bounds": {"a": (0, 1), "b": "x"}}, "finite"),
        ({"cap": 1.5}, "cap"),
        ({"cap": float("nan")}, "cap"),
        ({"design": "worlds"}, "design must be one of"),
        ({"design": "bits"}, "rows="),
        ({"rows": 10}, "rows="),
        ({"design": "bits", "rows": 2**40}, "up to"),
        ({"parties": 2}, "at least 3"),
        ({"parties": 99}, "up to 16"),
        ({"parties": 4, "threshold": 2}, "less than half"),
        ({"threshold": 0}, "at least 1"),
        ({"edges": (0, 1)}, "edges"),
        ({"ask": "histogram", "edges": (1, 0)}, "each above"),
        ({"target": "a"}, "target"),
        ({"ask": "ridge"}, "target"),
    ],
)
def test_a_question_that_says_nothing_sound_is_refused(changed, words):
    refusal(lambda: small_question(**changed), words, lc.InputError)


@pytest.mark.parametrize("cap", [0.500001, 0.9999999])
@pytest.mark.parametrize("ask", ["mean", "covariance", "ridge", "histogram"])
def test_every_question_has_a_promise_before_anybody_meets_or_is_refused(ask, cap):
    question = small_question(
        ask=ask,
        cap=cap,
        columns=("a",) if ask == "ridge" else ("a", "b"),
        target="b" if ask == "ridge" else None,
        edges=(0, 1, 2) if ask == "histogram" else None,
    )
    if cap < 0.6:
        refusal(lambda: promise(question), "coin flip", lc.CapError)
    else:
        assert promise(question).membership_success <= cap


def test_a_cap_of_all_is_no_cap():
    refusal(lambda: promise(small_question(cap=1.0)), kind=lc.InputError)


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", '{"ask": "mean"}', '{"ask": "mean", "columns": ["a"], "colour": 1}', "\x00"]
)
def test_a_file_that_is_no_question_is_refused(tmp_path, text):
    (tmp_path / "q.json").write_text(text)
    refusal(lambda: JointQuestion.read(tmp_path / "q.json"), kind=lc.InputError)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    refusal(lambda: JointQuestion.read(tmp_path / "none.toml"), "cannot be read", lc.InputError)


PRIVATE = 123.456


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.full((3, 3), PRIVATE), "one column for each"),
        (np.full(3, PRIVATE), "one column for each"),
        (np.array([[PRIVATE, np.nan]]), "none of them missing"),
        (np.array([[PRIVATE, np.inf]]), "none of them missing"),
        (np.array([[str(PRIVATE), "x"]]), "numbers"),
        (pd.DataFrame({"a": [PRIVATE]}), "no column 'b'"),
        (pd.DataFrame({"a": [PRIVATE], "b": ["x"]}), "numbers"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anybody_is_met(rows, words):
    refusal(
        lambda: together(rows, small_question(), join=free_places(3), party=1, seconds=5),
        words,
        lc.InputError,
        private=(str(PRIVATE),),
    )


def test_more_rows_than_agreed_are_refused_where_coins_select_rows():
    question = small_question(design="bits", rows=2)
    refusal(lambda: together(np.ones((3, 2)), question, join=free_places(3), party=1), "more rows", lc.InputError)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"join": "a:1,b:2"}, "as many addresses"),
        ({"join": "a:1,b:2,c"}, "host:port"),
        ({"join": "a:1,a:1,c:1"}, "same address"),
        ({"join": "a:1,b:2,c:99999"}, "host:port"),
        ({"join": "localhost:1,localhost:2,localhost:3", "party": 4}, "party is one of them"),
        ({"join": "localhost:1,localhost:2,localhost:3", "party": 0}, "at least 1"),
        ({"join": "localhost:1,localhost:2,localhost:3", "seconds": 0}, "seconds"),
        ({"join": "a.org:1,b.org:2,c.org:3"}, "plain wire"),
        ({"join": "a.org:1,b.org:2,c.org:3", "tls": "nowhere"}, "party.crt"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(settings, words):
    call = {"join": "localhost:1,localhost:2,localhost:3", "party": 1} | settings
    refusal(lambda: together(np.ones((1, 2)), small_question(), **call), words, lc.InputError)


def test_a_cap_that_is_a_coin_flip_is_refused():
    call = {"join": free_places(3), "party": 1}
    refusal(lambda: together(np.ones((1, 2)), small_question(cap=0.5000001), **call), "coin flip", lc.CapError)
    many = tuple(f"c{i}" for i in range(2000))
    wide = JointQuestion("histogram", many, {}, edges=(0.0, 1.0))
    refusal(lambda: together(np.ones((1, 2000)), wide, **call), "too many", lc.InputError)


def test_without_mpyc_the_error_says_what_to_install(monkeypatch):
    from leakcap.errors import MissingExtra
    from leakcap.local.parties import shares

    shares._mpyc.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "mpyc", None)
    try:
        call = {"join": free_places(3), "party": 1}
        refusal(lambda: together(np.ones((1, 2)), small_question(), **call), r"leakcap\[mpc\]", MissingExtra)
    finally:
        shares._mpyc.cache_clear()
