"""`stats.gram` as users meet it: forms, refusals, bounds by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(200, 3)), RNG.normal(size=200)
POOL = lc.pool_membership(0.8)


def test_values_are_those_of_numpy() -> None:
    np.testing.assert_allclose(lc.stats.gram(X), X.T @ X)
    both = lc.stats.gram(X, Y)
    np.testing.assert_allclose(both["xx"], X.T @ X)
    np.testing.assert_allclose(both["xy"], X.T @ Y)
    np.testing.assert_allclose(lc.stats.gram(X, np.c_[Y, -Y])["xy"], X.T @ np.c_[Y, -Y])
    assert lc.stats.gram(Y).shape == ()
    assert lc.stats.gram(Y, Y)["xy"] == pytest.approx(Y @ Y)
    assert not lc.stats.gram(np.empty((0, 2))).any()


@pytest.mark.parametrize("target", [Y, np.c_[Y, -Y], None])
@pytest.mark.parametrize(
    "options",
    [{"cap": POOL, "bounds": (-4, 5)}, {"cap": 0.8, "design": "bits"}, {"cap": 0.8, "worlds": 32, "draws": 512}],
)
def test_releases_have_the_form_and_the_scale_of_the_whole_pool(target: Any, options: dict[str, Any]) -> None:
    data = (X,) if target is None else (X, target)
    plan, whole = lc.plan(lc.stats.gram, *data, seed=1, **options), lc.stats.gram(*data)
    found = plan.release().value
    parts = [(found, whole)] if target is None else [(found[name], whole[name]) for name in ("xx", "xy")]
    for mine, exact in parts:
        assert mine.shape == exact.shape
    np.testing.assert_allclose(found if target is None else found["xx"], (found if target is None else found["xx"]).T)
    assert plan.summary().answer == pytest.approx(np.concatenate([one[1].ravel() for one in parts]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"cap": POOL, "bounds": (-4, 5)}, {"cap": 0.8, "design": "bits"}, {"cap": 0.8, "worlds": 32, "draws": 512}],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_keep_the_names_of_their_columns(library: str, options: dict[str, Any]) -> None:
    own = pytest.importorskip(library)
    table = own.DataFrame({name: X[:, place] for place, name in enumerate("abc")})
    targets = own.DataFrame({"cost": Y, "gain": -Y})
    square = lc.stats.covariance(table)
    for data in ((table,), (table, Y), (table, targets), (table, targets["cost"])):
        for found in (lc.stats.gram(*data), lc.plan(lc.stats.gram, *data, seed=1, **options).release().value):
            xx = found if len(data) == 1 else found["xx"]
            assert type(xx) is type(square) and list(xx.columns) == list(square.columns)
            assert library == "polars" or list(xx.index) == list("abc")
            if len(data) == 1:
                continue
            if data[1] is targets:
                names = list(found["xy"].columns)
                assert names == ["cost", "gain"] if library == "pandas" else names == ["column", "cost", "gain"]
            else:  # as a mean
                assert list(found["xy"].keys() if library == "pandas" else found["xy"].columns) == list("abc")
    xy = np.asarray(lc.stats.gram(table, targets["cost"])["xy"]).ravel()
    np.testing.assert_allclose(xy, X.T @ Y)
    assert isinstance(lc.stats.gram(X, targets)["xx"], np.ndarray)


def test_bounds_by_name_are_those_of_columns_and_target() -> None:
    table = pd.DataFrame(X, columns=list("abc"))
    ends: dict[str, Any] = {"a": (-4, 4), "b": (-5, 5), "c": (-4, 5)}
    for target, name in ((Y, "y"), (pd.Series(Y, name="cost"), "cost")):
        plan = lc.plan(lc.stats.gram, table, target, cap=POOL, bounds=ends | {name: (-6, 6)}, seed=1)
        assert plan.certificate.membership_success <= 0.8
    with pytest.raises(InputError, match="no bounds for column 'y'"):
        lc.plan(lc.stats.gram, table, Y, cap=POOL, bounds=ends, seed=1)
    with pytest.raises(InputError, match="needs bounds that do not come from the data"):
        lc.plan(lc.stats.gram, table, Y, cap=POOL, seed=1)


def test_input_that_cannot_be_used_is_refused() -> None:
    gap = X.copy()
    gap[0, 0] = np.nan
    for options in ({"cap": POOL, "bounds": (-4, 5)}, {"cap": 0.8, "design": "bits"}):
        with pytest.raises(InputError, match="missing or infinite"):
            lc.plan(lc.stats.gram, gap, Y, seed=1, **options)
        with pytest.raises(InputError, match="X and y"):
            lc.plan(lc.stats.gram, X, Y, Y, seed=1, **options)
    with pytest.raises(InputError, match="equally many rows"):
        lc.stats.gram(X, Y[1:])
    with pytest.raises(InputError, match="numbers"):
        lc.stats.gram([["a"]])


def test_worlds_at_once_are_worlds_one_by_one() -> None:
    fast = lc.plan(lc.stats.gram, X, Y, cap=0.8, worlds=32, draws=512, seed=1).run.simulation.table
    slow = lc.plan(lambda rows, aim: dict(lc.stats.gram(rows, aim)), X, Y, cap=0.8, worlds=32, draws=512, seed=1)
    np.testing.assert_allclose(fast, 2 * slow.run.simulation.table, rtol=1e-9)  # a total is of the whole pool
