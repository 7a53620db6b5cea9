"""What is refused of a session is so by what was declared, and what a person brings hangs on that person alone.

For analysts and under pool caps nothing is looked at before a refusal. For the custodian too, whose answers within
bounds are certified in the game about the pool, nobody's part hangs on cells of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as PlainRidge

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import InputError
from leakcap.estimators.declared_classes import declared_rows
from leakcap.sessions.networks.targets import codes_of
from leakcap.sessions.table import SessionTable

PEOPLE = 12
NOON = pd.Timestamp("2026-01-01 12:00", tz="Europe/Berlin")
QUIET: dict[str, dict[str, Any]] = {
    "an analyst": {"cap": 0.6, "analyst": "ann"},
    "a pool cap": {"cap": lc.pool_membership(0.55)},
}
Words = tuple[str, tuple[Any, ...], dict[str, Any]]
WITHIN: dict[str, Words] = {
    "count": ("count", (), {"where": "x > 3"}),
    "groups": ("count", (), {"by": {"x": [1, 2]}}),
    "sum": ("sum", ("x",), {"bounds": (0, 9)}),
    "sums by group": ("sum", ("x",), {"bounds": (0, 9), "by": {"y": [1, 2]}}),
    "mean": ("mean", ("x",), {"bounds": (0, 9)}),
    "means by group": ("mean", ("x",), {"bounds": (0, 9), "by": {"y": [1, 2]}}),
    "histogram": ("histogram", ("x",), {"bounds": (0, 9)}),
    "covariance": ("covariance", ("x",), {"bounds": (0, 9)}),
    "quantile": ("quantile", ("x",), {"bounds": (0, 9)}),
    "linear": ("linear", (len,), {"bounds": (0, 9), "shape": ()}),
    "length": ("linear", (len,), {"norm": 1.0, "shape": ()}),
    "blocks": ("blocks", (len,), {"bounds": (0, 9), "blocks": 3}),
}
ABOUT_THE_POOL: dict[str, Words] = {
    "sum": ("sum", ("x",), {}),
    "mean": ("mean", ("x",), {"where": "x > 3"}),
    "covariance": ("covariance", (["x", "y"],), {}),
    "query": ("query", (len,), {}),
}


def table(*more: dict[str, Any]) -> pd.DataFrame:
    rows = [{"x": float(place), "y": place % 3, "day": NOON, "name": "A"} for place in range(PEOPLE)]
    return pd.DataFrame([*rows, *more], columns=["x", "y", "day", "name"])


def question(session: lc.Session, words: Words) -> Any:
    kind, args, details = words
    return getattr(session._questions, kind)(*args, **details)


def brings(session: lc.Session, words: Words) -> Any:
    """What everybody brings: the sums of each of them alone."""
    sums = question(session, words).sums(False)
    each, noise = np.eye(session._table.units.count, dtype=bool), np.ones(sums.numbers)
    return np.stack([sums.totals(noise, alone, alone, True)[0] for alone in each])


@pytest.mark.parametrize("who", QUIET)
@pytest.mark.parametrize("noise", [{}, {"noise": 1.0}, {"share": 0.1}], ids=str)
def test_what_is_about_the_pool_is_refused_before_the_data_are_looked_at(
    who: str, noise: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = lc.Session(table(), seed=1, **QUIET[who])

    def looked(*_: Any) -> Any:
        raise AssertionError("the data were looked at")

    asked = [*ABOUT_THE_POOL.values(), ("query", (looked,), {})]
    if "noise" in noise:
        asked.append(("mean", ("x",), {"bounds": (0, 9)}))  # the number of rows would be the pool's
    for way in ("rows", "mask", "rows_alone", "told", "numbers"):
        monkeypatch.setattr(SessionTable, way, looked)
    for kind, args, details in asked:
        said = set()
        for ask in (getattr(session, kind), lambda *a, kind=kind, **d: session.preview(kind, *a, **d)):
            with pytest.raises(InputError, match=r"bounds=\(") as refused:
                ask(*args, **details, **noise)
            said.add(str(refused.value))
        assert len(said) == 1
    assert session.spent.share == 0


@pytest.mark.filterwarnings("ignore::leakcap.errors.BlocksWarning")
@pytest.mark.parametrize("noise_given", [False, True])
def test_a_question_says_of_itself_what_its_sums_say(noise_given: bool) -> None:
    session = lc.Session(table(), cap=0.6, seed=1)
    adds_up = ("query", (lambda r: r["x"].sum(),), {})
    asked = [*WITHIN.values(), *ABOUT_THE_POOL.values(), ("linear", (lambda r: 1.0,), {"bounds": (0, 1)}), adds_up]
    for words in asked:
        one = question(session, words)
        assert one.public(noise_given) == one.sums(noise_given).public, words
    assert not question(session, adds_up).public(noise_given)
    assert question(session, WITHIN["mean"]).public(False) and not question(session, WITHIN["mean"]).public(True)


def test_nobodys_function_writes_on_the_custodians_data() -> None:
    def wreck(rows: Any) -> float:
        rows[:] = 0.0
        return 0.0

    data = np.ones((PEOPLE, 1))
    lc.Session(data, cap=0.6, seed=1).query(wreck)
    for quiet in QUIET.values():
        with pytest.raises(InputError, match="linear"):
            lc.Session(data, seed=1, **quiet).query(wreck)
    assert (data == 1).all()


def test_the_custodian_hears_of_his_own_functions() -> None:
    with pytest.raises(ZeroDivisionError):
        lc.Session(table(), cap=0.6, seed=1).query(lambda rows: 1 / 0)


ODD = [
    {"x": 5.0, "y": 1, "day": NOON, "name": "A"},
    {"x": "x", "y": "many", "day": "unknown", "name": 3},
    {"x": [1], "y": [1, 2], "day": [NOON], "name": ["A"]},
    {"x": None, "y": None, "day": None, "name": None},
    {"x": 1j, "y": 2**70, "day": NOON.tz_convert("UTC"), "name": b"A"},
]
LEVELS = [NOON, NOON.to_pydatetime(), NOON.tz_convert("UTC"), np.datetime64("2026-01-01T11:00")]
BRINGS: dict[str, Words] = {
    **{f"day {place}": ("count", (), {"by": {"day": [level]}}) for place, level in enumerate(LEVELS)},
    **{f"y {level!r}": ("count", (), {"by": {"y": [level, 7]}}) for level in (1, 1.0, True, np.int64(1))},
    "names": ("count", (), {"by": {"name": ["A", "B"]}}),
    "means": ("mean", ("x",), {"by": {"y": [0, 1, 2]}, "bounds": (0, 9)}),
    "days": ("count", (), {"where": "day = '2026-01-01 11:00' and day is not null"}),
    "numbers": ("count", (), {"where": "x > 3 or y = 1 or not y >= x"}),
    "text": ("count", (), {"where": "name in ('A', 'B') or name > 3"}),
    "sum": ("sum", (["x", "y"],), {"bounds": (0, 9)}),
    "bins": ("histogram", ("y",), {"bounds": (0, 9)}),
}


@pytest.mark.parametrize("asked", BRINGS)
@pytest.mark.parametrize("who", [{"cap": 0.6}, *QUIET.values()], ids=["the custodian", *QUIET])
def test_what_somebody_brings_is_the_same_whoever_else_is_there(who: dict[str, Any], asked: str) -> None:
    expected = brings(lc.Session(table(), seed=1, **who), BRINGS[asked])
    assert expected.any()
    for other in ODD:
        found = brings(lc.Session(table(other), seed=1, **who), BRINGS[asked])[:PEOPLE]
        assert (found == expected).all(), other


def test_groups_are_called_as_they_were_declared() -> None:
    session = lc.Session(table(), seed=1, **QUIET["an analyst"])
    days = session.count(by={"day": [NOON], "y": [0, True]}).value
    assert list(days.index) == [(NOON, 0), (NOON, True)]


def test_the_custodian_hears_of_levels_of_another_kind() -> None:
    with pytest.raises(InputError, match="levels must be numbers"):
        lc.Session(table(), cap=0.6, seed=1).count(by={"y": ["1"]})


LISTS: dict[str, tuple[Callable[[int], Any], list[Any]]] = {
    "rows": (lambda place: [float(place % 2), 1.0], [["x", 1.0], [0.5, [1]], [None, {}], [1j, 1]]),
    "cells": (lambda place: float(place % 2), ["x", None, [1.0], 1j, 2**70, {}]),
}
RAGGED: list[Any] = [[[0.5]], [[]], [[1, 2, 3]], [5.0], [None]]


@pytest.mark.parametrize("kind", LISTS)
def test_a_row_of_a_list_is_the_same_whichever_others_there_are(kind: str) -> None:
    made, odd = LISTS[kind]
    rows = [made(place) for place in range(PEOPLE)]
    asked: list[Words] = [("sum", ("0",), {"bounds": (0, 1)}), ("count", (), {"where": '"0" >= 0'})]
    for who in QUIET.values():
        for words in asked:
            expected = brings(lc.Session(rows, seed=1, **who), words)
            assert expected.any()
            for other in odd:
                found = brings(lc.Session([*rows, other], seed=1, **who), words)
                assert (found[:PEOPLE] == expected).all(), other


@pytest.mark.parametrize("who", QUIET)
@pytest.mark.parametrize("odd", RAGGED, ids=repr)
def test_lists_of_rows_of_different_lengths_are_refused_when_they_are_brought(who: str, odd: list[Any]) -> None:
    with pytest.raises(InputError, match="of one length"):
        lc.Session([*([0.0, 1.0] for _ in range(PEOPLE)), *odd], seed=1, **QUIET[who])


class Loud:
    """A level that would look at every cell."""

    def __hash__(self) -> int:
        return hash("A")

    def __eq__(self, other: object) -> bool:
        raise ValueError("somebody is in ward A")


class Word(str):
    """Text that is more than text."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        raise ValueError("somebody is in ward A")


