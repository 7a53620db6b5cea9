"""Quantiles on a grid: what a person moves is found from released sums of neighbouring pools, and over all coins.

Quantiles without noise are compared with numpy's; steps of coins are derivatives of numpy's interpolation in weights.
"""

from __future__ import annotations

import itertools
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from tests.claims.modes.test_bits import Game

POOL = import_module("leakcap.modes.pool")
GRID = np.arange(0.0, 101, 10)
CAP = 0.6
PEOPLE = np.array([3.0, 17, 25, 25, 48, 61, 74, 99, 240])


def pool_plan(rows: Any, **options: Any) -> lc.Plan:
    fn = partial(lc.stats.quantile, q=(0.25, 0.5), grid=GRID)
    return lc.plan(fn, rows, cap=lc.pool_membership(CAP), **{"seed": 1} | options)


def shown(plan: lc.Plan, other: lc.Plan) -> float:
    """Best success at telling two pools apart by what they release: the sums of both, in noise deviations."""
    moved = (plan.releaser.total - other.releaser.total) * 2.0**-32
    return float(norm.cdf(np.linalg.norm(moved) / 2))


def test_nobody_shows_by_more_than_the_cap_wherever_on_the_grid() -> None:
    base = pool_plan(PEOPLE)
    everywhere = [shown(pool_plan(np.append(PEOPLE, value)), base) for value in np.arange(-20.0, 140, 5)]
    assert max(everywhere) <= base.certificate.membership_success <= CAP
    assert min(everywhere) == pytest.approx(CAP, abs=1e-6), "a row is in one cell of every level, wherever it is"


def test_two_rows_of_a_person_in_any_two_cells_are_covered() -> None:
    options = {"rows_per_unit": 2}
    base = pool_plan(PEOPLE, unit=np.arange(9), **options)
    found = []
    for two in itertools.combinations_with_replacement(np.arange(5.0, 100, 10), 2):
        found.append(shown(pool_plan(np.append(PEOPLE, two), unit=[*range(9), 9, 9], **options), base))
    assert max(found) == pytest.approx(CAP, abs=1e-6)
    assert max(found) <= CAP


def test_a_planted_row_in_two_cells_is_refused_and_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = import_module("leakcap.stats.tree_counts").TreeCounts
    counted = tree.count_rows

    def twice(self: Any, found: Any, owner: Any, place: Any) -> None:
        counted(self, found, owner, place)
        counted(self, found, owner, (place + 5) % 10)

    monkeypatch.setattr(tree, "count_rows", twice)
    with pytest.raises(AssertionError, match="more than its limits"):
        pool_plan(PEOPLE)
    added = POOL.exact_total
    monkeypatch.setattr(POOL, "exact_total", lambda values, deviations, _: added(values, deviations))
    assert shown(pool_plan(PEOPLE), pool_plan(PEOPLE[1:])) > CAP + 0.03


def level_at(weights: np.ndarray, people: np.ndarray, point: float) -> float:
    """Share of the weight below a point, rows spread evenly over their cells."""
    inside = np.clip(np.floor(people / 10), 0, 9)
    mass = np.array([weights[inside == cell].sum() for cell in range(10)])
    return float(np.interp(point, GRID, np.append(0, np.cumsum(mass)))) / weights.sum()


def steps_by_weights(people: np.ndarray, q: float) -> np.ndarray:
    """By how much the share of rows below the pool's own quantile moves with each person's coin."""
    ones = np.ones(len(people))
    points = np.linspace(0, 100, 100_001)
    below = np.array([level_at(ones, people, point) for point in (points[0], points[-1])])
    assert list(below) == [0, 1]
    shares = np.interp(points, GRID, [level_at(ones, people, cut) for cut in GRID])
    point = points[np.searchsorted(shares, q - 1e-12)]
    slopes = []
    for person in range(len(people)):
        heavier = ones.copy()
        heavier[person] += 1e-6
        slopes.append((level_at(heavier, people, point) - level_at(ones, people, point)) / 1e-6 * len(people))
    return 2 * (np.array(slopes) - np.mean(slopes))


FEW = PEOPLE[::2]


