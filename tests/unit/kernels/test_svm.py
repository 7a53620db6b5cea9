"""Support vector machines in all worlds at once are those of a loop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import LinearSVC

import leakcap as lc
from leakcap import datasets
from leakcap.kernels import reference
from leakcap.kernels.linear import linear_svm, svm
from leakcap.worlds import draw_worlds
from tests.unit.kernels.pools import exactly, some_data, standard

LOADERS = {"wine": load_wine, "iris": load_iris, "cancer": load_breast_cancer}


def plain(features: np.ndarray, labels: np.ndarray, C: float, **options: Any) -> np.ndarray:
    """A tightly converged fit of scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = LinearSVC(C=C, dual=False, tol=1e-12, max_iter=1_000_000, **options).fit(features, labels)
    return np.column_stack([fit.coef_, fit.intercept_])


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


@pytest.mark.parametrize("C", [1.0, 0.005])
@pytest.mark.parametrize("name", LOADERS)
def test_weights_equal_a_plain_fit_in_every_world(name: str, C: float) -> None:
    features, labels = LOADERS[name](return_X_y=True)
    features = standard(features)
    worlds = draw_worlds(len(features), 12, np.random.default_rng(5))
    found = linear_svm(features, labels, worlds, C=C)
    for w in range(worlds.m):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], labels[rows], C)) < 1e-5


@given(
    st.integers(8, 60),
    st.integers(1, 4),
    st.integers(2, 4),
    st.sampled_from([1 / 2, 1 / 3, 3 / 4]),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_weights_equal_the_reference(n: int, d: int, classes: int, rate: float, C: float, seed: int) -> None:
    features, labels = some_data(n, d, classes, seed)
    worlds = draw_worlds(n, 12, np.random.default_rng(seed), rate)
    expected = reference.linear_svm(features, labels, worlds, C)
    assert difference(linear_svm(features, labels, worlds, C=C), expected) < 1e-8


@pytest.mark.parametrize("C", [1.0, 0.005])
def test_weights_equal_a_plain_fit_on_beans(C: float) -> None:
    try:
        table = datasets.dry_bean()
    except lc.LeakcapError:
        pytest.skip("no data folder")
    features, labels = standard(table.drop(columns="Class").to_numpy(dtype=float)), table["Class"].to_numpy(dtype=str)
    worlds = draw_worlds(len(features), 32, np.random.default_rng(5))
    found = linear_svm(features, labels, worlds, C=C)
    for w in (0, 21):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], labels[rows], C)) < 1e-5


def test_two_classes_have_one_row_that_speaks_for_the_second() -> None:
    features, labels = some_data(80, 3, 2, 1)
    worlds = draw_worlds(80, 6, np.random.default_rng(0))
    found = linear_svm(features, np.array(["no", "yes"])[labels], worlds)
    assert found.shape == (6, 1, 4)
    for w in range(6):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], labels[rows], 1.0)) < 1e-6


def test_intercepts_are_scaled_as_in_a_plain_fit() -> None:
    features, labels = some_data(90, 2, 3, 2)
    worlds = draw_worlds(90, 4, np.random.default_rng(0))
    found = linear_svm(features, labels, worlds, intercept_scaling=7.0)
    for w in range(4):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], labels[rows], 1.0, intercept_scaling=7.0)) < 1e-6


def test_a_class_without_rows_has_all_its_targets_at_minus_one() -> None:
    features, labels = some_data(40, 2, 3, 3)
    masks = np.array([labels != 2, labels == 2, np.ones(40), labels == 0])
    found = linear_svm(features, labels, exactly(masks))
    assert difference(found, reference.linear_svm(features, labels, exactly(masks))) < 1e-9
    beyond = linear_svm(features, labels, exactly(masks), classes=[0, 1, 2, 3])
    assert np.allclose(beyond[:, :3], found)
    assert np.all(features @ beyond[2, 3, :-1] + beyond[2, 3, -1] < 0), "nobody belongs to a class that nobody has"


def test_a_world_without_rows_gets_zeros_and_one_row_is_enough() -> None:
    features, labels = some_data(21, 3, 3, 4)
    masks = np.zeros((3, 21), dtype=bool)
    masks[1, 13] = masks[2, 20] = True
    found = linear_svm(features, labels, exactly(masks))
    assert np.all(found[0] == 0)
    assert difference(found, reference.linear_svm(features, labels, exactly(masks))) < 1e-10
    assert np.all(linear_svm(features, labels, exactly(masks[:1])) == 0)


