"""Quantiles on a declared grid as users meet them: forms, refusals, what is said to the custodian."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import BoundsWarning, InputError
from leakcap.kernels.contributions import is_a_sum

ROWS = np.random.default_rng(3).normal(50, 15, size=(300, 2)).clip(0, 100)
TABLE = pd.DataFrame(ROWS, columns=["age", "stay"])
POOL = lc.pool_membership(0.8)
GRID = np.arange(0.0, 101, 4)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ([0, 10, 5], "each above the one before"),
        ([0, 10, 10], "each above the one before"),
        ([0, np.nan, 10], "finite"),
        ([0, np.inf], "finite"),
        ([5], "at least two"),
        ([], "at least two"),
        (7, "at least two"),
        ("ages", "at least two"),
        ([[0, 1], [0, 1], [0, 1]], "3 grids for 2 columns"),
        ({"age": [0, 100]}, "no grid for column 'stay'"),
        ({"age": [0, 100], "stay": [0, 9], "cost": [0, 1]}, "not asked about: 'cost'"),
    ],
)
def test_grids_that_cannot_be_used_are_refused(grid: Any, words: str) -> None:
    fn = partial(lc.stats.quantile, grid=grid)
    with pytest.raises(InputError, match=words):
        fn(TABLE)
    for options in ({"cap": POOL}, {"cap": 0.8, "design": "bits"}):
        with pytest.raises(InputError, match=words):
            lc.plan(fn, TABLE, seed=1, **options)


def test_each_column_may_have_a_grid_of_its_own() -> None:
    named = lc.stats.median(TABLE, grid={"stay": [0, 50, 100], "age": GRID})
    assert named.to_numpy() == pytest.approx(lc.stats.median(ROWS, grid=[GRID, [0, 50, 100]]))
    assert named["age"] == pytest.approx(np.median(ROWS[:, 0]), abs=4)
    with pytest.raises(InputError, match="columns have names"):
        lc.stats.median(ROWS, grid={"age": GRID})


@pytest.mark.parametrize("options", [{"cap": POOL}, {"cap": 0.8, "design": "bits"}])
@pytest.mark.parametrize("fn", [lc.stats.median, partial(lc.stats.quantile, q=0.25)])
def test_without_a_grid_sums_over_people_ask_for_one(fn: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"grid=range\(0, 101, 5\)"):
        lc.plan(fn, ROWS, seed=1, **options)


def test_a_grid_of_the_data_is_warned_of_under_a_pool_cap() -> None:
    own = np.quantile(ROWS[:, 0], np.linspace(0, 1, 9))
    with pytest.warns(BoundsWarning, match="known without looking"):
        lc.plan(partial(lc.stats.median, grid=own), ROWS[:, 0], cap=POOL, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lc.plan(partial(lc.stats.median, grid=GRID), ROWS[:, 0], cap=POOL, seed=1)
        lc.plan(partial(lc.stats.median, grid=own), ROWS[:, 0], cap=0.8, design="bits", seed=1)


@pytest.mark.parametrize("options", [{"cap": POOL}, {"cap": 0.8, "design": "bits"}])
def test_values_beyond_the_grid_count_in_its_end_cells_and_are_counted_for_the_custodian(options: Any) -> None:
    rows = np.append(ROWS[:, 0], [-5.0, 300.0, 1e9])
    fn = partial(lc.stats.quantile, q=[0.0, 0.5, 1.0], grid=GRID)
    assert fn(rows)[[0, 2]] == pytest.approx([0, 100])
    plan = lc.plan(fn, rows, seed=1, **options)
    assert "3 entries lay outside" in str(plan.summary())
    assert "outside" not in plan.certificate.to_json()


def test_released_quantiles_rise_with_their_levels_and_stay_on_the_grid() -> None:
    fn = partial(lc.stats.quantile, q=np.linspace(0, 1, 21), grid=GRID)
    for options in ({"cap": lc.pool_membership(0.55)}, {"cap": 0.55, "design": "bits"}):
        for seed in range(4):
            found = lc.plan(fn, ROWS[:40, 0], seed=seed, **options).release().value
            assert (np.diff(found) >= 0).all()
            assert ((found >= 0) & (found <= 100)).all()


def test_nobody_at_all_and_missing_values() -> None:
    assert lc.stats.median(np.empty((0, 2)), grid=GRID) == pytest.approx([50, 50])
    assert lc.stats.quantile(np.empty(0), [0.1, 0.9], grid=GRID) == pytest.approx([50, 50])
    gap = ROWS.copy()
    gap[3, 1] = np.nan
    found = lc.stats.quantile(gap, [0.1, 0.9], grid=GRID)
    assert np.isfinite(found[:, 0]).all()
    assert np.isnan(found[:, 1]).all()


def test_worlds_at_once_are_worlds_one_by_one() -> None:
    fn = partial(lc.stats.quantile, q=(0.2, 0.8), grid=[GRID, [0, 30, 60, 100]])
    fast = lc.plan(fn, ROWS, cap=0.8, worlds=32, seed=1)
    slow = lc.plan(lambda rows: 1.0 * fn(rows), ROWS, cap=0.8, worlds=32, seed=1)
    np.testing.assert_allclose(fast.run.simulation.table, slow.run.simulation.table, rtol=1e-9)


@pytest.mark.usefixtures("few_worlds")
def test_by_default_quantiles_are_sums_over_people_where_a_grid_makes_them_so() -> None:
    assert lc.plan(partial(lc.stats.median, grid=GRID), ROWS, cap=0.8, seed=1).certificate.whoever_is_known
    for fn in (lc.stats.median, partial(lc.stats.quantile, q=0.25), partial(lc.stats.quantile, grid=None)):
        assert not is_a_sum(fn)  # which is what the default asks
