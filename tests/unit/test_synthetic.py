"""Synthetic rows follow the released mean and covariance, and nothing else of the data."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone

import leakcap as lc
from leakcap import datasets
from leakcap.errors import UselessReleaseWarning
from leakcap.synthetic import Gaussian

rng = np.random.default_rng(3)
MIX = np.array([[1.0, 0.8, 0.0], [0.0, 2.0, 0.5], [0.0, 0.0, 30.0]])
X = rng.normal(size=(300, 3)) @ MIX + [5.0, -1.0, 1000.0]
TABLE = pd.DataFrame(X, columns=["age", "hours", "pay"])
SMALL: dict[str, Any] = {"cap": lc.membership(0.8), "worlds": 32, "random_state": 0, "options": {"draws": 256}}


@pytest.fixture(scope="module")
def fitted() -> Gaussian:
    return Gaussian(**SMALL).fit(TABLE)


def far_off(rows: Any, mean: Any, covariance: Any) -> tuple[float, float]:
    """Standardised distance of sampled means and covariances from what they should be: the worst entries.

    Entries are about standard normal: with 9 of them, 5 is exceeded with a chance below 1e-5.
    """
    rows, n = np.asarray(rows), len(rows)
    spread = np.sqrt(np.diag(covariance))
    means = np.abs(rows.mean(axis=0) - mean) / spread * np.sqrt(n)
    error = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / n)
    return float(means.max()), float((np.abs(np.cov(rows.T) - covariance) / error).max())


def test_samples_have_the_released_means_and_covariances(fitted: Gaussian) -> None:
    rows = fitted.sample(20_000, random_state=1)
    assert max(far_off(rows, fitted.mean_, fitted.covariance_)) < 5
    # Twins: another mean and another covariance are told from the released ones.
    assert far_off(rows, fitted.mean_ + 0.1 * np.sqrt(np.diag(fitted.covariance_)), fitted.covariance_)[0] > 5
    assert far_off(rows, fitted.mean_, np.diag(np.diag(fitted.covariance_)))[1] > 5


def test_the_release_is_near_the_pool(fitted: Gaussian) -> None:
    """Noise, halving and all: within half a standard deviation here, and never the pool's own figures."""
    spread = X.std(axis=0)
    assert (np.abs(fitted.mean_ - X.mean(axis=0)) < 0.5 * spread).all()
    assert (np.abs(fitted.covariance_ - np.cov(X.T)) < 0.8 * np.outer(spread, spread)).all()
    assert not np.isclose(fitted.mean_, X.mean(axis=0)).any()


def test_the_matrix_has_no_negative_variances() -> None:
    """At a tight cap the noised matrix has some; the released one has not."""
    with pytest.warns(UselessReleaseWarning):
        tight = Gaussian(**(SMALL | {"cap": lc.membership(0.51)})).fit(X)
    values = np.linalg.eigvalsh(tight.covariance_ / np.outer(X.std(axis=0), X.std(axis=0)))
    assert values.min() > -1e-9
    assert (np.sqrt(np.diag(tight.covariance_)) >= 0).all()
    assert np.isfinite(tight.sample(10, random_state=0)).all()


def test_equal_noise_is_equal_harm_in_frobenius_norm() -> None:
    """What leaves is as long as the whole matrix: entries off the diagonal stand for two."""
    made, _ = Gaussian(**SMALL)._planned(X, None, None, None, lc.membership(0.7))
    spread = X.std(axis=0)
    whole = np.cov(X.T, bias=True) / np.outer(spread, spread)
    numbers = made.run.simulation.whole_pool
    assert np.linalg.norm(numbers[3:]) == pytest.approx(np.linalg.norm(whole))
    assert np.allclose(numbers[:3], X.mean(axis=0) / spread)


def test_tables_give_tables(fitted: Gaussian) -> None:
    rows = fitted.sample(4, random_state=0)
    assert isinstance(rows, pd.DataFrame) and list(rows.columns) == ["age", "hours", "pay"]
    assert isinstance(Gaussian(**SMALL).fit(X).sample(2), np.ndarray)
    other = Gaussian(**SMALL).fit(polars.DataFrame(X, schema=["age", "hours", "pay"])).sample(2, random_state=0)
    assert isinstance(other, polars.DataFrame) and other.columns == ["age", "hours", "pay"]


def test_samples_repeat_with_a_seed_and_differ_without(fitted: Gaussian) -> None:
    assert fitted.sample(3, random_state=4).equals(fitted.sample(3, random_state=4))
    assert not fitted.sample(3).equals(fitted.sample(3))