def test_five_rows_and_one_column() -> None:
    features, labels = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1, 0])
    masks = np.random.default_rng(0).random((16, 5)) < 0.5
    worlds = exactly(np.vstack([masks, ~masks]), paired=True)
    found, expected = linear_svm(features, labels, worlds, C=10), reference.linear_svm(features, labels, worlds, 10)
    assert difference(found, expected) < 1e-9


def test_constant_and_repeated_columns_are_harmless() -> None:
    features, labels = some_data(60, 3, 3, 5)
    awkward = np.column_stack([features, np.full(60, 0.1), features[:, 0], np.zeros(60)])
    worlds = draw_worlds(60, 8, np.random.default_rng(0))
    found = linear_svm(awkward, labels, worlds)
    assert difference(found, reference.linear_svm(awkward, labels, worlds)) < 1e-9
    assert np.allclose(found[:, :, 0], found[:, :, 4]), "what is the same has the same weight"
    assert np.allclose(found[:, :, 5], 0)


def test_columns_of_very_different_size_lose_no_digits() -> None:
    features, labels = some_data(80, 3, 3, 6)
    uneven = features * [1.0, 1e5, 1e-4] + [0.0, 1e6, 0.0]
    worlds = draw_worlds(80, 8, np.random.default_rng(0))
    found = linear_svm(uneven, labels, worlds).astype(np.longdouble)
    table = np.column_stack([uneven, np.ones(80)]).astype(np.longdouble)  # of more digits than the fit's
    for w in range(8):
        for k in range(3):
            signed = table[worlds.mask(w)] * np.where(labels[worlds.mask(w)] == k, 1, -1)[:, None]
            slope = found[w, k] - 2 * signed.T @ np.maximum(0, 1 - signed @ found[w, k])
            assert np.all(np.abs(slope) <= 1e-10 * np.abs(signed).sum(axis=0)), "the gradient vanishes"


def test_worlds_that_do_not_settle_are_finished_alone_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = some_data(150, 4, 3, 7)
    worlds = draw_worlds(150, 8, np.random.default_rng(0))
    found = linear_svm(features, labels, worlds, C=3.0)
    monkeypatch.setattr(svm, "STEPS", 1)
    assert difference(linear_svm(features, labels, worlds, C=3.0), found) < 1e-9


def test_results_do_not_depend_on_the_run_or_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = some_data(300, 4, 3, 8)
    worlds = draw_worlds(300, 300, np.random.default_rng(0))
    found = linear_svm(features, labels, worlds)
    assert np.array_equal(linear_svm(features, labels, worlds), found)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(3)))
    assert np.allclose(linear_svm(features, labels, worlds), found, rtol=1e-12, atol=1e-14)


def test_a_planted_fault_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: one weight of one world off by a part in ten thousand."""
    features, labels = some_data(100, 3, 3, 9)
    worlds = draw_worlds(100, 8, np.random.default_rng(0))
    honest = svm._steps

    def faulty(*arguments: Any) -> Any:
        found = honest(*arguments)
        found[3, 1] += 1e-4 * np.abs(found).max()
        return found

    monkeypatch.setattr(svm, "_steps", faulty)
    with pytest.raises(lc.NumericalError, match="did not converge"):
        linear_svm(features, labels, worlds)


def test_arguments_that_make_no_sense_are_refused() -> None:
    features, labels = some_data(20, 2, 3, 10)
    worlds = draw_worlds(20, 4, np.random.default_rng(0))
    with pytest.raises(lc.InputError, match="C must be above"):
        linear_svm(features, labels, worlds, C=0)
    with pytest.raises(lc.InputError, match="finite"):
        linear_svm(np.where(features > 0, np.nan, features), labels, worlds)
    with pytest.raises(lc.InputError, match="one for each"):
        linear_svm(features, labels[:-1], worlds)
    with pytest.raises(lc.InputError, match="a row for each"):
        linear_svm(features[:-1], labels, worlds)
    with pytest.raises(lc.InputError, match="not among"):
        linear_svm(features, labels, worlds, classes=[0, 1])
    with pytest.raises(lc.InputError, match="differ"):
        linear_svm(features, labels, worlds, classes=[0, 1, 2, 2])
    with pytest.raises(lc.InputError, match="two classes"):
        linear_svm(features, np.zeros(20), worlds)


def test_few_worlds_at_a_time_and_matrix_products_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = some_data(120, 5, 3, seed=4)
    worlds = draw_worlds(120, 12, np.random.default_rng(1))
    whole = linear_svm(features, labels, worlds)
    assert np.allclose(linear_svm(features, labels, worlds, memory=6000), whole, rtol=0, atol=1e-12)
    monkeypatch.setattr("leakcap.kernels.linear.svm.products_are_cheaper", lambda *_: True)
    assert np.allclose(linear_svm(features, labels, worlds), whole, rtol=0, atol=1e-9)
