"""Proposed noise where the secret is a fresh half: against sums over all halves that share no code with the bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from tests.claims.noise import gaussian_oracle as oracle

POOL = np.random.default_rng(3).standard_normal((8, 2)) * [1.0, 0.4]
HALVES = oracle.halves(8)
CORRELATED = np.array([[1.0, 0.8], [0.8, 1.0]])
NEARLY_SINGULAR = np.array([[1.0, 0.995], [0.995, 1.0]])
PROPOSALS = [0.5 * np.eye(2), 2.0 * CORRELATED, 0.3 * CORRELATED, 0.3 * NEARLY_SINGULAR, np.diag([0.1, 4.0])]


def mean(rows: Any) -> Any:
    return rows.mean(axis=0)


@pytest.fixture(scope="module")
def plan() -> lc.Plan:
    return lc.plan(mean, POOL, cap=0.99, worlds=2048, seed=1, mode="confidence")


def truth(plan: lc.Plan, covariance: Any) -> float:
    """Of the best attacker on all 70 halves, with the answers cut as the release cuts them."""
    answers = np.array([mean(POOL[half]) for half in HALVES])
    space, low, high = plan.noise.space, plan.releaser.low, plan.releaser.high
    cut = space.lift(np.clip(np.array([space.project(one) for one in answers]), low, high))
    return float(oracle.membership(oracle.joint(cut, covariance, fine=121), HALVES))


def figure(found: Any) -> float:
    return float(found.capped[0].certified)


@pytest.mark.parametrize("covariance", PROPOSALS)
def test_no_attacker_on_all_halves_beats_what_is_certified_of_a_proposal(plan: lc.Plan, covariance: Any) -> None:
    found = lc.verify(plan, covariance)
    assert truth(plan, covariance) <= figure(found) + 1e-4
    assert found.kept == (figure(found) <= 0.99) and (found.plan is not None) == found.kept
    assert found.gamma_used == plan.certificate.gamma_used and found.attempt == plan.certificate.attempt


def test_a_planted_diagonal_that_is_larger_than_the_proposal_is_caught(plan: lc.Plan, monkeypatch: Any) -> None:
    sizes = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda one: 0 * sizes(one) + sizes(one)[..., -1:])
    missed = [truth(plan, one) > figure(lc.verify(plan, one)) + 1e-4 for one in PROPOSALS]
    assert any(missed)


def test_the_plans_own_noise_has_the_figures_of_the_plan(plan: lc.Plan) -> None:
    found = lc.verify(plan, plan.noise.covariance())
    assert found.kept
    assert figure(found) == pytest.approx(plan.certificate.capped[0].certified, rel=1e-6)
    assert found.certificate.mutual_information == pytest.approx(plan.certificate.mutual_information, rel=1e-6)


def test_releases_have_the_proposed_covariance_and_share_the_right_to_one() -> None:
    wide = 3.0 * CORRELATED
    plan = lc.plan(mean, POOL, cap=0.99, worlds=2048, seed=2, mode="confidence")
    proposed = lc.verify(plan, wide).plan
    assert np.allclose(proposed.noise.covariance(), wide)
    drawn = np.array([proposed.releaser.vector(proposed.randomness) for _ in range(4000)])
    answers = np.array([mean(POOL[half]) for half in HALVES])
    expected = wide + np.cov(answers.T)
    assert np.abs(np.cov(drawn.T) - expected).max() < 0.3
    assert np.abs(np.cov(drawn.T) - expected[::-1, ::-1] * [[1, -1], [-1, 1]]).max() > 2  # turned the wrong way
    faint = replace(proposed.noise, deviations=1e-6 * proposed.noise.deviations)
    one = replace(proposed.releaser, noise=faint, draw=lambda _: HALVES[7]).vector(proposed.randomness)
    assert np.allclose(one, answers[7], atol=1e-4)  # noise aside, the answer itself leaves
    proposed.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


@pytest.mark.parametrize(
    "noise",
    [np.diag([1.0, 0.0]), np.diag([1.0, -1.0]), np.eye(3), [[np.nan, 0], [0, 1]], 1e-9 * np.eye(2), "7.25"],
)
def test_what_is_no_noise_is_refused_and_no_value_is_quoted(plan: lc.Plan, noise: Any) -> None:
    with pytest.raises(lc.InputError) as refusal:
        lc.verify(plan, noise)
    assert "7.25" not in str(refusal.value)


class Law:
    def log_density(self, x: Any) -> Any:
        return -np.abs(x).sum(axis=1)

    def draw(self, rng: Any, size: int) -> Any:
        return rng.laplace(size=(size, 2))


@pytest.mark.parametrize("noise", [Law(), np.stack([np.eye(2)] * 2048)])
def test_noise_that_depends_on_worlds_nobody_has_seen_is_refused_with_the_reason(plan: lc.Plan, noise: Any) -> None:
    with pytest.raises(lc.InputError, match="never simulated"):
        lc.verify(plan, noise)


def test_coins_take_proposals_too() -> None:
    plan = lc.plan(np.median, POOL[:, 0], cap=0.99, worlds=2048, seed=1, mode="confidence", design="bits")
    found = lc.verify(plan, [[4.0]])
    assert found.kept and found.certificate.known_memberships == ((7, found.certificate.membership_success),)
