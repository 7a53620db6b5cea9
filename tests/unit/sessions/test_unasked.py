"""What sessions do not have: refused with what to write, which then works, and no cell is quoted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError, UnknownArgument
from tests.refusals import refusal

PEOPLE = 400
WARDS = ("Auxerre", "Blois")


def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"age": rng.integers(4700, 4799, PEOPLE), "ward": rng.choice(WARDS, PEOPLE)})


def opened() -> lc.Session:
    return lc.Session(people(), cap=0.6, seed=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 1.0}, "share=0.01 is the part"),
        ({"cap": 0.6}, "share=0.01 is the part"),
        ({"filter": "age > 3"}, "it is called where"),
        ({"groupby": "ward"}, "declare the groups: by="),
        ({"seed": 3}, "lc.Session"),
        ({"shares": 0.1}, "did you mean share?"),
    ],
)
def test_arguments_of_others_are_put_right(given: dict[str, Any], words: str) -> None:
    one = opened()
    refusal(lambda: one.count(**given), re.escape(words), kind=UnknownArgument)
    refusal(lambda: one.preview("count", **given), re.escape(words), kind=UnknownArgument)
    assert one.certificate.answered == 0


CURES = {
    "median": lambda one: one.quantile("age", 0.5, bounds=(0, 9000)),
    "variance": lambda one: one.covariance("age", bounds=(0, 9000)),
    "max": lambda one: one.quantile("age", [0.05, 0.95], bounds=(0, 9000)),
    "value_counts": lambda one: one.count(by={"ward": ["A", "B"]}),
}


@pytest.mark.parametrize("name", CURES)
def test_questions_of_others_are_answered_by_another_name(name: str) -> None:
    one = opened()
    with pytest.raises(AttributeError, match=f"a session has no {name}: .*session\\."):
        getattr(one, name)
    assert np.isfinite(np.asarray(CURES[name](one).value)).all()


def test_what_nobody_means_is_no_attribute() -> None:
    one = opened()
    assert not hasattr(one, "colour") and not hasattr(one, "_anything") and not hasattr(one, "median")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_in_the_place_of_names_are_refused_and_not_quoted(library: str) -> None:
    one, table = opened(), people()
    own = pytest.importorskip(library)
    given = table if library == "pandas" else own.from_pandas(table)
    cells = (*WARDS, *map(str, table["age"].unique()))
    ridge = lc.estimators.Ridge()
    for call in (
        lambda: one.mean(given["age"], bounds=(0, 9000)),
        lambda: one.mean(given, bounds=(0, 9000)),
        lambda: one.fit(ridge, given[["age"]], given["age"]),
        lambda: one.fit(ridge, ["age"], given["age"]),
    ):
        refusal(call, "the session has the data: name the columns", private=cells)
    for rows in (table["age"].to_numpy(), table["age"].tolist(), table["ward"].tolist(), table["age"].tolist()[:2]):
        refusal(lambda rows=rows: one.mean(rows, bounds=(0, 9000)), "named by their names: there are", private=cells)
    assert one.mean(table.columns[:1], bounds=(0, 9000)).value.shape == (1,)


def test_a_misspelt_column_is_found() -> None:
    with pytest.raises(InputError, match="there is no column 'Age': did you mean 'age'"):
        opened().mean("Age", bounds=(0, 9000))
    with pytest.raises(InputError, match="there is no column '7': there are '0', '1'"):
        lc.Session(np.ones((5, 2)), cap=0.6, seed=1).mean(7, bounds=(0, 1))


def test_a_class_in_the_place_of_an_estimator_is_told() -> None:
    one = opened()
    refusal(lambda: one.fit(lc.estimators.Mean, ["age"]), r"give session\.fit\(Mean\(\), \.\.\.\)")
    assert one.fit(lc.estimators.Mean(), ["age"]) is not None


def test_a_table_with_words_is_told_which_columns_to_leave_out() -> None:
    table = people()
    told = refusal(lambda: lc.stats.mean(table), r"Leave 'ward' out.*table\.select_dtypes\('number'\)", private=WARDS)
    assert "age" not in str(told)
    assert lc.stats.mean(table.select_dtypes("number")).shape == (1,)
    polars = pytest.importorskip("polars")
    same = polars.from_pandas(table)
    refusal(lambda: lc.stats.mean(same), r"Leave 'ward' out.*table\.select\(polars\.selectors\.numeric\(\)\)")
    assert lc.stats.mean(same.select(polars.selectors.numeric())).shape == (1, 1)
    refusal(
        lambda: lc.plan(lc.stats.mean, table, columns="age", cap=0.6), "hand over the columns", kind=UnknownArgument
    )
    assert lc.plan(lc.stats.mean, table[["age"]], cap=0.6).certificate is not None
