"""A class or group key that few people carry is warned of before anything leaves: it tells of one of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import SmallGroupWarning
from leakcap.planning.small_groups import warn_of_small_groups
from leakcap.simulate import Pool, describe
from leakcap.worlds import Units

N = 24


def carried_by(few: int) -> pd.DataFrame:
    """A table in which so many rows are of the second kind, whichever column is asked."""
    second = np.arange(N) < few
    return pd.DataFrame(
        {
            "name": np.where(second, "Quill", "others"),
            "kind": pd.Categorical(np.where(second, "Quill", "others")),
            "code": np.where(second, 7, 3),
            "share": np.where(second, 0.5, 0.25),
            "cost": np.linspace(0.0, 1.0, N),
            "person": np.arange(N) // 2,
        }
    )


ANSWERS: dict[str, Any] = {
    "series": lambda t: t.groupby("name")["cost"].mean(),
    "table": lambda t: t.groupby("kind", observed=True)[["cost"]].mean(),
    "columns": lambda t: t.groupby("name")[["cost"]].mean().T,
    "levels": lambda t: t.groupby(["name", "code"])["cost"].mean(),
    "number": lambda t: t.groupby("code")["cost"].mean(),
    "fraction": lambda t: t.groupby("share")["cost"].mean().rename_axis(None),
    "dict of numbers": lambda t: {code: float(t["cost"][t["code"] == code].mean()) for code in (3, 7)},
    "dict": lambda t: {"by": {"Quill": float((t["name"] == "Quill").sum())}},
}


def words_about(answer: Any, *data: Any, units: Any = None) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warn_of_small_groups(describe(answer, N)[0], Pool(data), Units.of(N, units))
    assert all(one.category is SmallGroupWarning for one in heard)
    return [str(one.message) for one in heard]


@pytest.mark.parametrize("name", ANSWERS)
def test_keys_that_fewer_than_five_people_carry_are_warned_of(name: str) -> None:
    few, many = carried_by(4), carried_by(5)
    (words,) = words_about(ANSWERS[name](few), few)
    assert "Quill" not in words and "7" not in words, "the key itself is not told"
    assert not words_about(ANSWERS[name](many), many)


def test_people_are_counted_not_rows() -> None:
    table = carried_by(8)
    answer = table.groupby("name")["cost"].mean()
    assert not words_about(answer, table)
    assert words_about(answer, table, units=table["person"])


def test_tables_of_polars_and_arrays_beside_each_other_are_looked_at() -> None:
    table = carried_by(2)
    answer = table.groupby("name")["cost"].mean()
    assert words_about(answer, polars.from_pandas(table))
    assert words_about(answer, table["cost"].to_numpy(), table["name"].to_numpy())
    assert words_about({"Quill": 1.0}, table["cost"].to_numpy(), table["name"].tolist()) == []  # a list has no columns


def test_names_of_columns_and_numbers_of_rows_are_no_keys() -> None:
    table = carried_by(2).assign(age=np.arange(N), notes=[[]] * N)
    for answer in (table[["cost", "age"]].mean(), table[["cost"]].iloc[:3].reset_index(drop=True), {"cost": 1.0}):
        assert not words_about(answer, table)


SMALL: dict[str, Any] = {"cap": lc.mutual_information(2), "worlds": 16, "random_state": 0, "options": {"draws": 256}}


def test_a_plan_warns_before_anything_leaves() -> None:
    table = carried_by(4).rename(columns={"person": "row"})

    def counts(some: pd.DataFrame) -> dict[str, int]:
        return {name: int((some["name"] == name).sum()) for name in ("Quill", "others")}

    with pytest.warns(SmallGroupWarning, match="fewer than 5 people carry a class or group key") as heard:
        lc.plan(counts, table[["name"]], cap=lc.mutual_information(2), worlds=16, draws=256, seed=0)
    assert heard[0].filename == __file__


@pytest.mark.parametrize(
    "model", [le.GaussianNB(**SMALL), le.LogisticRegression(0.1, **SMALL)], ids=["bayes", "logistic"]
)
def test_a_classifier_warns_of_a_class_that_few_people_carry(model: Any) -> None:
    table = pd.DataFrame({"x": np.linspace(0, 1, N), "z": np.linspace(0, 1, N) ** 2})
    few = np.where(np.arange(N) % 6 == 0, "Quill", "others")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(table, few, strata=few)
    assert [one.category for one in heard].count(SmallGroupWarning) == 1
