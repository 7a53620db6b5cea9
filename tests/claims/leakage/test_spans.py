"""Revelations too rare for the draws to show: bounds on curve, information and tasks leave room for them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from leakcap.leakage.confidence import MeanEstimate, log_term, upper
from leakcap.leakage.posterior import View
from leakcap.leakage.tasks import WorldMeans, observe_worlds

M, DRAWS, GAMMA, RUNS = 8, 200, 0.05, 200
PRIORS = (Fraction(1, 8), Fraction(1, 3), Fraction(1, 2))
TASK = np.eye(M)[:, :4]
RARELY = 1 / 400  # in three of five runs no draw shows it


@dataclass(frozen=True)
class Rarely:
    """Releases that tell nothing, and with this probability the very world."""

    revealing: np.ndarray
    m: int = M
    blocks: int = 1
    prior: None = None

    @property
    def draws(self) -> int:
        return len(self.revealing)

    @property
    def rows(self) -> int:
        return len(self.revealing)

    def view(self, block: int) -> View:
        posterior = np.full((self.draws, M), 1 / M, dtype=np.float32)
        posterior[self.revealing] = np.eye(M, dtype=np.float32)[0]
        return View(np.ones(self.draws), posterior, None, 1e-9)


def truths() -> np.ndarray:
    """Curve, information and task, by hand."""
    curve = [(1 - RARELY) * float(p) + RARELY for p in PRIORS]
    return np.array([*curve, RARELY * np.log(M), (1 - RARELY) / M + RARELY])


def bounds(means: WorldMeans) -> np.ndarray:
    term = log_term(GAMMA, 1)
    return np.concatenate([upper(mean, term) for mean in (means.curve, means.information, *means.tasks)])


def failures(*, wagered: bool, planted: bool = False) -> np.ndarray:
    """How often each bound lies below the truth."""
    rng, failed = np.random.default_rng(5), np.zeros(len(truths()))
    nothing = Rarely(np.zeros(64, dtype=bool))
    for _ in range(RUNS):
        source = Rarely(rng.random(DRAWS) < RARELY)
        wagers = None
        if wagered:
            wagers = observe_worlds(nothing, PRIORS, (TASK,)).wagers(DRAWS, log_term(GAMMA, 1), M)
        means = observe_worlds(source, PRIORS, (TASK,), wagers)
        if planted:
            without = [MeanEstimate(one.estimate, one.variance, one.draws, 0.0, 0.0) for one in (means.curve,)]
            means = WorldMeans(means.priors, without[0], means.information, means.tasks, means.wins)
        failed += bounds(means) < truths() - 1e-6
    return failed


MOST = binom.isf(1e-6, RUNS, GAMMA)


def test_what_few_draws_do_not_show_is_within_the_bounds() -> None:
    assert (failures(wagered=False) <= MOST).all()


def test_a_planted_curve_of_no_span_is_caught() -> None:
    assert (failures(wagered=False, planted=True)[: len(PRIORS)] > MOST).all()


def test_wagers_leave_room_for_the_largest_value() -> None:
    """Placed where nothing was told; then every draw tells the world."""
    wagers = observe_worlds(Rarely(np.zeros(64, dtype=bool)), PRIORS, (TASK,)).wagers(DRAWS, log_term(GAMMA, 1), M)
    largest = np.array([*(1.0 for _ in PRIORS), np.log(M), 1.0])
    assert (wagers.base - wagers.stake * largest > 0.1).all()
    told = observe_worlds(Rarely(np.ones(DRAWS, dtype=bool)), PRIORS, (TASK,), wagers)
    assert (bounds(told) >= largest - 1e-6).all()
    assert (failures(wagered=True) <= MOST).all()


@pytest.mark.parametrize("stated", ["curve", "information"])
def test_spans_are_those_of_the_page(stated: str) -> None:
    means = observe_worlds(Rarely(np.zeros(64, dtype=bool)), PRIORS)
    expected = {"curve": 1 - np.array([float(p) for p in PRIORS]), "information": np.log(M)}
    assert np.asarray(getattr(means, stated).span) == pytest.approx(expected[stated])
