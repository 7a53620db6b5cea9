"""K-Means in all worlds at once gives the centres of a plain fit in each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from leakcap.datasets import dry_bean
from leakcap.errors import InputError, NumericalError
from leakcap.kernels import reference
from leakcap.kernels.kmeans import Weights, kmeans, lockstep
from leakcap.kernels.kmeans import entry as module
from leakcap.worlds import Worlds, draw_worlds, given_worlds, independent_worlds


def plain(
    table: np.ndarray, start: np.ndarray, iterations: int = 300, tolerance: float = 1e-4, weight: Any = None
) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters
        model = KMeans(len(start), init=start, n_init=1, algorithm="lloyd", max_iter=iterations, tol=tolerance)
        return np.asarray(model.fit(table, sample_weight=weight).cluster_centers_)


def apart(table: np.ndarray, worlds: Worlds, start: np.ndarray, step: int = 1, **options: Any) -> float:
    """The largest difference from scikit-learn's centres in every `step`-th world, relative to the columns."""
    found = kmeans(table, worlds, start, **options)
    assert found.shape == (worlds.m, *start.shape)
    scale = np.maximum(table.std(axis=0), 1e-300)
    expected = {w: plain(table[worlds.mask(w)], start, **options) for w in range(0, worlds.m, step)}
    return max(float((np.abs(found[w] - one) / scale).max()) for w, one in expected.items())


def blobs(n: int, d: int, centres: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(n, d)) + 3 * draw.normal(size=(centres, d))[draw.integers(0, centres, n)]


@pytest.mark.parametrize("standardised", [False, True])
def test_centres_equal_a_plain_fit_in_every_world_of_dry_bean(standardised: bool) -> None:
    try:
        table = dry_bean().drop(columns="Class").to_numpy(dtype=np.float64)
    except InputError:
        pytest.skip("no data folder")
    table = (table - table.mean(axis=0)) / table.std(axis=0) if standardised else table
    start, _ = kmeans_plusplus(table, 7, random_state=0)
    worlds = draw_worlds(len(table), 256, np.random.default_rng(1))
    assert apart(table, worlds, start, step=13) < 1e-9


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("rate", [1 / 2, 1 / 3, 3 / 4])
def test_centres_equal_a_plain_fit_at_every_rate(load: Any, rate: float) -> None:
    table = load(return_X_y=True)[0]
    start, _ = kmeans_plusplus(table, 4, random_state=1)
    assert apart(table, draw_worlds(len(table), 36, np.random.default_rng(2), rate), start + 1e-3) < 1e-9


