"""Numeric labels: the bins are the best there are, and the error is the one that was planned."""

from __future__ import annotations

from itertools import combinations
from math import exp

import numpy as np
import pytest

from leakcap import labels
from leakcap.errors import InputError


def error_of(values, bins_of_points, points, share, epsilon):
    """Expected squared error of randomised response, label by label."""
    d = len(values)
    total = 0.0
    for point, p, home in zip(points, share, bins_of_points, strict=True):
        for b, value in enumerate(values):
            chance = (exp(epsilon) if b == home else 1) / (exp(epsilon) + d - 1)
            total += p * chance * (value - point) ** 2
    return total


def best_by_force(points, share, epsilon):
    """Every way to cut the points; for each, the best values by least squares."""
    n, best = len(points), np.inf
    for d in range(2, n + 1):
        for cuts in combinations(range(1, n), d - 1):
            homes = np.searchsorted(cuts, np.arange(n), side="right")
            values = []
            for b in range(d):
                weight = share * np.where(homes == b, exp(epsilon), 1)
                values.append((weight @ points) / weight.sum())
            best = min(best, error_of(values, homes, points, share, epsilon))
    return best


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5, 5.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_other_bins_have_a_smaller_error(epsilon, seed):
    share = np.random.default_rng(seed).dirichlet(np.ones(7))
    mechanism = labels.RROnBins(epsilon, low=0, high=7, prior=share)
    points = np.arange(7) + 0.5
    homes = np.searchsorted(mechanism.edges[1:-1], points, side="right")
    mine = error_of(mechanism.values, homes, points, share, epsilon)
    assert mine == pytest.approx(best_by_force(points, share, epsilon), rel=1e-9)


def test_the_error_seen_is_the_error_planned_and_a_planted_epsilon_differs():
    rng = np.random.default_rng(2)
    points, share = np.arange(16) + 0.5, rng.dirichlet(np.ones(16))
    y = rng.choice(points, 400_000, p=share)
    mechanism, planted = labels.RROnBins(2.0, 0, 16, share), labels.RROnBins(2.15, 0, 16, share)
    homes = np.searchsorted(mechanism.edges[1:-1], points, side="right")
    planned = error_of(mechanism.values, homes, points, share, 2.0)
    squares = (mechanism.privatize(y) - y) ** 2
    error = squares.std() / np.sqrt(len(y))
    assert abs(squares.mean() - planned) < 5 * error
    assert abs(((planted.privatize(y) - y) ** 2).mean() - planned) > 8 * error


def test_expected_labels_are_means_given_the_observation():
    rng = np.random.default_rng(3)
    share = rng.dirichlet(np.ones(8))
    points = np.arange(8) + 0.5
    mechanism = labels.RROnBins(1.5, 0, 8, share)
    y = rng.choice(points, 200_000, p=share)
    seen = mechanism.privatize(y)
    for value in mechanism.values:
        mean = y[seen == value].mean()
        assert mechanism.expected([value])[0] == pytest.approx(mean, abs=5 * y.std() / np.sqrt((seen == value).sum()))


def test_labels_beyond_the_range_count_as_its_ends_and_wrong_ones_are_refused():
    mechanism = labels.RROnBins(40.0, low=-1, high=1)
    low, high = mechanism.privatize([-1e9, 1e9])
    assert low == mechanism.values[0] and high == mechanism.values[-1]
    for wrong in ([np.nan], ["a"], [], [[1.0, 2.0]]):
        with pytest.raises(InputError):
            mechanism.privatize(wrong)
    for low, high in ((1, 1), (2, 1), (0, np.inf), ("a", 1), (-1e308, 1e308)):
        with pytest.raises(InputError):
            labels.RROnBins(1.0, low, high)
    with pytest.raises(InputError):
        labels.RROnBins(1.0, 0, 1, prior=[1.0])
    with pytest.raises(InputError):
        labels.RROnBins(1.0, 0, 1, prior=[[0.5, 0.5], [0.4, 0.6]])
    with pytest.raises(InputError):
        labels.RROnBins(0.0, 0, 1)
