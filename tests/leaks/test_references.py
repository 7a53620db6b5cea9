"""Nothing that is released leads to an object of the custodian's."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import leakcap as lc
from tests.leaks.rigged import (
    CASES,
    KEPT,
    SMALL,
    Answer,
    X,
    arrays_of,
    custodian_objects_in,
    every_case,
    planned,
    points_of,
    reachable,
    rigged_release,
)

# References


@every_case
def test_public_objects_lead_to_no_custodian_object(name: str) -> None:
    plan = planned(name)
    release = rigged_release(plan, 2, points_of(plan)[1], 0.0)
    assert not custodian_objects_in(release, plan, *CASES[name].data)
    assert not custodian_objects_in(plan.certificate, plan)


def test_the_walk_finds_planted_references() -> None:
    plan = planned("array")
    release = rigged_release(plan, 2, points_of(plan)[1], 0.0)
    outputs = plan.outputs
    planted = [
        replace(release, value=lambda: plan),
        replace(release, value={"a": [plan.worlds]}),
        replace(release, value=outputs[3:4]),
        replace(release, value=Answer(plan.noise.space.centre[:1], 0.0)),
        replace(release, value=functools.partial(print, plan.run.simulation.node)),
        replace(release, value=lambda table=outputs: table),
    ]
    assert all(custodian_objects_in(one, plan) for one in planted)


def shared_with(own: Any, value: Any) -> list[str]:
    """Parts of a released value that are, or share memory with, parts of what the function returned in a world."""
    theirs = {id(one) for one in reachable(own)}
    objects = [one for one in reachable(value) if isinstance(one, (BaseEstimator, pd.DataFrame, pd.Series, Answer))]
    blocks = arrays_of(own)
    return [type(one).__name__ for one in objects if id(one) in theirs] + [
        "memory" for one in arrays_of(value) if any(np.shares_memory(one, block) for block in blocks)
    ]


@pytest.mark.parametrize("name", ["array", "frame", "series", "dataclass", "ridge", "logistic", "kmeans", "pipeline"])
def test_a_released_value_is_fresh_and_shares_nothing_with_any_worlds_own_answer(name: str) -> None:
    plan, kept = planned(name), KEPT[name]
    value = rigged_release(plan, 0, points_of(plan)[1], 0.0).value
    assert len(kept) >= plan.worlds.m
    assert all(value is not own for own in kept)
    assert not [part for own in kept for part in shared_with(own, value)]
    assert shared_with(kept[0], [kept[0]]), "the check must see the planted twin: a world's own answer, released"


def test_an_attribute_that_drags_a_worlds_rows_along_is_refused() -> None:
    """A bound method of an object with the rows in it looks like a plain function with a name."""

    class Rows:
        def __init__(self, rows: np.ndarray) -> None:
            self.rows = rows

        def lookup(self, i: int) -> Any:
            return self.rows[i]

    Rows.lookup.__qualname__ = "Rows.lookup"

    class Model(BaseEstimator):
        def fit(self, x: np.ndarray) -> Model:
            self.mean_ = x.mean(axis=0)
            self.lookup_ = Rows(x).lookup
            return self

    with pytest.raises(lc.OutputError, match="lookup_"):
        lc.plan(lambda x: Model().fit(x), X, **SMALL)


def test_an_attribute_changed_in_place_between_worlds_is_seen_to_vary() -> None:
    """One object fitted again and again: comparing it with itself would find it equal in all worlds."""

    class Model(BaseEstimator):
        def fit(self, x: np.ndarray) -> Model:
            if not hasattr(self, "counts_"):
                self.counts_ = np.zeros(3, dtype=int)
            self.counts_[:] = (x * 1e6).sum(axis=0)
            self.mean_ = x.mean(axis=0)
            return self

    model = Model()
    with pytest.raises(lc.OutputError, match="counts_"):
        lc.plan(model.fit, X, **SMALL)


def test_labels_a_table_does_not_show_do_not_leave_with_it() -> None:
    """A MultiIndex keeps unused levels, which may hold data and do not count when two of them are compared."""

    def fn(x: np.ndarray) -> pd.Series:
        hidden = pd.MultiIndex(levels=[["mean", "var"], [1.0, 777123.25 + x[0, 0]]], codes=[[0, 1], [0, 0]])
        return pd.Series([x.mean(), x.var()], index=hidden)

    try:
        value = lc.plan(fn, X, seed=1, **SMALL).release().value
    except lc.OutputError:
        return  # refusing is as good
    assert list(value.index.levels[1]) == [1.0]


def test_keys_that_only_pretend_to_be_equal_are_refused() -> None:
    class Key:
        def __init__(self, row: np.ndarray) -> None:
            self.row = row

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key)

        def __hash__(self) -> int:
            return 1

    with pytest.raises(lc.OutputError):
        lc.plan(lambda x: {Key(x[0]): x.mean()}, X, **SMALL)


# Custodian objects stay


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep copy"])
def test_a_plan_is_neither_pickled_nor_copied(way: Callable[[Any], Any]) -> None:
    with pytest.raises(lc.LeakcapError, match="custodian"):
        way(planned("array"))


@every_case
def test_a_release_survives_pickling_with_its_public_side_only(name: str) -> None:
    plan = planned(name)
    release = rigged_release(plan, 4, points_of(plan)[1], 0.0)
    again = pickle.loads(pickle.dumps(release))
    assert again.certificate == release.certificate
    assert repr(again) == repr(release)
    assert set(vars(again)) == {"value", "certificate", "names", "_vector", "_widths", "not_rebuilt", "labels", "notes"}
    assert again.not_rebuilt is None
