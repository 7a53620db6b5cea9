"""Tables of polars in, tables of polars out: names, labels, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import leakcap as lc
from leakcap.errors import OutputError
from leakcap.simulate import describe, rebuild

RNG = np.random.default_rng(0)
ROWS = pl.DataFrame(
    {
        "ward": np.resize(list("AAB"), 300),
        "floor": np.resize([1, 2], 300),
        "sick": np.resize([True, False, False], 300),
        "cost": RNG.uniform(0, 100, 300),
    }
)
KEYS: dict[str, list[Any]] = {"ward": ["A", "B", "C"], "floor": [1, 2]}
PROMISES: list[dict[str, Any]] = [
    {"cap": lc.pool_membership(0.8), "bounds": (0, 100)},
    {"cap": 0.8, "design": "bits"},
    {"cap": 0.8, "worlds": 32, "draws": 512},
]


@pytest.mark.parametrize("options", PROMISES)
@pytest.mark.parametrize(
    ("keys", "statistic", "of"),
    [(KEYS, "count", ()), (KEYS, "mean", "cost"), ({"sick": [True, False]}, "sum", "cost"), (KEYS, "share", "sick")],
)
def test_groups_of_a_polars_table_are_a_polars_table(keys: Any, statistic: str, of: Any, options: Any) -> None:
    fn = lc.stats.group_by(keys, statistic, of=of)
    plan = lc.plan(fn, ROWS, seed=1, **options)
    whole, found = fn(ROWS), plan.release().value
    assert isinstance(found, pl.DataFrame)
    assert found.schema == whole.schema
    assert found.select(list(keys)).equals(whole.select(list(keys)))
    of_pandas = np.asarray(fn(ROWS.to_pandas())).ravel()
    numbers = whole.drop(list(keys)).to_numpy().ravel()
    assert numbers == pytest.approx(of_pandas)
    assert plan.summary().answer == pytest.approx(of_pandas, rel=1e-9, abs=1e-9)
    assert len(plan.summary().names) == len(numbers)


def test_answers_of_functions_keep_names_and_labels() -> None:
    def costs(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by("ward").agg(pl.len(), pl.col("cost").mean()).sort("ward")

    plan = lc.plan(costs, ROWS, cap=0.8, worlds=32, draws=512, seed=1)
    release = plan.release()
    found = release.value
    assert found.columns == ["ward", "len", "cost"]
    assert found["ward"].to_list() == ["A", "B"]
    assert release.names == ("A, len", "A, cost", "B, len", "B, cost")
    part = " (of the half that was used)"
    assert plan.summary().names == (f"A, len{part}", "A, cost", f"B, len{part}", "B, cost")


def test_a_series_stays_one_and_nothing_else_of_it_leaves() -> None:
    node, numbers = describe(pl.Series("cost", [1, 2]), 2)
    built = rebuild(node, numbers)
    assert isinstance(built, pl.Series)
    assert (built.name, built.to_list()) == ("cost", [1.0, 2.0])
    assert list(node.labels()) == ["[0], cost", "[1], cost"]


def test_labels_that_differ_between_worlds_are_refused() -> None:
    def most(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.sort("cost").head(1).select(pl.col("cost").cast(pl.String).alias("who"), "cost")

    with pytest.raises(OutputError, match="different rows, columns or labels"):
        lc.plan(most, ROWS, cap=0.8, worlds=32, draws=512, seed=1)


def test_numbers_are_noised_unless_they_are_listed_as_labels() -> None:
    table = pl.DataFrame({"floor": [1, 2], "cost": [3.0, 4.0]})
    assert describe(table, 2)[0].size() == 4
    table.label_columns = ("floor",)  # type: ignore[attr-defined]
    node, numbers = describe(table, 2)
    assert numbers.tolist() == [3, 4]
    assert rebuild(node, np.array([5.0, 6.0])).to_dict(as_series=False) == {"floor": [1, 2], "cost": [5, 6]}


@pytest.mark.parametrize("value", [pl.Series("who", ["x", "y"]), pl.DataFrame({"a": [[1, 2]], "b": [1.0]})])
def test_what_cannot_be_covered_is_refused(value: Any) -> None:
    assert list(describe(value, 2)[0].refusals())
