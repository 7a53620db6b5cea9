"""Several answers with seeds of their own from one secret half: what they tell adds up, and no more.

Exact figures are sums over all halves and all seeds of small pools (`seeds_oracle`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.planning.released import forget_released
from tests.claims.modes.seeds_oracle import distance_of_all, halves, information_of, laws, mean_distance, membership_of
from tests.refusals import refusal

X = np.round(np.random.default_rng(6).random((6, 2)), 3)
MASKS = halves(6)
KINDS = 2
OPTIONS: dict[str, Any] = {"mode": "confidence", "randomness": "secret", "seeds": 2, "worlds": 64}


def first(rows: np.ndarray, seed: int) -> float:
    return float(rows[:, 0].mean() + 0.2 * (seed % KINDS))


def second(rows: np.ndarray, *, random_state: int) -> float:
    return float(rows[:, 1].max() if random_state % KINDS else rows[:, 1].min())


def answers_of(fn: Callable[..., Any], name: str) -> np.ndarray:
    return np.array([[[fn(X[mask], **{name: kind})] for kind in range(KINDS)] for mask in MASKS])


def of_both(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Answers side by side for all pairs of seeds."""
    pairs = [np.concatenate([one[:, a], two[:, b]], axis=1) for a in range(KINDS) for b in range(KINDS)]
    return np.stack(pairs, axis=1)


def in_noise(plan: lc.Plan, answers: np.ndarray) -> np.ndarray:
    """What the mechanism of a part makes of answers, in its noise deviations."""
    ball = plan.releaser.ball
    return ball.cut(ball.stretched(answers)) / (plan.noise.deviations * ball.stretch)


def joint(*caps: float) -> tuple[lc.JointPlan, tuple[lc.Plan, ...]]:
    forget_released()
    made = lc.plan_together([first, second], X, cap=lc.mutual_information(0.5), **OPTIONS)
    return made, made.apart(*(lc.mutual_information(cap) for cap in caps)) if caps else ()


def test_answers_with_seeds_of_their_own_tell_no_more_than_the_sum() -> None:
    made, (one, two) = joint(0.3, 0.15)
    composed = made.composed()
    assert composed.mutual_information == pytest.approx(0.45, rel=1e-3)
    assert composed.confidence == pytest.approx(1 - 1e-6)
    assert composed.membership_success <= norm.cdf(math.sqrt(0.45)) + 1e-6
    answers = of_both(
        in_noise(one, answers_of(first, "seed")),
        in_noise(two, answers_of(second, "random_state")),
    )
    law = laws(answers, 1.0, points=121)
    assert information_of(law) <= composed.mutual_information
    assert membership_of(law, MASKS) <= composed.membership_success


@pytest.mark.parametrize("number", range(12))
def test_distances_of_two_answers_add_up_in_random_games(number: int) -> None:
    own = np.random.default_rng(number)
    one, two = (own.normal(size=(6, 2, 1)) * own.choice([0.2, 1.0]) for _ in range(2))
    told = sum(mean_distance(part, 2) for part in (one, two)) / 2
    law = laws(of_both(one, two), 1.0, points=101)
    assert information_of(law) <= told + 1e-6
    assert membership_of(law, halves(4)) <= norm.cdf(math.sqrt(told)) + 1e-6


def test_a_planted_seed_that_functions_share_is_caught() -> None:
    """The twin: a bit under a one-time pad, and the pad. Each alone tells nothing; with one seed both tell the bit."""
    bit = halves(4)[:, 0].astype(float)
    padded = np.stack([bit, 1 - bit], axis=1)[:, :, None]  # for the pads 0 and 1
    pad = np.broadcast_to([[[0.0], [1.0]]], padded.shape)
    told = sum(distance_of_all(part) for part in (padded, pad))
    apart = information_of(laws(of_both(padded, pad), 0.2, points=201))
    shared = information_of(laws(np.concatenate([padded, pad], axis=2), 0.2, points=201))
    assert told == 0
    assert apart == pytest.approx(0, abs=1e-9)
    assert shared == pytest.approx(math.log(2), rel=0.05)


