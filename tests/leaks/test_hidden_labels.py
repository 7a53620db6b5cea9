"""What an answer holds and does not show stays behind: categories, levels, attributes, memory behind a view.

A name is hidden in answers of every form. It must be in no byte that leaves. Each place has its planted twin: with the
labels or values passed on as they came, the same search finds the name.
"""

from __future__ import annotations

import importlib
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import leakcap as lc
from leakcap.simulate import describe, nodes, rebuild
from leakcap.simulate import estimators as models
from leakcap.simulate.worker import refuse
from tests.leaks.rigged import SMALL, arrays_of, public_artefacts, telling_artefacts

NAME = "Zacharias Quill"
rng = np.random.default_rng(8)
WARDS = pd.Categorical(np.tile(["north", "south"], 12), categories=["north", "south", NAME])
PEOPLE = pd.DataFrame({"ward": WARDS, "sex": np.repeat([0, 1], 12), "cost": rng.normal(size=24), "days": np.ones(24)})


def crossed(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby(["sex", "ward"], observed=True)["cost"].sum().unstack(fill_value=0.0)


def noted(table: pd.DataFrame) -> pd.DataFrame:
    answer = table[["cost", "days"]].describe().loc[["mean", "max"]]
    answer.attrs["seen"] = NAME
    return answer


def cut_off(table: pd.DataFrame) -> pd.Series:
    """The first rows of a longer table, whose labels lie in one piece of memory."""
    long = pd.Index(["mean", "max", NAME], dtype="string[pyarrow]")
    return pd.DataFrame({"x": [table["cost"].mean(), table["cost"].max(), 0.0]}, index=long)["x"].iloc[:2]


def of_levels(table: pd.DataFrame) -> pd.Series:
    found = table.groupby(["sex", "ward"], observed=False)["cost"].sum()
    return found[found.index.get_level_values("ward") != NAME]


ANSWERS: dict[str, Any] = {
    "categorical index": lambda t: t.groupby("ward", observed=True)["cost"].mean(),
    "categorical columns": crossed,
    "levels": of_levels,
    "levels of columns": lambda t: of_levels(t).to_frame().T,
    "ordered bins": lambda t: t.groupby(t["ward"].cat.as_ordered(), observed=True)["cost"].mean(),
    "attrs": noted,
    "attrs of a series": lambda t: noted(t)["cost"],
    "part of a text column": cut_off,
    "in a dict": lambda t: {"by": {"ward": crossed(t)}, "list": [t.groupby("ward", observed=True)["cost"].sum()]},
    "polars": lambda t: polars.DataFrame({"cost": [t["cost"].mean()]}),
    "categories of polars": lambda t: (
        polars.from_pandas(t)
        .with_columns(polars.col("ward").cast(polars.Enum(["north", "south", NAME])))
        .group_by("ward")
        .agg(polars.col("cost").sum())
        .sort("ward")
    ),
}


def found_in(release: lc.Release) -> set[str]:
    return {place for place, content in public_artefacts(release).items() if NAME.encode() in content}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_table_does_not_show_is_in_no_public_byte(name: str) -> None:
    plan = lc.plan(ANSWERS[name], PEOPLE, **SMALL)
    assert not telling_artefacts(plan)
    release = plan.release()
    assert not found_in(release)
    assert not any(NAME in text for text in release.names)


@pytest.mark.parametrize("name", ["categorical index", "categorical columns", "levels", "in a dict"])
def test_labels_that_leave_as_they_came_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    for module in (importlib.import_module("leakcap.simulate.describe"), nodes):
        monkeypatch.setattr(module, "own_labels", lambda index: index)
    assert found_in(lc.plan(ANSWERS[name], PEOPLE, **SMALL).release()) >= {"pickled release", "pickled value"}


def test_labels_look_as_they_did() -> None:
    for name in ("categorical index", "categorical columns", "levels", "part of a text column"):
        answer = ANSWERS[name](PEOPLE)
        node, numbers = describe(answer, rows=12)
        again = rebuild(node, numbers)
        assert [list(axis) for axis in again.axes] == [list(axis) for axis in answer.axes]
        assert [list(axis.names) for axis in again.axes] == [list(axis.names) for axis in answer.axes]


# Labels and values that are not what they show


class Tagged(str):
    """Text with something to it."""

    tag = NAME


class Noted(np.ndarray):
    """Numbers with something to them."""

    note: Any = None


def tagged(text: str) -> Tagged:
    made = Tagged(text)
    made.seen = NAME  # type: ignore[attr-defined]
    return made


def noted_array(values: Any) -> Noted:
    made = np.asarray(values).view(Noted)
    made.note = NAME
    return made


WITH_NAME = np.dtype(np.float64, metadata={"seen": NAME})
STRANGE: dict[str, Any] = {
    "label": pd.Series([1.0, 2.0], index=pd.Index([tagged("a"), "b"], dtype=object)),
    "name of an index": pd.Series([1.0], index=pd.Index([1], name=tagged("a"))),
    "name of a column": pd.Series([1.0], name=tagged("a")),
    "level": pd.Series([1.0], index=pd.MultiIndex.from_tuples([("x", 1)], names=[tagged("a"), None])),
    "key": {tagged("a"): 1.0},
}


@pytest.mark.parametrize("name", STRANGE)
def test_labels_that_are_more_than_they_show_are_refused(name: str) -> None:
    node, _ = describe(STRANGE[name], rows=7)
    with pytest.raises(lc.OutputError, match="no plain values"):
        refuse([*node.refusals()])


class Fitted(BaseEstimator):
    def __init__(self, setting: Any = None) -> None:
        self.setting = setting


def fitted(**attributes: Any) -> Fitted:
    made = Fitted()
    vars(made).update(attributes)
    return made


LONG = np.arange(100.0)
PARTS: dict[str, Any] = {
    "dtype": fitted(means_=np.zeros(2, WITH_NAME), names_=np.arange(2).astype(np.dtype(int, metadata={"seen": NAME}))),
    "plain dtype": fitted(kind_=WITH_NAME),
    "part of an array": fitted(numbers_=np.arange(100)[:3]),
    "objects that are parts of arrays": fitted(groups_=[LONG.astype(int)[:2], LONG.astype(int)[5:7]]),
    "an array of arrays": fitted(groups_=np.array([LONG[:2], LONG[:3]], dtype=object)),
}
REFUSED: dict[str, Any] = {
    "subclass of an array": fitted(kept_=noted_array([1, 2])),
    "masked array": fitted(kept_=np.ma.masked_array([1, 2], mask=[True, False])),
    "text with an attribute": fitted(kept_=tagged("a")),
    "list of them": fitted(kept_=["x", tagged("a")]),
    "a dict that makes values": fitted(kept_=defaultdict(lambda: NAME, a=1)),
    "a record": fitted(kept_=np.zeros(2, dtype=[((NAME, "x"), int)])),
    "a sparse matrix": fitted(kept_=sp.csr_array(np.eye(3))),
    "a table": fitted(kept_=PEOPLE[["ward"]]),
    "a setting": Fitted(tagged("a")),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_models_attributes_leave_without_what_is_behind_them(name: str) -> None:
    node, numbers = describe(PARTS[name], rows=7)
    assert not list(node.refusals())
    built = rebuild(node, numbers)
    assert NAME.encode() not in pickle.dumps(built)
    assert all(array.base is None or array.base.size == array.size for array in arrays_of(built))
    assert sum(array.size for array in arrays_of(built)) < 10


@pytest.mark.parametrize("name", REFUSED)
def test_a_models_attributes_that_are_more_than_they_show_are_refused(name: str) -> None:
    node, _ = describe(REFUSED[name], rows=7)
    assert list(node.refusals())


def test_attributes_that_leave_as_they_came_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    for module in (models, nodes):
        monkeypatch.setattr(module, "plain_copy", lambda value: value)
    built = rebuild(*describe(PARTS["objects that are parts of arrays"], rows=7))
    assert any(array.base is not None and array.base.size > array.size for array in arrays_of(built))


def test_numbers_with_something_to_them_leave_as_numbers() -> None:
    for answer in (noted_array([1.0, 2.0]), np.zeros(2, WITH_NAME)):
        assert NAME.encode() not in pickle.dumps(rebuild(*describe(answer, rows=7)))


def test_classes_that_nobody_has_are_not_in_an_estimator() -> None:
    settings = {"random_state": 0, "cap": lc.mutual_information(2), "worlds": 16, "options": {"draws": 256}}
    model = lc.estimators.GaussianNB(**settings).fit(PEOPLE[["cost"]], pd.Series(WARDS))
    assert NAME.encode() not in pickle.dumps(model)