def test_declared_ranges_and_whole_numbers_hold() -> None:
    made = Gaussian(**SMALL, ranges={"age": (4.5, 6), "pay": (0, np.inf)}, integers=["hours"]).fit(TABLE)
    rows = made.sample(2_000, random_state=0)
    assert rows["age"].min() == 4.5 and rows["age"].max() == 6
    assert (rows["hours"] == rows["hours"].round()).all()
    by_number = Gaussian(**SMALL, ranges={0: (4.5, 6)}).fit(X).sample(2_000, random_state=0)
    assert by_number[:, 0].min() == 4.5


def test_units_are_people() -> None:
    rows = pd.concat([TABLE, TABLE], ignore_index=True).assign(person=np.tile(np.arange(300), 2))
    made = Gaussian(**SMALL).fit(rows, unit="person")
    assert made.certificate_.units == 300
    assert list(made.sample(1).columns) == ["age", "hours", "pay"]


def test_nothing_but_released_numbers_is_kept() -> None:
    """Two pools with the same (pool-public) standard deviations, one released value: the saved bytes are the same."""

    def saved(rows: np.ndarray, mean: float) -> bytes:
        made = Gaussian(**SMALL)
        _, mechanism = made._planned(rows, None, None, None, lc.membership(0.7))
        products = np.array([1.0, 0.1, 0.2, 1.1, 0.0, 0.9])
        made._publish(mechanism.build({"mean": np.array([0.1, 0.2, mean]), "products": products}))
        return pickle.dumps(made)

    assert saved(X, 0.3) == saved(-X, 0.3)
    assert saved(X, 0.3) != saved(X, 0.4)  # twin: a released number that differs is seen


def test_the_saved_estimator_has_no_plan(fitted: Gaussian) -> None:
    loaded = pickle.loads(pickle.dumps(fitted))
    assert loaded.sample(3, random_state=0).equals(fitted.sample(3, random_state=0))
    assert loaded.certificate_ == fitted.certificate_
    assert fitted.plan_.worlds.m == 32
    for other in (loaded, copy.deepcopy(fitted), clone(fitted)):
        with pytest.raises(AttributeError, match="no plan"):
            _ = other.plan_


def test_constant_columns_stay_constant_but_for_a_thousandth() -> None:
    """The matrix keeps an inverse, so no variance of it is 0."""
    rows = np.column_stack([X[:, 0], np.full(300, 7.0)])
    drawn = Gaussian(**SMALL).fit(rows).sample(50, random_state=0)
    assert np.allclose(drawn[:, 1], 7.0, atol=0.01)
    assert drawn[:, 0].std() > 0.5


def test_one_column_is_enough() -> None:
    made = Gaussian(**SMALL).fit(X[:, :1])
    assert made.covariance_.shape == (1, 1) and made.sample(5).shape == (5, 1)


@pytest.mark.parametrize(
    ("options", "rows", "words"),
    [
        ({}, TABLE.assign(name="Eve"), "name"),
        ({}, TABLE.assign(when=pd.Timestamp("2020-01-01")), "when"),
        ({}, np.array([["a", "b"], ["c", "d"]]), "numbers"),
        ({"ranges": {"wages": (0, 1)}}, TABLE, "no column"),
        ({"ranges": {"age": (2, 1)}}, TABLE, "low"),
        ({"ranges": {"age": 3}}, TABLE, "low"),
        ({"integers": [3]}, TABLE, "no column"),
        ({"cap": None}, TABLE, "cap="),
    ],
)
def test_bad_input_is_refused_before_anything_is_released(options: dict[str, Any], rows: Any, words: str) -> None:
    made = Gaussian(**(SMALL | options))
    with pytest.raises(lc.InputError, match=words) as caught:
        made.fit(rows)
    assert "Eve" not in str(caught.value)
    assert not hasattr(made, "estimator_")


@pytest.mark.parametrize("rows", [TABLE.assign(age=np.nan), np.full((10, 2), np.inf)])
def test_missing_and_infinite_values_are_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        Gaussian(**SMALL).fit(rows)


def test_samples_need_a_fit_and_a_number(fitted: Gaussian) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        Gaussian(**SMALL).sample(3)
    with pytest.raises(lc.InputError):
        fitted.sample(0)


def test_integer_and_boolean_columns_are_numbers() -> None:
    rows = TABLE.assign(age=TABLE["age"].round().astype(int), member=TABLE["pay"] > 1000)
    assert Gaussian(**SMALL).fit(rows).sample(3).shape == (3, 4)


@pytest.mark.slow
def test_adult_correlations_survive() -> None:
    pytest.importorskip("pandas")
    try:
        numbers = datasets.adult().select_dtypes("number").drop(columns="fnlwgt")
    except lc.InputError:
        pytest.skip("needs LEAKCAP_DATA")
    made = Gaussian(cap=lc.membership(0.55), worlds=256, random_state=0).fit(numbers)
    apart = np.abs(made.sample(50_000, random_state=0).corr() - numbers.corr()).to_numpy()
    assert apart.max() < 0.1