@given(
    st.integers(8, 200), st.integers(1, 20), st.integers(1, 6), st.integers(1, 12), st.booleans(), st.integers(0, 2**31)
)
@settings(max_examples=60)
def test_centres_equal_a_plain_fit_for_every_size(n: int, d: int, k: int, pairs: int, paired: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    table = blobs(n, d, 3, seed)
    worlds = draw_worlds(n, 2 * pairs, draw) if paired else independent_worlds(n, pairs + 1, draw)
    start = table[draw.choice(n, min(k, n // 2), replace=False)]
    assert apart(table, worlds, start) < 1e-9


@given(st.integers(10, 60), st.integers(1, 3), st.integers(2, 5), st.integers(0, 2**31))
@settings(max_examples=40)
def test_ties_and_empty_clusters_go_as_in_a_plain_fit(n: int, d: int, k: int, seed: int) -> None:
    """Small whole numbers: rows in the middle of two centres, equal rows, equal start centres."""
    draw = np.random.default_rng(seed)
    table = draw.integers(0, 5, size=(n, d)).astype(float)
    start = table[draw.integers(0, n, k)]
    assert apart(table, draw_worlds(n, 8, draw), start) < 1e-9


def apart_weighted(table: np.ndarray, worlds: Worlds, start: np.ndarray, weights: Weights) -> float:
    found, worst = kmeans(table, worlds, start, weights=weights), 0.0
    for world in range(worlds.m):
        here = worlds.mask(world)
        expected = plain(table[here], start, weight=weights.factors[world, weights.groups[here]])
        worst = max(worst, float(np.abs(found[world] - expected).max()))
    return worst


@given(st.integers(8, 200), st.integers(1, 9), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
@settings(max_examples=60)
def test_weights_of_groups_count_in_every_world_as_in_a_plain_fit(n: int, d: int, k: int, many: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    table, worlds = blobs(n, d, 3, seed), draw_worlds(n, 6, draw)
    weights = Weights(draw.integers(0, many, n), draw.lognormal(0, 2, size=(6, many)))
    assert apart_weighted(table, worlds, table[draw.choice(n, min(k, n // 2), replace=False)], weights) < 1e-9


def test_rows_without_weight_move_no_centre() -> None:
    draw = np.random.default_rng(8)
    table, worlds = blobs(300, 3, 4), draw_worlds(300, 40, draw)
    groups = (table[:, 0] > np.quantile(table[:, 0], 0.8)).astype(np.int64)  # a start centre may have such rows alone
    weights = Weights(groups, np.array([[1.0, 0.0], [2.0, 1e-9]])[np.arange(40) % 2])
    start = table[np.argsort(table[:, 0])[[0, 100, 200, 299]]]
    assert apart_weighted(table, worlds, start, weights) < 1e-9
    assert not np.allclose(kmeans(table, worlds, start), kmeans(table, worlds, start, weights=weights))


@pytest.mark.parametrize("settings", [{"MIN_SURVEYS_TO_PART": 0}, {"MAX_RIVAL_NUMBERS": 1}])
def test_worlds_that_part_keep_the_weights_of_their_rows(monkeypatch: Any, settings: dict[str, float]) -> None:
    for name, value in settings.items():
        monkeypatch.setattr(lockstep, name, value)
    draw = np.random.default_rng(9)
    table, worlds = blobs(400, 4, 5), draw_worlds(400, 40, draw)
    weights = Weights(draw.integers(0, 3, 400), draw.lognormal(0, 1, size=(40, 3)))
    assert apart_weighted(table, worlds, table[:5], weights) < 1e-9


def test_centres_equal_the_reference() -> None:
    table = blobs(157, 3, 4)
    worlds = draw_worlds(157, 24, np.random.default_rng(3))
    for start in (table[:4], np.vstack([table[:3], [[90.0, 90.0, 90.0]]])):  # the last takes no row at first
        for options in ({}, {"iterations": 3}, {"tolerance": 0.0}):
            expected = reference.kmeans(table, worlds, start, **options)
            assert np.allclose(kmeans(table, worlds, start, **options), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", [{"iterations": 1}, {"iterations": 7}, {"tolerance": 0.0}, {"tolerance": 1e-2}])
def test_worlds_stop_as_a_plain_fit_does(options: dict[str, Any]) -> None:
    table = blobs(600, 5, 6)
    worlds = draw_worlds(600, 40, np.random.default_rng(4))
    assert apart(table, worlds, table[:6], **options) < 1e-9


def test_columns_of_any_scale_and_place_are_served() -> None:
    table = blobs(403, 4, 5) * [1e-6, 1.0, 1e4, 0.0] + [1e3, 1e6, 0.0, 7.0]
    assert apart(table, draw_worlds(403, 30, np.random.default_rng(5)), table[:5]) < 1e-9


def test_a_column_a_row_and_a_cluster_are_enough() -> None:
    draw = np.random.default_rng(6)
    worlds = draw_worlds(5, 6, draw)
    table = draw.normal(size=(5, 1))
    assert apart(table, worlds, table[:2]) < 1e-12
    assert apart(table, worlds, table[:1]) < 1e-12
    halves = given_worlds(np.array([[True, False], [False, True]]), 2)
    assert np.allclose(kmeans(table[:2], halves, table[2:3])[:, 0], table[:2])
    same = np.ones((20, 3))
    assert np.allclose(kmeans(same, draw_worlds(20, 4, draw), same[:3]), 1.0)


def test_whole_numbers_with_many_ties_at_the_start() -> None:
    table = load_digits().data[:300]
    assert apart(table, draw_worlds(300, 12, np.random.default_rng(7)), table[:10]) < 1e-9


@pytest.mark.parametrize(
    "settings",
    [
        {"MAX_RIVAL_NUMBERS": 1},
        {"MIN_SURVEYS_TO_PART": 0, "MAX_SPREAD_LEFT": 2},
        {"MIN_SURVEYS_TO_PART": 0, "SURVEY_TILES": 1e-9},
    ],
    ids=["no room for the list", "two groups", "each by itself"],
)
def test_worlds_that_part_from_each_other_keep_their_centres(monkeypatch: Any, settings: dict[str, float]) -> None:
    """Three clusters for two blobs: which of them is halved depends on the world."""
    draw = np.random.default_rng(8)
    table = draw.normal(size=(400, 2)) + 6 * (np.arange(400) % 2)[:, None]
    start = np.array([[0.0, 0.0], [3.0, 3.1], [6.0, 6.0]])
    worlds = draw_worlds(400, 64, draw)
    leave, groups = lockstep._leave, []
    monkeypatch.setattr(lockstep, "_leave", lambda *some: groups.append(leave(*some)) or groups[-1])
    for name, value in settings.items():
        monkeypatch.setattr(lockstep, name, value)
    assert apart(table, worlds, start) < 1e-9
    assert any(groups), "worlds were meant to leave their groups"
    assert np.ptp(kmeans(table, worlds, start)[:, 1], axis=0).min() > 3, "the worlds were meant to differ"


def test_the_result_is_the_same_on_every_run_and_nearly_for_every_number_of_threads(monkeypatch: Any) -> None:
    table = blobs(1000, 6, 5)
    worlds = draw_worlds(1000, 128, np.random.default_rng(9))
    first = kmeans(table, worlds, table[:7])
    assert np.array_equal(first, kmeans(table, worlds, table[:7]))
    for cores in (1, 3):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert np.allclose(kmeans(table, worlds, table[:7]), first, rtol=0, atol=1e-11)


def test_most_worlds_need_no_plain_fit(monkeypatch: Any) -> None:
    """The twin of the tests above: they would all pass if scikit-learn fitted every world."""
    monkeypatch.setattr(module, "_plain", lambda *_, **__: pytest.fail("a plain fit"))
    table = blobs(2000, 4, 5)
    kmeans(table, draw_worlds(2000, 64, np.random.default_rng(10)), table[:5])


def test_worlds_with_too_few_rows_are_refused() -> None:
    table = blobs(8, 2, 2)
    masks = np.zeros((2, 8), dtype=bool)
    masks[0, :3] = True
    worlds = given_worlds(np.vstack([masks[0], ~masks[0]]), 8)
    kmeans(table, worlds, table[:3])
    with pytest.raises(InputError, match="as many rows as there are clusters"):
        kmeans(table, worlds, table[:4])
    with pytest.raises(InputError, match="as many rows as there are clusters"):
        kmeans(table, given_worlds(np.array([[True] * 8, [False] * 8]), 8), table[:1])


def test_unusable_numbers_are_refused() -> None:
    table = blobs(40, 2, 2)
    worlds = draw_worlds(40, 4, np.random.default_rng(11))
    for bad in (np.nan, np.inf, 1e200):
        holes = table.copy()
        holes[3, 1] = bad
        with pytest.raises((InputError, NumericalError), match="finite"):
            kmeans(holes, worlds, table[:2])
        with pytest.raises(NumericalError, match="finite"):
            kmeans(table, worlds, holes[2:5])
    with pytest.raises(InputError, match="columns"):
        kmeans(table, worlds, table[:2, :1])
    with pytest.raises(InputError, match="40 rows"):
        kmeans(table[:30], worlds, table[:2])
    with pytest.raises(InputError, match="iterations"):
        kmeans(table, worlds, table[:2], iterations=0)
    with pytest.raises(InputError, match="tolerance"):
        kmeans(table, worlds, table[:2], tolerance=-1.0)
