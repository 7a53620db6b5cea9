"""Plain statistics: right, of one shape whatever the world holds, and finite."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import leakcap as lc
from leakcap import stats

rng = np.random.default_rng(5)
X = rng.normal(size=(50, 3))
EDGES = (-1.0, 0.0, 1.0)

STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": stats.mean,
    "sum": stats.sum,
    "variance": stats.variance,
    "median": stats.median,
    "a quantile": partial(stats.quantile, q=0.25),
    "quantiles": partial(stats.quantile, q=(0.1, 0.5, 0.9)),
    "covariance": stats.covariance,
    "histogram": partial(stats.histogram, edges=EDGES),
    "categories": partial(stats.categories, levels=(0.0, 1.0)),
}
finite = arrays(np.float64, st.tuples(st.integers(0, 8), st.integers(1, 3)), elements=st.floats(-1e6, 1e6))


def test_the_public_names_are_all_of_them() -> None:
    assert stats.__all__ == sorted(stats.__all__)
    assert lc.stats is stats


def test_values_agree_with_numpy_and_pandas() -> None:
    table = pd.DataFrame(X)
    np.testing.assert_allclose(stats.mean(X), table.mean())
    np.testing.assert_allclose(stats.median(X), table.median())
    np.testing.assert_allclose(stats.sum(X), table.sum())
    np.testing.assert_allclose(stats.variance(X), table.var())
    np.testing.assert_allclose(stats.quantile(X, (0.1, 0.9)), table.quantile([0.1, 0.9]))
    np.testing.assert_allclose(stats.covariance(X), table.cov())
    inside = np.clip(X, EDGES[0], EDGES[-1])  # what lies outside counts in the outer bins
    counts = [np.histogram(column, bins=EDGES)[0] for column in inside.T]
    np.testing.assert_allclose(stats.histogram(X, EDGES), np.array(counts) / len(X))
    letters = pd.Series(rng.choice(list("abc"), size=40))
    np.testing.assert_allclose(
        stats.categories(letters, list("cab")), letters.value_counts(normalize=True)[list("cab")]
    )


@pytest.mark.parametrize("name", STATISTICS)
@given(rows=finite)
def test_the_shape_never_depends_on_the_rows_and_numbers_are_finite(name: str, rows: np.ndarray) -> None:
    found = STATISTICS[name](rows)
    assert found.shape == STATISTICS[name](np.ones((5, rows.shape[1]))).shape
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", STATISTICS)
def test_a_world_without_rows_gets_the_fixed_value_zero(name: str) -> None:
    assert not STATISTICS[name](np.empty((0, 2))).any()
    assert not STATISTICS[name](np.empty(0)).any()


@pytest.mark.parametrize("name", STATISTICS)
def test_one_column_is_the_first_of_several_without_its_axis(name: str) -> None:
    alone, together = STATISTICS[name](X[:, 0]), STATISTICS[name](X[:, :1])
    assert alone.ndim < together.ndim
    np.testing.assert_allclose(alone.ravel(), together.ravel())


@pytest.mark.parametrize("name", STATISTICS)
def test_tables_arrays_and_lists_give_the_same(name: str) -> None:
    whole = rng.integers(0, 3, size=(9, 2))
    expected = STATISTICS[name](whole.astype(float))
    for rows in (
        whole,
        whole.tolist(),
        pd.DataFrame(whole),
        pd.DataFrame(whole).astype("Int64"),
        np.asfortranarray(whole),
    ):
        np.testing.assert_allclose(STATISTICS[name](rows), expected)


@pytest.mark.parametrize("name", STATISTICS)
def test_missing_values_are_not_skipped_in_silence(name: str) -> None:
    gap = np.where(np.arange(50)[:, None] == 7, np.nan, X)
    with np.errstate(invalid="ignore"):
        assert np.isnan(STATISTICS[name](gap)).any()
    with pytest.raises(lc.OutputError, match="NaN"):
        lc.plan(STATISTICS[name], gap, cap=lc.mutual_information(0.3), worlds=16, draws=256)


@given(rows=arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e300, 1e300)))
def test_no_row_is_lost_from_a_histogram(rows: np.ndarray) -> None:
    assert stats.histogram(rows, EDGES).sum() == pytest.approx(1)


def test_bins_hold_their_lower_edge_and_the_outer_ones_everything_beyond() -> None:
    assert stats.histogram([0, 18, 65], [0, 18, 65]).tolist() == [1 / 3, 2 / 3]
    assert stats.histogram([-5, 17.9, 18, 1e9], [0, 18, 65]).tolist() == [0.5, 0.5]


def test_rows_at_no_level_count_in_none() -> None:
    assert stats.categories([0, 1, 2, 2], levels=[2, 0]).tolist() == [0.5, 0.25]
    assert stats.categories(["a", "b", None], levels=["a"]).tolist() == [1 / 3]
    assert stats.categories(pd.Series(["a", pd.NA], dtype="string"), levels=["a"]).tolist() == [0.5]
    assert stats.categories(np.array([["a", "b"], ["b", "b"]]), ["a", "b"]).tolist() == [[0.5, 0.5], [0, 1]]


def test_shares_and_covariances_of_half_the_rows_are_those_of_all_on_average() -> None:
    """Counts, and variances divided by the number of rows, would shrink with the world."""
    halves = [rng.permutation(50)[:25] for _ in range(4000)]
    for name in ("histogram", "covariance", "mean"):
        mean = np.mean([STATISTICS[name](X[half]) for half in halves], axis=0)
        np.testing.assert_allclose(mean, STATISTICS[name](X), atol=0.02)  # six standard errors


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_travel_to_worker_processes(name: str) -> None:
    again = pickle.loads(pickle.dumps(STATISTICS[name]))
    np.testing.assert_array_equal(again(X), STATISTICS[name](X))


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "text": (lambda: stats.mean(["7771", "SECRET"]), "numbers"),
    "text in a table": (lambda: stats.mean(pd.DataFrame({"a": ["SECRET"]})), "numbers"),
    "dates": (lambda: stats.median(pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])})), "dates"),
    "dates in an array": (lambda: stats.mean(np.array(["2020"], dtype="datetime64[Y]")), "dates"),
    "complex numbers": (lambda: stats.mean([1j]), "numbers"),
    "a single number": (lambda: stats.mean(5.0), "takes the rows first"),
    "three dimensions": (lambda: stats.mean(np.ones((2, 2, 2))), "dimension"),
    "a ragged list": (lambda: stats.mean([[1], [2, 3]]), "dimension"),
    "a quantile above 1": (lambda: stats.quantile(X, 1.5), "from 0 to 1"),
    "no quantile": (lambda: stats.quantile(X, []), "from 0 to 1"),
    "one edge": (lambda: stats.histogram(X, [1.0]), "at least two"),
    "falling edges": (lambda: stats.histogram(X, [1.0, 0.0]), "above the one before"),
    "an edge that is no number": (lambda: stats.histogram(X, [0.0, np.nan]), "above the one before"),
    "edges of text": (lambda: stats.histogram(X, ["a", "b"]), "numbers"),  # type: ignore[list-item]
    "no levels": (lambda: stats.categories(X, []), "at least one"),
    "levels twice": (lambda: stats.categories(X, [1, 1]), "different"),
    "text levels of numbers": (lambda: stats.categories(X, ["1"]), "numbers"),
    "levels of a cube": (lambda: stats.categories(np.ones((2, 2, 2)), [1]), "dimension"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_without_quoting_it(name: str) -> None:
    call, words = BAD[name]
    with pytest.raises(lc.InputError, match=words) as caught:
        call()
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or "SECRET" not in str(caught.value.__context__)