@pytest.mark.parametrize("level", [Loud(), Word("A"), ("A",), 1j], ids=lambda level: type(level).__name__)
@pytest.mark.parametrize("who", [*QUIET, "the custodian"])
def test_levels_are_plain_values(who: str, level: Any) -> None:
    session = lc.Session(table(), seed=1, **QUIET.get(who, {"cap": 0.6}))
    with pytest.raises(InputError, match="levels must be text"):
        session.count(by={"name": [level]})


@pytest.mark.parametrize("cell", [memoryview(bytearray(b"x")), Loud(), Word("A")], ids=lambda cell: type(cell).__name__)
def test_a_cell_that_cannot_be_looked_up_is_not_heard(cell: Any) -> None:
    for who in QUIET.values():
        session = lc.Session(table({"x": 1.0, "y": 1, "day": NOON, "name": cell}), seed=1, **who)
        found = question(session, ("count", (), {"by": {"name": ["A", "B"]}})).sums(False).values
        assert (found[:PEOPLE] == [1.0, 0.0]).all()


def test_a_long_text_takes_room_once() -> None:
    long = SessionTable.of(table({"x": 1.0, "y": 1, "day": NOON, "name": "a" * 10**6}), None, None, True)
    assert long.columns["name"].dtype == object
    assert long.mask("name = 'A' and x >= 0").tolist() == [True] * PEOPLE + [False]  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [np.int64, np.bool_, int, float, str])
