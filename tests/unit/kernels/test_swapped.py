"""What functions say about swaps, against the functions themselves on the swapped rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import leakcap as lc
from leakcap.kernels.linear.swapped import SwappedRidge
from leakcap.kernels.swapping import swapped_masks, swapper_of
from leakcap.worlds import Units

FUNCTIONS = {
    "median": lc.stats.median,
    "variance": lc.stats.variance,
    "covariance": lc.stats.covariance,
    "products": lc.stats.gram,
    "quantiles": functools.partial(lc.stats.quantile, q=[0.77, 0, 0.13, 1, 0.5]),
}

SHIFT = np.array([0, 100, 3])


def worlds_of(n: int, rng: np.random.Generator, pairs: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mask = np.zeros(n, dtype=bool)
    mask[rng.permutation(n)[: rng.integers(1, n)]] = True
    return mask, rng.choice(np.flatnonzero(mask), pairs), rng.choice(np.flatnonzero(~mask), pairs)


@pytest.mark.parametrize("n", [2, 3, 5, 11, 12, 40])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_after_swaps_are_the_functions_own(name: str, n: int) -> None:
    fn, rng = FUNCTIONS[name], np.random.default_rng(n)
    for trial in range(12):
        rows = rng.standard_normal((n, 3)).round(1 if trial % 2 else 6) + SHIFT  # with ties and without
        mask, out, into = worlds_of(n, rng)
        swapper = swapper_of(fn, (rows,), Units(n, n))
        assert swapper is not None
        own = np.stack([np.ravel(fn(rows[world])) for world in (mask, *swapped_masks(mask, out, into))])
        assert swapper.answers(mask, out, into) == pytest.approx(own, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 100.0])
def test_ridge_after_swaps_is_scikit_learns(alpha: float) -> None:
    rng = np.random.default_rng(3)
    for n in (11, 12, 40):
        rows, target = rng.standard_normal((n, 3)) + SHIFT, rng.standard_normal((n, 2))
        mask = np.arange(n) % 2 == 0
        out, into = rng.choice(np.flatnonzero(mask), 9), rng.choice(np.flatnonzero(~mask), 9)
        found = SwappedRidge.of(rows, target, alpha).answers(mask, out, into)
        for numbers, world in zip(found, (mask, *swapped_masks(mask, out, into)), strict=True):
            made: Any = Ridge(alpha) if alpha else LinearRegression()
            made.fit(rows[world], target[world])
            own = np.concatenate([made.coef_, made.intercept_[:, None]], axis=1).ravel()
            assert numbers == pytest.approx(own, abs=1e-7 * np.abs(own).max())


def test_equations_without_a_solution_are_solved_as_the_function_does() -> None:
    """Worlds of fewer rows than columns, and a swap that takes the only row of its kind out."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((12, 5))
    rows[:, 4] = 0
    rows[0, 4] = 1.0
    target = rng.standard_normal((12, 1))
    mask = np.arange(12) < 3
    for alpha in (0.0, 0.5):
        swapped = SwappedRidge.of(rows, target, alpha)
        for world in (mask, np.arange(12) < 8):
            out, into = np.array([0, 1]), np.array([9, 10])
            found = swapped.answers(world, out, into)
            for numbers, after in zip(found, (world, *swapped_masks(world, out, into)), strict=True):
                model = (Ridge(alpha) if alpha else LinearRegression()).fit(rows[after], target[after])
                assert numbers[:-1] @ rows[2] + numbers[-1] == pytest.approx(model.predict(rows[2:3])[0], abs=1e-8)


def test_products_with_targets_are_the_functions_own() -> None:
    rng = np.random.default_rng(1)
    rows, target = rng.standard_normal((12, 2)) + 50, rng.standard_normal((12, 3))
    mask, out, into = worlds_of(12, rng)
    swapper = swapper_of(lc.stats.gram, (rows, target), Units(12, 12))
    assert swapper is not None
    for numbers, world in zip(swapper.answers(mask, out, into), (mask, *swapped_masks(mask, out, into)), strict=True):
        own = lc.stats.gram(rows[world], target[world])
        assert numbers == pytest.approx(np.concatenate([own["xx"].ravel(), own["xy"].ravel()]), abs=1e-9)


def test_quantiles_on_a_grid_are_not_served() -> None:
    on_grid = functools.partial(lc.stats.quantile, q=0.5, grid=(0, 10, 8))
    assert swapper_of(on_grid, (np.arange(10.0),), Units(10, 10)) is None


def test_rows_of_one_person_and_missing_values_are_not_served() -> None:
    rows = np.random.default_rng(0).standard_normal((6, 2))
    assert swapper_of(lc.stats.median, (rows,), Units.of(6, [0, 0, 1, 1, 2, 2])) is None
    rows[0, 0] = np.nan
    assert swapper_of(lc.stats.covariance, (rows,), Units(6, 6)) is None
    assert swapper_of(np.median, (rows,), Units(6, 6)) is None