@pytest.mark.parametrize(
    ("people", "q"),
    [(PEOPLE, 0.5), (FEW, 0.3), (np.array([1.0, 1, 1, 95, 95]), 0.5), (np.array([20.0, 30, 40, 50, 60, 70]), 0.7)],
)
def test_no_attacker_beats_the_bound_over_all_coins(people: np.ndarray, q: float) -> None:
    fn = partial(lc.stats.quantile, q=q, grid=GRID)
    plan = lc.plan(fn, people, cap=CAP, design="bits", seed=1)
    steps = steps_by_weights(people, q)
    game = Game(steps, float(plan.noise.output_deviations[0]))
    for unit, bound in enumerate(plan.exposure):
        assert max(game.successes(unit)) <= bound + 1e-4
    assert game.worst() == pytest.approx(CAP, abs=1e-3), "no more noise than needed"
    assert plan.exposure.max() <= plan.certificate.membership_success <= CAP


def test_planted_coins_that_count_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = import_module("leakcap.modes.bits")
    monkeypatch.setattr(bits, "_charges", lambda steps, deviations: ((steps / deviations) ** 2).sum(axis=1) / 4)
    plan = lc.plan(partial(lc.stats.median, grid=GRID), FEW, cap=CAP, design="bits", seed=1)
    assert Game(steps_by_weights(FEW, 0.5), float(plan.noise.output_deviations[0])).worst() > CAP + 0.05


LEVELS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.77, 0.9, 1.0)


@pytest.mark.parametrize("cells", [7, 64, 1000])
def test_without_noise_quantiles_lie_in_the_cell_of_numpys(cells: int) -> None:
    rng = np.random.default_rng(cells)
    rows = np.stack([rng.normal(50, 15, 3000), rng.gamma(2, 10, 3000)], axis=1).clip(0, 99.999)
    grid = np.linspace(0, 100, cells + 1)
    fn = partial(lc.stats.quantile, q=LEVELS, grid=grid)
    exact = np.quantile(rows, LEVELS, axis=0, method="inverted_cdf")
    assert (np.abs(fn(rows) - exact) <= 100 / cells + 1e-9).all()
    # The same through sums over people: under a pool cap with next to no noise, and around the coins.
    pool = lc.plan(fn, rows, cap=lc.pool_membership(1 - 1e-9), seed=1)
    assert pool.summary().answer == pytest.approx(fn(rows).ravel(), abs=1e-9)
    coins = lc.plan(fn, rows, cap=0.6, design="bits", seed=1)
    assert coins.summary().answer == pytest.approx(fn(rows).ravel(), abs=1e-6)


def dense_tree(cells: int) -> np.ndarray:
    """Which cells each count adds up: fours of neighbours, and fours of these, until at most four are left."""
    rows, width = [], 1
    while True:
        starts = range(0, cells, width)
        rows += [[float(start <= cell < start + width) for cell in range(cells)] for start in starts]
        if len(starts) <= 4:
            return np.array(rows)
        width *= 4


def test_least_squares_on_a_tree_equals_a_dense_solution() -> None:
    tree = import_module("leakcap.stats.tree_counts").TreeCounts
    rng = np.random.default_rng(2)
    for cells in (1, 3, 4, 5, 16, 37, 70):
        one = tree(cells)
        strategy = dense_tree(cells)
        noised = rng.normal(size=len(strategy))
        dense = np.linalg.lstsq(strategy, noised, rcond=None)[0]
        assert one.best_cells(noised) == pytest.approx(dense, abs=1e-9)
        counts = np.zeros((cells, len(strategy)))
        one.count_rows(counts, np.arange(cells), np.arange(cells))
        assert np.array_equal(counts.T, strategy)


def test_a_tree_has_less_noise_than_cells_or_cumulative_counts() -> None:
    """Exact errors of a count up to a point, less half of all, on 256 cells, for one and the same charge."""
    upto = np.tril(np.ones((256, 256)))
    asked = upto - 0.5
    strategies = {"cells": np.eye(256), "cumulative": upto, "tree": dense_tree(256)}
    errors = {}
    for name, strategy in strategies.items():
        noise = (strategy**2).sum(axis=0).max()  # variance by which nobody moves the numbers by more than 1 deviation
        back = asked @ np.linalg.pinv(strategy)
        errors[name] = np.sqrt((back**2).sum(axis=1).mean() * noise)
    assert errors["tree"] < 0.4 * errors["cells"] < 0.4 * errors["cumulative"]
