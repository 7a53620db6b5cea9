"""How little noise could do: against quadrature that shares no code with the library."""

from __future__ import annotations

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise.lower_bound import exceeded, least_variance, noise_lower_bound
from leakcap.noise.search import Goal
from leakcap.worlds import given_worlds
from tests.claims.noise import gaussian_oracle as oracle

WORLDS = given_worlds(oracle.halves(8), 8)
MASKS = WORLDS.masks()
POOL = np.random.default_rng(3).standard_normal((8, 2)) * [1.0, 0.4]
MEANS = MASKS @ POOL / 4
POINTS = MEANS - MEANS.mean(axis=0)

CASES = {
    "membership": (lc.membership(0.65), lambda table: oracle.membership(table, MASKS)),
    "information": (lc.mutual_information(0.5), oracle.information),
    "any inference": (lc.any_inference(0.1, 0.3), lambda table: oracle.any_inference(table, 7)),
    "recognised": (lc.true_positive_rate(0.1, 0.3), lambda table: oracle.recognised(table, MASKS, 0.1)),
}


def goal_of(*caps):
    return Goal.of(caps, WORLDS)


@pytest.mark.parametrize("name", CASES)
def test_noise_along_a_line_is_too_little_up_to_what_quadrature_says(name):
    cap, figure = CASES[name]
    line = POINTS @ [0.6, 0.8]
    right = oracle.least(line, figure, cap.limit)
    found = least_variance(goal_of(cap), line)
    assert 0.95 * right <= found <= right * (1 + 1e-3)


def test_more_noise_than_that_exceeds_nothing():
    cap, figure = CASES["membership"]
    right = oracle.least(POINTS[:, 0], figure, cap.limit)
    assert exceeded(goal_of(cap), POINTS[:, 0], 0.98 * right, None)
    assert not exceeded(goal_of(cap), POINTS[:, 0], 1.02 * right, None)


@pytest.fixture(scope="module")
def bound():
    goal = goal_of(CASES["membership"][0])
    return noise_lower_bound(goal, POINTS, [np.eye(2)], seconds=0.5, rng=np.random.default_rng(0))


def smallest_trace(turns):
    """The least trace of a covariance that keeps the cap, over some turns and shapes, by quadrature."""
    best = np.inf
    for angle in turns:
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for share in (0.1, 0.2, 0.35) if angle else (0.1, 0.2, 0.35, 0.5):  # a circle is one, however it is turned
            shape = turn @ np.diag([1 - share, share]) @ turn.T
            low, high = 0.01, 20.0
            for _ in range(9):
                middle = np.sqrt(low * high)
                kept = oracle.membership(oracle.joint(POINTS, middle * shape, fine=61, reach=5), MASKS) <= 0.65
                low, high = (low, middle) if kept else (middle, high)
            best = min(best, high)
    return best


def test_no_covariance_keeps_the_cap_with_less(bound):
    assert np.allclose(bound.basis.T @ bound.basis, np.eye(2))
    assert bound.total <= smallest_trace(np.linspace(0, np.pi, 5)[:-1])


def test_a_planted_bound_that_takes_the_widest_direction_twice_is_refuted():
    """The same direction counted for all: no bound. Noise that keeps the cap has less."""
    goal = goal_of(CASES["membership"][0])
    stretched = POINTS * [1.0, 0.05]
    wrong = 2 * least_variance(goal, stretched[:, 0])
    right = noise_lower_bound(goal, stretched, [np.eye(2)], seconds=0, rng=np.random.default_rng(0)).total
    shape = np.diag([1.0, 0.05**0.5])
    kept = next(
        size
        for size in np.geomspace(0.1, 40, 60)
        if oracle.membership(oracle.joint(stretched, size * shape, fine=81, reach=5), MASKS) <= 0.65
    )
    assert right <= kept * np.trace(shape) < wrong


def test_the_floor_counts_where_outputs_do_not_move():
    goal = Goal.of([lc.membership(0.65)], WORLDS, floor=0.5)
    assert least_variance(goal, np.zeros(len(MASKS))) == 0.25
