"""Statistics of a table keep the names of its columns, in the library that the rows came in, under every promise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import leakcap as lc
from leakcap.testing import check_kernel

RNG = np.random.default_rng(5)
CELLS = {"age": RNG.integers(18, 90, 120).astype(float), "pay": RNG.gamma(2, 900, 120).round()}
FRAME, ARRAY = pd.DataFrame(CELLS), np.column_stack(list(CELLS.values()))
GRID = {"age": range(0, 101, 10), "pay": range(0, 9001, 500)}
BOUNDS = {"age": (0, 100), "pay": (0, 9000)}
STATISTICS: dict[str, Any] = {
    "mean": lc.stats.mean,
    "sum": lc.stats.sum,
    "median": lc.stats.median,
    "variance": lc.stats.variance,
    "covariance": lc.stats.covariance,
    "quantile": partial(lc.stats.quantile, q=0.25),
    "quantiles": partial(lc.stats.quantile, q=[0.25, 0.5]),
    "quantiles on a grid": partial(lc.stats.quantile, q=[0.25, 0.5], grid=[list(cuts) for cuts in GRID.values()]),
    "histogram": partial(lc.stats.histogram, edges=[0, 40, 60, 100]),
    "categories": partial(lc.stats.categories, levels=[30.0, 60.0]),
}
PROMISES: dict[str, dict[str, Any]] = {
    "worlds": {"cap": 0.7, "design": "worlds", "worlds": 64, "draws": 512},
    "bits": {"cap": 0.7, "design": "bits"},
    "pool": {"cap": lc.pool_membership(0.7), "bounds": (0, 9000)},
}
SUMS = [name for name in STATISTICS if name not in ("median", "variance", "quantile", "quantiles")]


@pytest.mark.parametrize("name", STATISTICS)
def test_a_table_gives_the_numbers_of_its_array_with_names(name: str) -> None:
    fn = STATISTICS[name]
    plain, named, of_polars = fn(ARRAY), fn(FRAME), fn(pl.DataFrame(CELLS))
    assert isinstance(plain, np.ndarray)
    assert type(named).__module__.startswith("pandas")
    np.testing.assert_array_equal(np.asarray(named), plain)
    assert isinstance(of_polars, pl.DataFrame)
    cells = of_polars.drop(getattr(of_polars, "label_columns", ())).to_numpy()
    np.testing.assert_array_equal(cells.reshape(plain.shape), plain)


def test_names_are_where_pandas_itself_has_them() -> None:
    pd.testing.assert_series_equal(lc.stats.mean(FRAME), FRAME.mean())
    pd.testing.assert_frame_equal(lc.stats.covariance(FRAME), FRAME.cov())
    pd.testing.assert_frame_equal(lc.stats.quantile(FRAME, [0.25, 0.5]), FRAME.quantile([0.25, 0.5]))
    bins = lc.stats.histogram(FRAME, [0, 40, 60, 100])
    assert list(bins.columns) == ["under 40", "40 to 60", "60 or more"]
    assert list(bins.index) == ["age", "pay"]
    assert lc.stats.categories(FRAME, [30.0]).columns.tolist() == [30.0]


def test_one_column_and_lists_stay_numbers() -> None:
    assert isinstance(lc.stats.mean(FRAME["age"]), np.ndarray)
    assert isinstance(lc.stats.mean([[1, 2], [3, 4]]), np.ndarray)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", STATISTICS)
def test_releases_have_the_names_and_the_numbers_of_the_array(name: str, promise: str) -> None:
    """The noise is that of the array's release, to the last digit: names change nothing that is certified."""
    if promise != "worlds" and name not in SUMS:
        pytest.skip("no sum over people")
    fn, options = STATISTICS[name], PROMISES[promise]
    if promise == "pool" and name not in ("mean", "sum", "covariance"):
        options = {"cap": options["cap"]}
    plain, named, of_polars = (lc.release(fn, data, seed=3, **options) for data in (ARRAY, FRAME, pl.DataFrame(CELLS)))
    assert isinstance(plain.value, np.ndarray)
    assert type(named.value) is type(fn(FRAME))
    assert isinstance(of_polars.value, pl.DataFrame)
    np.testing.assert_array_equal(named.outputs, plain.outputs)
    np.testing.assert_array_equal(of_polars.outputs, plain.outputs)
    np.testing.assert_array_equal(np.asarray(named.value), plain.value)
    assert all("age" in one or "pay" in one for one in named.names)
    assert named.certificate.membership_success == plain.certificate.membership_success


@pytest.mark.parametrize("name", ["mean", "covariance", "quantiles", "histogram"])
def test_kernels_agree_on_tables(name: str) -> None:
    assert check_kernel(STATISTICS[name], None, FRAME) < 1e-9


def test_a_column_called_column_is_no_trouble() -> None:
    table = pl.DataFrame({"column": [1.0, 2.0, 4.0], "x": [3.0, 4.0, 4.0]})
    found = lc.stats.covariance(table)
    assert found.columns == ["column_", "column", "x"]
    assert found["column_"].to_list() == ["column", "x"]
