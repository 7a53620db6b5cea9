"""Logistic regressions in all worlds at once are those of a loop."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap import datasets
from leakcap.kernels import reference
from leakcap.kernels.linear import ABSENT, logistic, newton
from leakcap.kernels.linear import softmax as module
from leakcap.worlds import draw_worlds
from tests.unit.kernels.pools import exactly, some_data, standard

LOADERS = {"wine": load_wine, "iris": load_iris, "cancer": load_breast_cancer}


def plain(features: np.ndarray, labels: np.ndarray, C: float, solver: str = "newton-cg") -> np.ndarray:
    """A tightly converged fit of scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = LogisticRegression(C=C, tol=1e-10, max_iter=100_000, solver=solver).fit(features, labels)
    return np.column_stack([fit.coef_, fit.intercept_])


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300))


@pytest.mark.parametrize("C", [1.0, 0.02])
@pytest.mark.parametrize("name", LOADERS)
def test_weights_equal_a_plain_fit_in_every_world(name: str, C: float) -> None:
    features, labels = LOADERS[name](return_X_y=True)
    features = standard(features)
    worlds = draw_worlds(len(features), 8, np.random.default_rng(5))
    found = logistic(features, labels, worlds, C=C)
    for w in range(worlds.m):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], labels[rows], C)) < 1e-6


def test_weights_equal_those_of_the_default_solver_as_far_as_it_goes() -> None:
    features, labels = load_wine(return_X_y=True)
    features = standard(features)
    worlds = draw_worlds(len(features), 4, np.random.default_rng(5))
    found = logistic(features, labels, worlds)
    for w in range(worlds.m):
        rows = worlds.mask(w)
        # It stops where the loss, not its slope, has no digits left.
        assert difference(found[w], plain(features[rows], labels[rows], 1.0, "lbfgs")) < 1e-4


@given(
    st.integers(8, 60),
    st.integers(1, 4),
    st.integers(2, 4),
    st.sampled_from([1 / 2, 1 / 3, 3 / 4]),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    st.integers(0, 2**31),
)
@settings(max_examples=25)
def test_weights_equal_the_reference(n: int, d: int, classes: int, rate: float, C: float, seed: int) -> None:
    features, labels = some_data(n, d, classes, seed)
    worlds = draw_worlds(n, 12, np.random.default_rng(seed), rate)
    found, expected = logistic(features, labels, worlds, C=C), reference.logistic(features, labels, worlds, C)
    for w in range(worlds.m):
        assert difference(found[w], expected[w]) < 1e-6


def test_weights_equal_a_plain_fit_on_beans() -> None:
    try:
        table = datasets.dry_bean()
    except lc.LeakcapError:
        pytest.skip("no data folder")
    features, labels = standard(table.drop(columns="Class").to_numpy(dtype=float)), table["Class"].to_numpy(dtype=str)
    worlds = draw_worlds(len(features), 16, np.random.default_rng(5))
    found = logistic(features, labels, worlds)
    rows = worlds.mask(11)
    assert difference(found[11], plain(features[rows], labels[rows], 1.0)) < 1e-7


def test_intercepts_have_mean_zero_and_two_classes_one_row() -> None:
    features, labels = some_data(120, 3, 3, 1)
    worlds = draw_worlds(120, 6, np.random.default_rng(0))
    assert np.allclose(logistic(features, labels, worlds).sum(axis=1), 0)
    names = np.array(["no", "yes"])[(labels > 0).astype(int)]
    found = logistic(features, names, worlds)
    assert found.shape == (6, 1, 4)
    for w in range(6):
        rows = worlds.mask(w)
        assert difference(found[w], plain(features[rows], names[rows], 1.0)) < 1e-7


def test_a_class_without_rows_is_out_of_reach_and_leaves_the_others_alone() -> None:
    features, labels = some_data(60, 2, 4, 3)
    masks = np.array([labels != 3, np.ones(60), labels < 2, labels == 2, np.zeros(60)])
    found = logistic(features, labels, exactly(masks))
    assert difference(found[0, :3], plain(features[labels != 3], labels[labels != 3], 1.0)) < 1e-7
    assert np.array_equal(found[0, 3], [0, 0, ABSENT])
    for w in range(4):
        assert difference(found[w], reference.logistic(features, labels, exactly(masks))[w]) < 1e-7
    assert np.array_equal(found[3], [[0, 0, ABSENT]] * 2 + [[0, 0, 0]] + [[0, 0, ABSENT]]), "one class only"
    assert np.array_equal(found[4], np.zeros((4, 3))), "no rows"
    beyond = logistic(features, labels, exactly(masks[:2]), classes=range(5))
    assert np.allclose(beyond[:, :4], found[:2]) and np.all(beyond[:, 4] == [0, 0, ABSENT])


def test_one_of_two_classes_without_rows() -> None:
    features, labels = some_data(20, 2, 2, 4)
    found = logistic(features, labels, exactly([labels == 0, labels == 1, np.zeros(20), np.ones(20)]))
    assert np.array_equal(found[:3, 0], [[0, 0, ABSENT], [0, 0, -ABSENT], [0, 0, 0]])


def test_rare_classes_make_several_groups_of_worlds_each_with_its_own_pool() -> None:
    features, labels = some_data(80, 2, 3, 5)
    labels[labels == 2] = 0
    labels[[3, 40]] = 2
    worlds = draw_worlds(80, 40, np.random.default_rng(1))
    found, expected = logistic(features, labels, worlds), reference.logistic(features, labels, worlds)
    assert len(np.unique(found[:, 2, -1] == ABSENT)) == 2, "some worlds have the rare class and some do not"
    assert max(difference(found[w], expected[w]) for w in range(40)) < 1e-7


