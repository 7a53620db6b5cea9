"""The trace bound against brute force: random small games whose worlds are all enumerated.

Success is a sum over a fine grid of released values, by code that shares nothing with the bound; values are exact to
1e-6, so comparisons need no false-alarm rate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.leakage.trace import signal_for, trace_success
from leakcap.noise.least import least_variances
from leakcap.noise.shapes import information_ceiling
from tests.claims.leakage.oracle import density

INTEGRATED = 1e-6  # what sums over grids may be off by


class Game:
    """Some worlds with chances, in a share `rate` of which a person takes part, and an answer in each."""

    def __init__(self, rng: np.random.Generator, rate: float, d: int) -> None:
        worlds = int(rng.integers(2, 12))
        self.inside = np.arange(worlds) < max(1, worlds // 2)
        chances = rng.gamma(rng.choice([0.2, 1.0, 5.0]), size=worlds) + 1e-9
        chances[self.inside] *= rate / chances[self.inside].sum()
        chances[~self.inside] *= (1 - rate) / chances[~self.inside].sum()
        self.chances, self.rate = chances, rate
        size = rng.choice([0.1, 0.4, 1.0, 2.5])
        kinds = rng.integers(3)
        answers = rng.standard_normal((worlds, d)) if kinds else rng.integers(0, 2, size=(worlds, d)).astype(float)
        if kinds == 2:  # mostly the person's own doing
            answers = 0.2 * answers + self.inside[:, None] * rng.standard_normal(d)
        self.answers = size * answers

    @property
    def signal(self) -> float:
        apart = self.answers - self.chances @ self.answers
        return float(self.chances @ (apart**2).sum(axis=1))

    def success(self) -> float:
        """Balanced success of the best attacker, noise of deviation 1."""
        d = self.answers.shape[1]
        axes = [np.linspace(a.min() - 7, a.max() + 7, 4001 if d == 1 else 121) for a in self.answers.T]
        signed = np.where(self.inside, self.chances / self.rate, -self.chances / (1 - self.rate))
        tables = [density(axis[:, None] - a) for axis, a in zip(axes, self.answers.T, strict=True)]
        apart = tables[0] @ signed if d == 1 else (tables[0] * signed) @ tables[1].T
        return float(0.5 + 0.25 * np.abs(apart).sum() * np.prod([axis[1] - axis[0] for axis in axes]))


RATES = (0.5, 1 / 3, 0.9)


def beaten(bound: Callable[[Game], float], games: int, seed: int) -> int:
    """In how many random games the best attacker does better than a bound says."""
    rng = np.random.default_rng(seed)
    found = 0
    for number in range(games):
        game = Game(rng, RATES[number % 3], 1 + number % 2)
        found += game.success() > bound(game) + INTEGRATED
    return found


def test_no_attacker_beats_the_bound_in_random_games() -> None:
    assert beaten(lambda game: trace_success(game.signal, game.rate), games=3000, seed=1) == 0


@pytest.mark.parametrize(
    "fault",
    [
        lambda game: trace_success(game.signal / 4, game.rate),  # the deviation halved
        lambda game: float(norm.cdf(np.sqrt(game.signal) / 2)),  # as if the distance were the spread
        lambda game: trace_success(game.signal, 0.5),  # a rate forgotten
    ],
)
def test_planted_faults_are_caught(fault: Callable[[Game], float]) -> None:
    assert beaten(fault, games=300, seed=2) > 0


@pytest.mark.parametrize("apart", [0.1, 0.5, 2.0])
def test_the_bound_is_attained_where_one_person_decides(apart: float) -> None:
    game = Game(np.random.default_rng(0), 0.5, 1)
    game.answers = apart * game.inside[:, None]
    assert game.success() == pytest.approx(trace_success(game.signal), abs=INTEGRATED)


@pytest.mark.parametrize(("cap", "by_trace", "by_information"), [(0.60, 3.95, 4.93), (0.55, 7.96, 9.97)])
def test_one_number_needs_the_stated_noise(cap: float, by_trace: float, by_information: float) -> None:
    """In deviations of the answer, as the page prints them."""
    one = np.ones(1)
    (needed,) = np.sqrt(least_variances("best", one, signal=signal_for(cap)))
    assert needed == pytest.approx(1 / norm.ppf(cap), rel=1e-9)
    assert round(float(needed), 2) == by_trace
    (before,) = np.sqrt(least_variances("best", one, budget=lc.convert.mutual_information(cap, 0.5)))
    assert round(float(before), 2) == by_information


def test_the_information_never_needs_less_noise() -> None:
    """Claim 4, on a grid of caps: any noise that the information allows, the signal allows."""
    for cap in np.linspace(0.5005, 0.9995, 500).tolist():
        assert np.expm1(2 * lc.convert.mutual_information(cap, 0.5)) <= signal_for(cap)


def test_a_success_is_kept_and_hardly_missed() -> None:
    for rate in RATES:
        for success in (0.51, 0.6, 0.95):
            found = trace_success(signal_for(success, rate), rate)
            assert success - 1e-9 <= found <= success
    with pytest.raises(lc.CapError, match="coin flip"):
        signal_for(0.5)


@pytest.mark.parametrize("shape", ["best", "logdet", "linear", "isotropic"])
@pytest.mark.parametrize("budget", [np.inf, 0.3, 0.01])
def test_every_shape_keeps_both_budgets(shape: str, budget: float) -> None:
    variances, signal = np.array([4.0, 1.0, 0.01]), 0.3
    noise = least_variances(shape, variances, budget=budget, signal=signal)
    spent = float((variances / noise).sum())
    assert spent <= signal
    assert information_ceiling(variances, noise) <= budget
    if budget > 0.1:
        assert spent == pytest.approx(signal), "no more noise than needed"
    else:
        assert information_ceiling(variances, noise) == pytest.approx(budget)


def test_the_shape_has_the_least_noise_of_all() -> None:
    variances, signal, rng = np.array([4.0, 1.0, 0.01]), 0.3, np.random.default_rng(3)
    least = least_variances("best", variances, signal=signal).sum()
    others = rng.gamma(1.0, size=(1000, 3))
    others *= (variances / others).sum(axis=1, keepdims=True) / signal
    assert others.sum(axis=1).min() >= least * (1 - 1e-9)
