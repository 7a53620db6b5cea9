"""Moments, ridge and principal components on a device are those of a plain fit in every world."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from leakcap.errors import InputError
from leakcap.kernels import gpu, reference
from leakcap.worlds import Worlds, draw_worlds, given_worlds

rng = np.random.default_rng(5)
SCALE = np.array([1.0, 50.0, 1e-3, 4.0])
X = rng.normal(size=(203, 4)) @ rng.normal(size=(4, 4)) * SCALE + [0.0, 1e4, 5.0, -3.0]
Y = X @ rng.normal(size=(4, 2)) / SCALE[:2] + rng.normal(size=(203, 2))
CASES = {
    "pairs": draw_worlds(203, 12, rng),
    "a third": draw_worlds(203, 9, rng, 1 / 3),
    "three quarters": draw_worlds(203, 8, rng, 0.75),
}
# One world of nobody and one of a single person; their complements have the rest.
LONELY = given_worlds(np.array([[0] * 8, [1] * 8, [1] + [0] * 7, [0] + [1] * 7], dtype=bool).repeat(2, axis=0), 8)


def close(a: np.ndarray, b: np.ndarray, to: float = 1e-9) -> bool:
    return bool(np.allclose(a, b, rtol=to, atol=to * np.abs(b).max()))


@pytest.fixture(params=CASES, ids=str)
def worlds(request: pytest.FixtureRequest) -> Worlds:
    return CASES[request.param]


def test_sums_of_whole_numbers_are_exact(worlds: Worlds, device: str) -> None:
    table = rng.integers(-1000, 1000, size=(203, 70)).astype(float)
    assert np.array_equal(gpu.masked_sums(table, worlds, device=device), worlds.masks() @ table)


def test_means_and_covariances_are_those_of_each_world(worlds: Worlds, device: str) -> None:
    assert close(gpu.means(X, worlds, device=device), reference.means(X, worlds), 1e-12)
    for world, found in zip(worlds.masks(), gpu.covariances(X, worlds, device=device), strict=True):
        expected = np.cov(X[world], rowvar=False)
        spread = np.sqrt(np.diag(expected))
        assert np.abs((found - expected) / np.outer(spread, spread)).max() < 1e-11


def test_tiles_change_nothing(worlds: Worlds, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gpu.covariances(X, worlds, device=device)
    monkeypatch.setattr("leakcap.kernels.gpu.moments.tile_bytes", lambda _: 4096)
    monkeypatch.setattr("leakcap.kernels.gpu.moments.COLUMNS", 3)
    assert close(gpu.covariances(X, worlds, device=device), whole, 1e-11)


def test_worlds_of_nobody_and_of_one_have_no_spread(device: str) -> None:
    table = X[:8]
    assert close(gpu.means(table, LONELY, device=device), reference.means(table, LONELY))
    found = gpu.covariances(table, LONELY, device=device)
    assert not found[LONELY.sizes() < 2].any()
    assert np.isfinite(found).all()
    one = draw_worlds(5, 4, np.random.default_rng(1))
    assert gpu.covariances(X[:5, :1], one, device=device).shape == (4, 1, 1)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e3])
def test_ridge_is_a_plain_fit_in_every_world(worlds: Worlds, alpha: float, device: str) -> None:
    found = gpu.ridge(X, Y, worlds, alpha=alpha, device=device)
    single = gpu.ridge(X, Y[:, 1], worlds, alpha=alpha, device=device)
    assert found.shape == (worlds.m, 2, 5)
    assert close(single, found[:, 1])
    for world, got in zip(worlds.masks(), found, strict=True):
        fit = (
            Ridge(alpha=alpha, solver="svd").fit(X[world], Y[world])
            if alpha
            else LinearRegression().fit(X[world], Y[world])
        )
        assert close(got[:, :-1] * SCALE, fit.coef_ * SCALE, 1e-8)
        assert close(got[:, -1], fit.intercept_, 1e-7)


def test_dependent_columns_get_the_solution_of_least_norm(device: str) -> None:
    worlds = CASES["pairs"]
    rare = np.zeros(203)
    rare[worlds.mask(0)] = rng.normal(size=worlds.sizes()[0])  # constant in the complement of world 0
    for table in (np.column_stack([X, X[:, 0] + X[:, 3], np.ones(203)]), np.column_stack([X, rare])):
        found = gpu.ridge(table, Y, worlds, alpha=0.0, device=device)
        for world, got in zip(worlds.masks(), found, strict=True):
            apart = table[world] - table[world].mean(axis=0)
            expected = np.linalg.lstsq(apart, Y[world] - Y[world].mean(axis=0), rcond=1e-12)[0].T
            assert close(got[:, :-1], expected, 1e-6)


def test_ridge_without_rows_is_zero(device: str) -> None:
    found = gpu.ridge(X[:8], Y[:8, 0], LONELY, device=device)
    assert not found[LONELY.sizes() == 0].any()
    one = LONELY.sizes() == 1
    assert close(found[one], np.tile([0, 0, 0, 0, Y[0, 0]], (one.sum(), 1)))
    constant = gpu.ridge(np.ones((203, 2)), Y[:, 0], CASES["pairs"], alpha=0, device=device)
    assert not constant[:, :2].any()


def test_components_are_those_of_each_world_turned_to_the_pools(worlds: Worlds, device: str) -> None:
    table = X / SCALE
    for components in (1, 2, 4):
        found = gpu.pca(table, worlds, components=components, device=device)
        towards = np.linalg.eigh(np.cov(table, rowvar=False))[1][:, : -components - 1 : -1].T
        assert close(found, gpu.pca(table, worlds, components=components, reference=towards, device=device), 1e-8)
        for world, got in zip(worlds.masks(), found, strict=True):
            apart = table[world] - table[world].mean(axis=0)
            own = np.linalg.svd(apart)[2][:components]
            left, _, right = np.linalg.svd(towards @ own.T)
            assert close(got[0], table[world].mean(axis=0))
            assert close(got[1:], left @ right @ own, 1e-7)


def test_components_that_rows_cannot_tell_are_refused(device: str) -> None:
    with pytest.raises(InputError, match="too few rows"):
        gpu.pca(X[:8], LONELY, components=2, device=device)
    with pytest.raises(InputError, match="number of columns"):
        gpu.pca(X, CASES["pairs"], components=5, device=device)
