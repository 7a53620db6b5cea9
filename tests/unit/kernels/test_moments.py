"""Second moments, regressions and components in all worlds at once agree with plain ones in each."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge

from leakcap.errors import InputError
from leakcap.kernels import reference
from leakcap.kernels.linear import ridge
from leakcap.kernels.moments import covariances, grams, means, pca, variances
from leakcap.worlds import Units, Worlds, draw_worlds

rng = np.random.default_rng(5)
DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)[0]
CANCER = load_breast_cancer(return_X_y=True)[0]
DESIGNS = [{}, {"rate": 1 / 3}, {"rate": 3 / 4}]


def of_masks(masks: np.ndarray, paired: bool = False) -> Worlds:
    return Worlds(np.packbits(masks, axis=1), masks.shape[1], Fraction(1, 2), paired, "made for a test")


def drawn(n: int, m: int = 24, **design: float) -> Worlds:
    return draw_worlds(n, m, np.random.default_rng(2), **design)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("table", [IRIS, CANCER, IRIS[:, :1], IRIS[:9]], ids=["iris", "cancer", "column", "short"])
def test_moments_equal_those_of_each_world(table: np.ndarray, design: dict[str, float]) -> None:
    worlds = drawn(len(table), **design)
    size = np.abs(table).max(axis=0)
    assert np.abs((means(table, worlds) - reference.means(table, worlds)) / size).max() < 1e-13
    assert np.abs((variances(table, worlds) - reference.variances(table, worlds)) / size**2).max() < 1e-13
    apart = covariances(table, worlds) - reference.covariances(table, worlds)
    assert np.abs(apart / np.outer(size, size)).max() < 1e-13
    apart = grams(table, worlds) - reference.grams(table, worlds)
    assert np.abs(apart / np.outer(size, size)).max() < 1e-13 * len(table)


def test_worlds_of_no_row_and_of_one() -> None:
    masks = np.zeros((3, 20), dtype=bool)
    masks[1, 7], masks[2, 3:] = True, True
    table = rng.normal(size=(20, 3)) + 100
    worlds = of_masks(masks)
    assert np.array_equal(means(table, worlds)[0], np.zeros(3))
    assert means(table, worlds)[1] == pytest.approx(table[7], rel=1e-14)
    assert not covariances(table, worlds)[:2].any()
    assert not variances(table, worlds)[:2].any()
    assert not grams(table, worlds)[0].any()
    assert np.allclose(ridge(table, table @ [1.0, 2, 3], worlds, alpha=0.1)[0], 0)


def test_a_constant_column_has_variance_zero_in_every_world() -> None:
    table = np.column_stack([rng.normal(size=50), np.full(50, 1e9 / 3)])
    worlds = drawn(50)
    assert not variances(table, worlds)[:, 1].any()
    assert np.array_equal(means(table, worlds)[:, 1], np.full(24, 1e9 / 3))


def test_rows_of_a_person_move_together() -> None:
    people = Units.of(len(CANCER), rng.integers(0, 90, len(CANCER)))
    worlds = draw_worlds(people.count, 16, rng)
    rows = worlds.over_rows(people)
    size = np.abs(CANCER).max(axis=0)
    assert np.abs((means(CANCER, worlds, people) - reference.means(CANCER, rows)) / size).max() < 1e-13
    target = CANCER @ rng.normal(size=30)
    together = ridge(CANCER, target, worlds, people, alpha=5.0)
    assert together == pytest.approx(ridge(CANCER, target, rows, alpha=5.0), rel=1e-8)
    assert np.allclose(pca(CANCER, worlds, people, components=2), pca(CANCER, rows, components=2), atol=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0, 1e4])
def test_ridge_equals_a_plain_fit_in_every_world(alpha: float, design: dict[str, float]) -> None:
    features, target = DIABETES
    worlds = drawn(len(features), **design)
    found = ridge(features, target, worlds, alpha=alpha)
    size = np.append(1 / features.std(axis=0), 1) * target.std()
    assert np.abs((found - reference.ridge(features, target, worlds, alpha)) / size).max() < 1e-9
    for w in (0, 7, 23):
        rows = worlds.mask(w)
        fit = (Ridge(alpha) if alpha else LinearRegression()).fit(features[rows], target[rows])
        assert np.abs((found[w] - np.append(fit.coef_, fit.intercept_)) / size).max() < 1e-9


def test_ridge_of_several_targets() -> None:
    worlds = drawn(len(IRIS))
    targets = IRIS[:, 2:]
    both = ridge(IRIS[:, :2], targets, worlds)
    assert both.shape == (24, 2, 3)
    for j in range(2):
        assert np.allclose(both[:, j], ridge(IRIS[:, :2], targets[:, j], worlds), rtol=1e-12)


def test_columns_of_all_sizes_lose_no_digits() -> None:
    """The normal equations of these data have condition 1e20: solved as they stand, no digit would be right."""
    features = rng.normal(size=(400, 4)) * [1e6, 1.0, 1e-4, 1.0]
    features[:, 3] = features[:, 1] + 1e-4 * features[:, 3]
    target = features @ [1e-6, 1.0, 1e4, 1.0] + 0.1 * rng.normal(size=400)
    worlds = drawn(400)
    size = np.array([1e-6, 1e4, 1e4, 1e4, 1.0])
    apart = ridge(features, target, worlds, alpha=0) - reference.ridge(features, target, worlds, 0.0)
    assert np.abs(apart / size).max() < 1e-9


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_singular_worlds_get_the_smallest_coefficients(alpha: float) -> None:
    """Twin columns, a constant column, and a column that varies in some worlds only."""
    features = rng.normal(size=(40, 5))
    features[:, 1], features[:, 2], features[:, 3] = features[:, 0], 7.0, 0.0
    features[:2, 3] = [1.0, -1.0]
    target = features[:, 0] + rng.normal(size=40)
    worlds = drawn(40)
    assert np.allclose(
        ridge(features, target, worlds, alpha=alpha), reference.ridge(features, target, worlds, alpha), atol=1e-9
    )


def test_fewer_rows_than_columns() -> None:
    features, target = rng.normal(size=(12, 9)), rng.normal(size=12)
    worlds = drawn(12)
    found = ridge(features, target, worlds, alpha=0)
    assert np.allclose(found, reference.ridge(features, target, worlds, 0.0), atol=1e-8)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("components", [1, 3])
def test_components_equal_a_plain_fit_turned_to_the_pool(components: int, design: dict[str, float]) -> None:
    worlds = drawn(len(IRIS), **design)
    pool = PCA(components).fit(IRIS)
    found = pca(IRIS, worlds, components=components, reference=pool.components_)
    for w in range(worlds.m):
        fit = PCA(components).fit(IRIS[worlds.mask(w)])
        turn, _ = orthogonal_procrustes(fit.components_.T, pool.components_.T)
        assert np.abs(found[w] - np.vstack([fit.mean_, turn.T @ fit.components_])).max() < 1e-9
    own = pca(IRIS, worlds, components=components)
    sign = np.sign((own[0, 1:] * reference.pca(IRIS, worlds, components)[0, 1:]).sum(axis=1))
    assert components > 1 or np.abs(own[:, 1:] * sign - reference.pca(IRIS, worlds, components)[:, 1:]).max() < 1e-9


def test_alignment_takes_away_turns_and_signs_and_nothing_else() -> None:
    """With all components the space is everything, so every world gives the reference itself."""
    worlds = drawn(len(IRIS))
    assert np.abs(pca(IRIS, worlds, components=4, reference=np.eye(4))[:, 1:] - np.eye(4)).max() < 1e-12
    found = pca(IRIS, worlds, components=2)[:, 1:]
    assert np.allclose(found @ found.transpose(0, 2, 1), np.eye(2), atol=1e-12)


def test_too_few_rows_or_too_many_components_are_refused() -> None:
    with pytest.raises(InputError, match="columns"):
        pca(IRIS, drawn(len(IRIS)), components=5)
    with pytest.raises(InputError, match="rows"):
        pca(CANCER[:20], drawn(20), components=12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_numbers_are_refused(bad: float) -> None:
    holes = IRIS.copy()
    holes[3, 1] = bad
    worlds = drawn(len(IRIS))
    with pytest.raises(InputError, match="finite"):
        ridge(holes, IRIS[:, 0], worlds)
    with pytest.raises(InputError, match="finite"):
        ridge(IRIS, holes[:, 1], worlds)
    with pytest.raises(InputError, match="finite"):
        pca(holes, worlds, components=2)
    with pytest.raises(InputError, match="150 rows"):
        ridge(IRIS, IRIS[:-1, 0], worlds)


def test_the_same_bits_on_every_run() -> None:
    worlds = drawn(len(CANCER))
    target = CANCER[:, 0] ** 2
    assert np.array_equal(ridge(CANCER, target, worlds), ridge(CANCER, target, worlds))
    assert np.array_equal(pca(CANCER, worlds, components=3), pca(CANCER, worlds, components=3))


def test_ridge_takes_no_more_worlds_together_than_memory_allows_and_gives_the_same() -> None:
    rng = np.random.default_rng(3)
    table, target = rng.normal(size=(200, 80)), rng.normal(size=(200, 2))
    worlds, found, peaks = draw_worlds(200, 512, rng), [], []
    for memory in (2**23, 2**31):
        tracemalloc.start()
        found.append(ridge(table, target, worlds, alpha=2.0, memory=memory))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 2**24 < peaks[1], peaks
    assert np.allclose(*found, rtol=0, atol=1e-11)
