"""Compositions bound what brute force finds on small pools, for one person, for any task and in information."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.composition import Composition
from leakcap.planning.released import forget_released
from tests.claims.certificates.brute_force import at_any_task, information, membership

WORLDS = 8
pytestmark = pytest.mark.usefixtures("few_draws")
GRID_ERROR = 1e-6  # of the brute force
PEOPLE = np.random.default_rng(3).normal(size=(12, 2))
OTHERS = np.random.default_rng(4).normal(size=(10, 2))


def first(rows: np.ndarray) -> float:
    return float(rows[:, 0].mean())


def second(rows: np.ndarray) -> float:
    return float(rows[:, 1].mean())


def answers(*plans: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every world's answers side by side, and the deviations of their noise."""
    return np.hstack([plan.outputs for plan in plans]), np.array([plan.noise.std for plan in plans])


@cache
def apart(cap: float) -> Any:
    forget_released()
    both = lc.plan_together([first, second], PEOPLE, cap=lc.mutual_information(1.0), worlds=WORLDS)
    both.apart(lc.mutual_information(cap))
    return both


@cache
def independent() -> tuple[Any, Any]:
    return tuple(  # type: ignore[return-value]
        lc.plan(first, data, cap=lc.mutual_information(nats), worlds=WORLDS)
        for data, nats in ((PEOPLE, 0.3), (OTHERS, 0.15))
    )


# One secret


@pytest.mark.parametrize("cap", [0.05, 0.3, 0.8])
def test_answers_of_one_secret_tell_no_more_than_the_sum(cap: float) -> None:
    both = apart(cap)
    means, deviations = answers(*both.parts)
    composed = both.composed()
    assert information(means, deviations) <= composed.mutual_information
    assert information(means, deviations) <= both.information_of_parts() + 1e-9
    assert membership(means, deviations, both.plan.worlds.masks()) <= composed.membership_success
    assert at_any_task(means, deviations, 1 / WORLDS) <= composed.posterior(1 / WORLDS)


def test_the_sum_is_near_what_is_told_where_noise_is_large() -> None:
    both = apart(0.05)
    assert information(*answers(*both.parts)) > 0.8 * both.composed().mutual_information


def test_the_joint_covariance_bounds_no_worse_than_the_sum() -> None:
    for cap in (0.05, 0.3, 0.8):
        both = apart(cap)
        assert both.information_of_parts() <= both.composed().mutual_information + 1e-9


def test_one_noise_for_all_answers_is_less_than_one_for_each() -> None:
    """Two answers that go together: analysed as one they need less noise for the same information."""
    both = lc.plan_together([first, lambda rows: first(rows) + 0.1 * second(rows)], PEOPLE, cap=JOINT, worlds=WORLDS)
    parts = both.apart(lc.mutual_information(0.25))
    assert both.composed().mutual_information == pytest.approx(0.5, rel=0.01)
    assert both.noise.std < 0.9 * np.hypot(*(part.noise.std for part in parts))


JOINT = lc.mutual_information(0.5)


def test_a_planted_rule_that_takes_the_larger_one_is_caught() -> None:
    both = apart(0.3)
    larger = max(part.certificate.log_det for part in both.parts)
    assert information(*answers(*both.parts)) > larger


def test_planted_noise_that_parts_share_is_caught() -> None:
    """Why parts have noise of their own: with one draw for two answers their difference tells the world."""
    means, deviation = np.array([[0.0], [1.0]]), 2.0
    alone = information(means, np.array([deviation]))
    # Answers y and -y with noise b and b: their difference is 2y, here with a tenth of the noise left.
    together = information(2 * means, np.array([0.1 * deviation]))
    assert together > 10 * 2 * alone


# Independent data


def pairs_of_worlds(plans: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, deviations and masks of everybody in both data sets, for all pairs of worlds."""
    one, two = np.meshgrid(np.arange(WORLDS), np.arange(WORLDS), indexing="ij")
    one, two = one.ravel(), two.ravel()
    means = np.column_stack([plans[0].outputs[one, 0], plans[1].outputs[two, 0]])
    masks = np.hstack([plans[0].worlds.masks()[one], plans[1].worlds.masks()[two]])
    return means, np.array([plan.noise.std for plan in plans]), masks


def composed_independent() -> Composition:
    return lc.compose(*(plan.certificate for plan in independent()), data="independent")


def test_independent_releases_tell_the_sum_and_no_more_of_one_person() -> None:
    plans, composed = independent(), composed_independent()
    means, deviations, masks = pairs_of_worlds(plans)
    told = information(means, deviations)
    each = [information(plan.outputs, np.array([plan.noise.std])) for plan in plans]
    assert told == pytest.approx(sum(each), rel=1e-3)
    assert told <= composed.mutual_information + GRID_ERROR
    success = membership(means, deviations, masks)
    alone = max(membership(plan.outputs, np.array([plan.noise.std]), plan.worlds.masks()) for plan in plans)
    assert success == pytest.approx(alone, abs=1e-3)
    assert success <= composed.membership_success
    for prior in (1 / 64, 8 / 64, 0.5):
        assert at_any_task(means, deviations, prior) <= composed.posterior(prior)


def test_a_planted_task_bound_from_the_larger_information_is_caught() -> None:
    """The twin: of two releases with like information, the larger one alone is below what both tell."""
    means, deviations, _ = pairs_of_worlds(independent())
    assert information(means, deviations) > max(plan.certificate.mutual_information for plan in independent())


def test_confidence_is_shared() -> None:
    gammas = [plan.certificate.gamma for plan in independent()]
    assert composed_independent().confidence <= 1 - sum(gammas)
    assert composed_independent().confidence == pytest.approx(1 - sum(gammas), abs=1e-12)


# Why two secrets of the same data do not add up


def test_two_secrets_of_the_same_data_show_who_is_in_the_pool() -> None:
    """Averages over many secrets approach the pool's own statistic, which hides nobody: nothing there adds up."""
    rng, spread = np.random.default_rng(0), 1.0
    with_person, without = np.append(np.zeros(9), 10.0), np.zeros(10)
    success = {}
    for secrets in (1, 64):
        seen = [
            np.mean([rng.permutation(pool)[:5].mean() + spread * rng.normal() for _ in range(secrets)])
            for pool in [with_person] * 300 + [without] * 300
        ]
        right = np.array(seen) > 0.5
        success[secrets] = (right[:300].mean() + (~right[300:]).mean()) / 2
    assert success[1] < 0.8
    assert success[64] > 0.95


def test_the_same_data_with_two_secrets_is_refused() -> None:
    plans = [lc.plan(first, PEOPLE, cap=0.7, worlds=WORLDS) for _ in range(2)]
    with pytest.raises(lc.InputError, match="fresh secrets do not add up"):
        lc.compose(*(plan.certificate for plan in plans), data="same")
