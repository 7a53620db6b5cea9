"""`X'X` and `X'y`: what a person moves is found from the rows, and from released sums of neighbouring pools."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from tests.claims.modes.test_bits import Game

POOL = import_module("leakcap.modes.pool")
CAP = 0.6
RNG = np.random.default_rng(5)
X = np.vstack([RNG.uniform(0, 10, size=(6, 2)), [[10, -4], [500, 2]]])
Y = X @ [1.0, -2.0] + RNG.normal(size=8)
BOUNDS = ([0, -4, -20], [10, 6, 20])


def pool_plan(rows: np.ndarray, target: np.ndarray) -> lc.Plan:
    return lc.plan(lc.stats.gram, rows, target, cap=lc.pool_membership(CAP), bounds=BOUNDS, seed=1)


def shown(plan: lc.Plan, other: lc.Plan) -> float:
    return float(norm.cdf(np.linalg.norm((plan.releaser.total - other.releaser.total) * 2.0**-32) / 2))


def test_nobody_shows_in_sums_of_products_and_somebody_at_the_bounds_by_all_of_the_cap() -> None:
    base = pool_plan(X, Y)
    corners = [(a, b, c) for a in (0, 10, -99, 99) for b in (-4, 6, 1) for c in (-20, 20, 1e6)]
    found = []
    for first, second, aim in corners:
        more = pool_plan(np.vstack([X, [[first, second]]]), np.append(Y, aim))
        assert np.array_equal(more.noise.covariance(), base.noise.covariance())
        found.append(shown(more, base))
    assert max(found) <= base.certificate.membership_success <= CAP
    assert max(found) == pytest.approx(CAP, abs=1e-6)


def test_a_planted_middle_elsewhere_is_refused_and_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    gram = import_module("leakcap.stats.gram")
    rows = gram.product_rows
    monkeypatch.setattr(gram, "product_rows", lambda z, v: rows(z + 1.0, v))  # no longer within a half-width
    with pytest.raises(AssertionError, match="more than its limits"):
        pool_plan(X, Y)
    monkeypatch.setattr(import_module("leakcap.kernels.bounded").Bounded, "__post_init__", lambda self: None)
    added = POOL.exact_total
    monkeypatch.setattr(POOL, "exact_total", lambda values, deviations, _: added(values, deviations))
    assert shown(pool_plan(X, Y), pool_plan(X[:-1], Y[:-1])) > CAP + 0.03


def test_no_attacker_beats_the_bound_over_all_coins_of_a_sum_of_squares() -> None:
    column = X[:7, 0]
    plan = lc.plan(lc.stats.gram, column, cap=CAP, design="bits", seed=1)
    squares = column * column
    game = Game(2 * (squares - squares.mean()), float(plan.noise.output_deviations[0]))
    for unit, bound in enumerate(plan.exposure):
        assert max(game.successes(unit)) <= bound + 1e-5
    assert game.worst() == pytest.approx(CAP, abs=1e-4)


def test_with_a_coin_for_everybody_products_with_a_target_are_within_the_cap() -> None:
    plan = lc.plan(lc.stats.gram, X, Y, cap=CAP, design="bits", seed=1)
    brought = np.array([[a * a, a * b, b * b, a * c, b * c] for (a, b), c in zip(X, Y, strict=True)])
    steps = 2 * (brought - brought.mean(axis=0))
    covariance = plan.noise.covariance()
    apart = [step @ np.linalg.pinv(covariance, rcond=1e-13) @ step for step in steps]
    worst = norm.cdf(np.sqrt(max(apart)) / 2)
    assert worst == pytest.approx(plan.certificate.membership_success, abs=1e-4)
    assert worst <= CAP + 1e-9


def test_sums_about_the_middle_need_less_noise_than_raw_products() -> None:
    """For the squares of all errors together, in half-widths: five columns from 0 to 100."""
    rows = RNG.uniform(0, 100, size=(2000, 5))
    centred = lc.plan(lc.stats.gram, rows, cap=lc.pool_membership(CAP), bounds=(0, 100), seed=1)
    total = float((centred.summary().error ** 2).sum())
    i, j = np.triu_indices(5)
    weights = np.where(i == j, 1.0, 2.0)
    raw = (np.sqrt(weights).sum() * 1e4 / (2 * norm.ppf(CAP))) ** 2
    assert total < 0.5 * raw


def test_a_fit_to_what_was_released_is_near_the_fit_to_the_rows() -> None:
    rng: Any = np.random.default_rng(2)
    rows = np.column_stack([np.ones(20_000), rng.uniform(0, 10, size=(20_000, 2))])
    target = rows @ [3.0, 1.0, -2.0] + rng.normal(size=20_000)
    bounds = ([0, 0, 0, -30], [1, 10, 10, 30])
    for seed in range(5):
        plan = lc.plan(lc.stats.gram, rows, target, cap=lc.pool_membership(CAP), bounds=bounds, seed=seed)
        found = plan.release().value
        coefficients = np.linalg.solve(found["xx"], found["xy"])
        assert coefficients == pytest.approx([3, 1, -2], abs=0.5)
        assert coefficients[1:] == pytest.approx([1, -2], abs=0.05)