def test_one_row_and_five_rows_of_one_column() -> None:
    features, labels = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1, 2])
    masks = np.random.default_rng(0).random((16, 5)) < 0.5
    worlds = exactly(np.vstack([masks, ~masks]), paired=True)
    found, expected = logistic(features, labels, worlds, C=10), reference.logistic(features, labels, worlds, 10)
    assert max(difference(found[w], expected[w]) for w in range(32) if worlds.mask(w).any()) < 1e-7


def test_constant_and_repeated_columns_are_harmless() -> None:
    features, labels = some_data(60, 3, 3, 5)
    awkward = np.column_stack([features, np.full(60, 0.1), features[:, 0], np.zeros(60)])
    worlds = draw_worlds(60, 8, np.random.default_rng(0))
    found = logistic(awkward, labels, worlds)
    assert difference(found, reference.logistic(awkward, labels, worlds)) < 1e-7
    assert np.allclose(found[:, :, [3, 5]], 0) and np.allclose(found[:, :, 0], found[:, :, 4])


def test_columns_of_very_different_size_lose_no_digits() -> None:
    features, labels = some_data(80, 3, 3, 6)
    uneven = features * [1.0, 1e5, 1e-4] + [0.0, 1e6, 0.0]
    worlds = draw_worlds(80, 8, np.random.default_rng(0))
    found = logistic(uneven, labels, worlds).astype(np.longdouble)
    table = np.column_stack([uneven, np.ones(80)]).astype(np.longdouble)  # of more digits than the fit's
    for w in range(8):
        rows, own = table[worlds.mask(w)], np.eye(3)[labels[worlds.mask(w)]]
        share = np.exp(rows @ found[w].T)
        slope = ((share / share.sum(axis=1, keepdims=True)) - own).T @ rows + found[w] * [1, 1, 1, 0]
        assert np.all(np.abs(slope) <= 1e-7 * np.abs(rows).sum(axis=0)), "the gradient vanishes"


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_separable_classes_are_fitted_by_the_penalty_alone(C: float) -> None:
    features = np.concatenate([np.linspace(-3, -1, 20), np.linspace(1, 3, 20)])[:, None] * [1.0, 0.3]
    labels = np.repeat([0, 1], 20)
    worlds = draw_worlds(40, 8, np.random.default_rng(0))
    assert difference(logistic(features, labels, worlds, C=C), reference.logistic(features, labels, worlds, C)) < 1e-6


def test_gradients_that_cannot_be_had_are_nan_and_nothing_else() -> None:
    features = np.concatenate([np.linspace(-3, -1, 20), np.linspace(1, 3, 20)])[:, None]
    columns = np.vstack([features.T, np.ones(40)])
    worlds = draw_worlds(40, 4, np.random.default_rng(0))
    weights = np.zeros((4, 1, 2))
    weights[2, 0, 0] = 1e5
    weights[3, 0, 1] = np.inf
    slopes = newton.gradients(columns, np.repeat([0, 1], 20), worlds, weights, "softmax")
    assert list(np.isnan(slopes).any(axis=(1, 2))) == [False, False, True, True]


def test_worlds_that_do_not_arrive_are_finished_alone_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = some_data(150, 4, 3, 7)
    worlds = draw_worlds(150, 8, np.random.default_rng(0))
    found = logistic(features, labels, worlds, C=3.0)
    monkeypatch.setattr(module, "STEPS", 2)
    assert difference(logistic(features, labels, worlds, C=3.0), found) < 1e-7
    monkeypatch.setattr(module, "ALONE", 2)
    with pytest.raises(lc.NumericalError, match="did not converge"):
        logistic(features, labels, worlds, C=3.0)


def test_results_do_not_depend_on_the_run_the_threads_or_the_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = some_data(300, 4, 3, 8)
    worlds = draw_worlds(300, 300, np.random.default_rng(0))
    found = logistic(features, labels, worlds)
    assert np.array_equal(logistic(features, labels, worlds), found)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(3)))
    assert np.allclose(logistic(features, labels, worlds, memory=2**21), found, rtol=1e-6, atol=1e-9)


def test_worlds_remember_no_more_than_memory_allows() -> None:
    features, labels = some_data(200, 60, 4, 9)
    worlds, peaks = draw_worlds(200, 256, np.random.default_rng(0)), []
    answers = 256 * 4 * 61 * 8
    for memory in (2**24, 2**30):
        tracemalloc.start()
        logistic(features, labels, worlds, C=0.01, memory=memory)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 2**24 + 8 * answers < peaks[1], peaks


def test_a_planted_fault_in_the_gradients_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: gradients that leave the last row out do not lead to the reference's weights."""
    features, labels = some_data(150, 4, 3, 9)
    worlds = draw_worlds(150, 8, np.random.default_rng(0))
    expected = reference.logistic(features, labels, worlds)
    assert difference(logistic(features, labels, worlds), expected) < 1e-7
    honest = newton.gradients

    def faulty(columns: Any, code: Any, **rest: Any) -> Any:
        return honest(columns * (np.arange(columns.shape[1]) < 149), code, **rest)

    monkeypatch.setattr(module, "gradients", faulty)
    assert difference(logistic(features, labels, worlds), expected) > 1e-4


def test_arguments_that_make_no_sense_are_refused() -> None:
    features, labels = some_data(20, 2, 3, 10)
    worlds = draw_worlds(20, 4, np.random.default_rng(0))
    with pytest.raises(lc.InputError, match="C must be above"):
        logistic(features, labels, worlds, C=-1)
    with pytest.raises(lc.InputError, match="not among"):
        logistic(features, labels, worlds, classes=[0, 1])
    with pytest.raises(lc.InputError, match="two classes"):
        logistic(features, np.zeros(20), worlds)