def test_parts_have_one_half_and_seeds_of_their_own() -> None:
    ran: list[tuple[bytes, int]] = []

    def noted(rows: np.ndarray, *, seed: int) -> float:
        ran.append((rows.tobytes(), seed))
        return float(rows.mean())

    forget_released()
    parts = lc.plan_together([noted, noted, noted], X, cap=0.7, **OPTIONS).apart(0.7)
    ran.clear()
    for part in parts:
        part.release()
    assert len(ran) == 3, "each function is run once, on its own"
    assert len({half for half, _ in ran}) == 1
    assert len({seed for _, seed in ran}) == 3
    assert len({part.certificate.secret_id for part in parts}) == 1


def test_the_joint_answer_has_a_seed_for_each_function() -> None:
    ran: list[int] = []

    def noted(rows: np.ndarray, *, seed: int) -> float:
        ran.append(seed)
        return float(rows.mean())

    forget_released()
    made = lc.plan_together([noted, noted], X, cap=0.7, **OPTIONS)
    ran.clear()
    assert len(made.release().value) == 2
    assert len(set(ran)) == len(ran) == 2


def test_a_fresh_half_is_not_one_of_the_simulated_ones() -> None:
    """Its information may be more than the logarithm of how many were simulated."""
    wide = np.random.default_rng(1).random((40, 2))
    forget_released()
    made = lc.plan_together([first, second], wide, cap=lc.mutual_information(9.0), **OPTIONS)
    made.apart(lc.mutual_information(3.0))
    assert made.composed().mutual_information == pytest.approx(6.0, rel=1e-2)
    assert math.log(64) < 6.0 * 0.99


def test_what_does_not_add_up_is_refused() -> None:
    made, (one, two) = joint(0.2, 0.2)
    refusal(made.information_of_parts, "no covariance")
    alone = lc.plan(first, X, cap=0.7, **OPTIONS).certificate
    refusal(lambda: lc.compose(alone, one.certificate, data="same"), "different secrets")
    one.release()
    refusal(lambda: two.recap(lc.mutual_information(0.3)), "a part was released already")
    refusal(lambda: lc.plan_together([first, np.mean], X, cap=0.7, **OPTIONS), "takes its seed by name")


def test_of_independent_data_information_adds_up_and_one_person_is_guessed_no_better() -> None:
    both = [lc.plan(first, X, cap=lc.mutual_information(cap), **OPTIONS).certificate for cap in (0.1, 0.2)]
    composed = lc.compose(*both, data="independent")
    assert composed.mutual_information == pytest.approx(sum(one.mutual_information for one in both))
    assert composed.membership_success == max(one.membership_success for one in both)
    assert composed.confidence == pytest.approx(1 - 2e-6, abs=1e-9)


# One after the other


def online(**options: Any) -> lc.Online:
    forget_released()
    return lc.Online(X, **{"radius": 1.5, "steps": 2, "pairs": 256, "confidence": 0.999, "seeds": 2, **options})


def test_questions_with_seeds_keep_every_budget() -> None:
    asked = online()
    one, two = asked.ask(first, 0.2), asked.ask(second, 0.5)
    answers = of_both(
        answers_of(first, "seed") / one.noise.std,
        answers_of(second, "random_state") / two.noise.std,
    )
    assert information_of(laws(answers[:, ::2, :1], 1.0, points=2001)) <= 0.2
    assert information_of(laws(answers, 1.0, points=121)) <= 0.5
    assert len(asked.release()) == 2
    assert "with 2 seeds each" in " ".join(str(two.certificate).split())
    assert lc.Certificate.from_json(two.certificate.to_json()) == two.certificate


def test_every_question_has_a_seed_of_its_own() -> None:
    ran: list[int] = []

    def noted(rows: np.ndarray, *, seed: int) -> float:
        ran.append(seed)
        return float(rows.mean())

    asked = online()
    asked.ask(noted, 0.2)
    asked.ask(noted, 0.5)
    assert len(set(ran)) > 900, "and so have the pairs"
    ran.clear()
    asked.release()
    assert len(set(ran)) == len(ran) == 2
    refusal(lambda: online(seeds=1), "2 or more")
    refusal(lambda: online().ask(np.mean, 0.2), "takes its seed by name")