@pytest.mark.parametrize("odd", [[1, 2], "q", {}, None, 2**70, 1j], ids=repr)
def test_a_cell_that_cannot_be_looked_up_takes_nobodys_class(kind: Any, odd: Any) -> None:
    target = [kind(place % 2) for place in range(PEOPLE)]
    classes = [kind(0), kind(1)]
    cells = np.empty(PEOPLE + 1, dtype=object)
    cells[:PEOPLE], cells[PEOPLE:] = target, [None]
    cells[PEOPLE] = odd
    features = np.zeros((PEOPLE + 1, 1))
    expected = [*(place % 2 for place in range(PEOPLE)), -1]
    for given in (cells, cells.tolist()):
        assert declared_rows(lc.estimators.GaussianNB(), features, given, classes).target.tolist() == expected
    codes = codes_of(cells, np.unique(classes))
    assert codes[:PEOPLE].tolist() == expected[:PEOPLE] and np.isnan(codes[PEOPLE])


@pytest.mark.parametrize("who", [*QUIET, "the custodian"])
def test_what_goes_wrong_is_told_to_the_custodian_alone(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = lc.Session(table(), seed=1, **QUIET.get(who, {"cap": 0.6}))
    words = "Unable to allocate 37.3 GiB for an array with shape (12,)"

    def fails(*_: Any) -> Any:
        raise MemoryError(words)

    monkeypatch.setattr(SessionTable, "mask", fails)
    with pytest.raises((lc.LeakcapError, MemoryError)) as caught:
        session.count()
    assert (words in str(caught.value)) == (who == "the custodian")
    assert caught.value.__cause__ is caught.value.__context__ is None


FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "any estimator": (le.Private(PlainRidge()), {"bounds": (0, 1)}),
    "any estimator, by length": (le.Private(PlainRidge()), {"norm": 1.0}),
    "naive Bayes": (le.GaussianNB(), {"norm": 1.0}),
    "forest": (le.RandomForestClassifier(2), {"norm": 1.0}),
    "tree": (le.DecisionTreeClassifier(1), {"norm": 1.0}),
    "boosting": (le.HistGradientBoostingClassifier(1), {"norm": 1.0}),
}


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_is_refused_in_the_same_words_whatever_the_data_are(fit: str) -> None:
    """A column that is empty but for one person, whose label is of another kind."""
    estimator, given = FITS[fit]
    heard = set()
    for cell, label in ((np.nan, 1), (0.5, 1), (0.5, "yes")):
        columns = {"x": [cell] + [np.nan] * (PEOPLE - 1), "y": pd.Series([label] + [0, 1] * 5 + [1], dtype=object)}
        if fit.startswith("any"):
            columns["y"] = np.arange(PEOPLE)
        session = lc.Session(pd.DataFrame(columns), cap=0.6, analyst="ann", seed=0)
        with pytest.raises((InputError, TypeError, ValueError)) as refused:
            session.fit(estimator, ["x"], "y", **given)
        heard.add((refused.type, str(refused.value)))
    assert {kind for kind, _ in heard} == {InputError}
    assert len(heard) == 1
