"""Membership caps of `confidence` mode: the success that is certified, against all halves of a small pool."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from tests.claims.leakage.oracle import Line, all_halves

BY_INFORMATION = import_module("leakcap.modes.by_information")
N = 10
HALVES = all_halves(N)
ROWS = np.random.default_rng(4).standard_normal(N)
ROWS[3] = 9.0


def decided_by_one(rows: np.ndarray) -> float:
    return float((rows == 9.0).any())


def largest(rows: np.ndarray) -> float:
    return float(rows.max())


def middle(rows: np.ndarray) -> float:
    return float(np.median(rows))


def planned(fn: Callable[[np.ndarray], float], **options: Any) -> lc.Plan:
    return lc.plan(fn, ROWS, cap=lc.membership(0.6), worlds=256, mode="confidence", seed=1, **options)


def success(plan: lc.Plan, fn: Callable[[np.ndarray], float]) -> float:
    """Of the best attacker against the most exposed person, over all halves."""
    made: Any = plan.releaser
    answers = np.array([[fn(ROWS[half])] for half in HALVES])
    space = made.noise.space
    coordinates = np.clip((answers - space.centre) * space.scale @ space.directions.T, made.low, made.high)
    line = Line(coordinates[:, 0], made.noise.deviations[0], points=2001)
    return max(line.membership(mask) for mask in HALVES.T)


@pytest.mark.parametrize("fn", [decided_by_one, largest, middle])
def test_no_attacker_on_all_halves_beats_the_certificate(fn: Callable[[np.ndarray], float]) -> None:
    plan = planned(fn)
    certified = plan.certificate.membership_success
    assert success(plan, fn) <= certified + 1e-6
    assert 0.6 - 1e-6 <= certified <= 0.6
    assert (plan.exposure == certified).all()
    assert "trace" in plan.certificate.theorems


def test_a_planted_smaller_signal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a deviation were a third of what it is: somebody who decides alone is then recognised too often."""
    honest = BY_INFORMATION.signal_for
    monkeypatch.setattr(BY_INFORMATION, "signal_for", lambda cap, rate: 9 * honest(cap, rate))
    trace = BY_INFORMATION.trace_success
    monkeypatch.setattr(BY_INFORMATION, "trace_success", lambda signal, rate: trace(signal / 9, rate))
    plan = planned(decided_by_one)
    assert success(plan, decided_by_one) > plan.certificate.membership_success + 0.01


def test_the_noise_is_that_of_the_page() -> None:
    """Certified deviations as in Maurer and Pontil, times 3.95: added up anew from the answers."""
    plan = planned(middle)
    made: Any = plan.releaser
    rest = np.clip((plan.outputs[64:] - made.noise.space.centre) * made.noise.space.directions[0], made.low, made.high)
    margin = math.sqrt(2 * math.log(1 / 1e-6) / (len(rest) - 1))
    deviation = statistics.stdev(rest[:, 0].tolist()) + float(made.high[0] - made.low[0]) * margin
    assert made.noise.deviations[0] / deviation == pytest.approx(1 / norm.ppf(0.6), rel=1e-6)


def test_other_caps_keep_to_the_information_and_both_hold_together() -> None:
    alone = lc.plan(middle, ROWS, cap=lc.mutual_information(0.01), worlds=256, mode="confidence", seed=1)
    both = alone.recap([lc.mutual_information(0.01), lc.membership(0.6)])
    loose = alone.recap([lc.mutual_information(0.5), lc.membership(0.6)])
    assert both.noise.std == pytest.approx(alone.noise.std, rel=1e-6)
    assert loose.noise.std == pytest.approx(planned(middle).noise.std, rel=1e-6)
    for plan in (both, loose):
        assert all(one.certified <= one.limit for one in plan.certificate.capped)
    assert both.certificate.membership_success < 0.6
    nats = loose.certificate.mutual_information
    assert loose.certificate.membership_success < lc.convert.posterior(nats, 0.5), "the signal says more than the nats"


@pytest.mark.parametrize("rate", [1 / 3, 0.8])
def test_other_rates_need_less_noise_than_through_the_information(rate: float) -> None:
    plan = planned(middle, rate=rate)
    nats = plan.certificate.mutual_information
    pinsker = 0.5 + 0.5 * math.sqrt(nats / (2 * rate * (1 - rate)))
    assert plan.certificate.membership_success <= 0.6 < pinsker


def test_several_outputs_add_up() -> None:
    """Added up anew: noise variances against certified ones, over all directions, and the sampler on top."""
    plan = lc.plan(three, ROWS, cap=lc.membership(0.6), worlds=256, mode="confidence", seed=1, weights="equal")
    made: Any = plan.releaser
    space, total = made.noise.space, 0.0
    table = np.clip((plan.outputs[64:] - space.centre) @ space.directions.T, made.low, made.high)
    assert space.rank > 1
    for column, length, noise in zip(table.T, made.high - made.low, made.noise.deviations, strict=True):
        margin = math.sqrt(2 * math.log(space.rank / 1e-6) / (len(table) - 1))
        total += ((statistics.stdev(column.tolist()) + length * margin) / noise) ** 2
    expected = norm.cdf(math.sqrt(total)) + plan.certificate.sampler_distance
    assert plan.certificate.sampler_distance > 0
    assert plan.certificate.membership_success == pytest.approx(expected, abs=1e-11)


def three(rows: np.ndarray) -> np.ndarray:
    return np.array([rows.max(), np.median(rows), rows.std()])
