"""Secret seeds: the mean distance of matched answers bounds what every attacker learns, and its bound holds as often.

Exact figures are sums over all halves and all seeds of small pools (`seeds_oracle`). Generators are fixed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.leakage import permuted
from leakcap.leakage.trace import trace_success
from leakcap.modes import NoiseSettings
from leakcap.modes import seeds as mode
from leakcap.planning import secret_seeds
from leakcap.worlds import Worlds
from tests.claims.modes.seeds_oracle import balanced_of, halves, information_of, laws, mean_distance, membership_of
from tests.later import others_later

rng = np.random.default_rng(5)
X = np.round(rng.random((6, 2)), 3)
MASKS = halves(6)
KINDS = 4  # of seeds that the functions below know: 2^32 is a multiple
SLIP = 1e-6  # what the grid may be off by
OPTIONS: dict[str, Any] = {"mode": "confidence", "randomness": "secret", "seeds": 2, "worlds": 64}


def by_kind(rows: np.ndarray, seed: int) -> np.ndarray:
    """The seed says which order statistic is taken, and shifts it."""
    kind = seed % KINDS
    return np.sort(rows[:, 0])[[kind % 3]] + 0.1 * kind


def in_the_plane(rows: np.ndarray, seed: int) -> np.ndarray:
    kind = seed % KINDS
    return rows.mean(axis=0) * (1.0 + kind) + [0.0, 0.3 * kind]


def even(rows: np.ndarray, seed: int) -> float:
    """The same for a half and its complement, and nothing but for one kind of seed in four."""
    return abs(rows[:, 0].mean() - X[:, 0].mean()) if seed % KINDS == 0 else 0.0


def all_answers(fn: Callable[..., Any]) -> np.ndarray:
    """`(halves, kinds, d)`."""
    return np.array([[np.atleast_1d(fn(X[mask], seed=kind)) for kind in range(KINDS)] for mask in MASKS])


def mapped(plan: lc.Plan, fn: Callable[..., Any]) -> tuple[np.ndarray, float]:
    """What the mechanism makes of all answers, and the deviation of the noise there."""
    ball = plan.releaser.ball
    deviation = plan.noise.deviations * ball.stretch
    assert np.allclose(deviation, deviation[0])
    return ball.cut(ball.stretched(all_answers(fn))), float(deviation[0])


# The inequalities


@pytest.mark.parametrize("number", range(60))
def test_no_attacker_learns_more_than_the_mean_distance_allows(number: int) -> None:
    """Random games of six halves of four people and four seeds, in which halves and seeds matter more or less."""
    own = np.random.default_rng(number)
    answers = own.normal(size=(6, 4, 1)) * own.choice([0.1, 1.0]) + own.normal(size=(6, 1, 1)) * own.choice(
        [0.0, 0.3, 1]
    )
    answers = answers + own.normal(size=(1, 4, 1)) * own.choice([0.0, 2.0])
    deviation, tau = own.choice([0.3, 1.0, 3.0]), int(own.integers(1, 4))
    told = mean_distance(answers, tau) / (2 * deviation**2)
    law = laws(answers, deviation, points=2001)
    assert information_of(law) <= told + SLIP
    assert membership_of(law, halves(4)) <= norm.cdf(math.sqrt(told)) + SLIP


@pytest.mark.parametrize("number", range(20))
def test_other_rates_keep_the_bound_on_balanced_guesses(number: int) -> None:
    """Parts of two among six, q = 1/3."""
    own, masks = np.random.default_rng(number), halves(6, 2)
    answers = own.normal(size=(15, 3, 1)) * own.choice([0.1, 1.0]) + masks[:, :1, None] * own.choice([0.0, 1.0])
    told = mean_distance(answers, 2) / (2 * 0.8**2)
    assert balanced_of(laws(answers, 0.8, points=2001), masks) <= trace_success(told, 1 / 3) + SLIP
    assert trace_success(told, 1 / 3) == pytest.approx(norm.cdf(math.sqrt(told / (4 * 2 / 9))))


def test_the_bound_on_a_bit_is_attained_and_half_of_it_is_not_enough() -> None:
    """One person decides the answer, the seed nothing: the twin, half the distance, is beaten."""
    masks = halves(4)
    answers = np.repeat(masks[:, :1, None].astype(float), 3, axis=1)
    psi = mean_distance(answers, 2)
    assert psi == pytest.approx(2 * answers[:, 0].var())
    success = membership_of(laws(answers, 2.0, points=4001), masks)
    assert success == pytest.approx(norm.cdf(math.sqrt(psi / 2) / 2.0), abs=SLIP)
    assert success > norm.cdf(math.sqrt(psi / 4) / 2.0) + 0.01


def test_a_planted_quarter_of_the_information_is_caught() -> None:
    """The twin of the bound on the information, which is at most twice what is there where noise is large."""
    answers = np.repeat(halves(4)[:, :1, None].astype(float), 3, axis=1)
    told = mean_distance(answers, 2) / (2 * 3.0**2)
    found = information_of(laws(answers, 3.0, points=4001))
    assert told / 4 < found <= told


def test_a_planted_match_with_the_nearest_is_caught() -> None:
    """The twin of the assignment: the nearest answer for every seed, which may be the same one for several.

    One half says 1 for one seed of four, the other for three: whatever is said, the nearest is the same.
    """
    answers = np.array([[[0.0], [0.0], [0.0], [1.0]], [[0.0], [1.0], [1.0], [1.0]]])
    found = information_of(laws(answers, 0.1, points=4001))
    gaps = ((answers[:, None, :, None] - answers[None, :, None, :]) ** 2).sum(axis=-1)
    assert gaps.min(axis=3).max() == 0 < found
    assert found <= mean_distance(answers, 3) / (2 * 0.1**2)


def test_more_seeds_never_lie_farther_apart() -> None:
    answers = np.random.default_rng(3).normal(size=(6, 4, 2))
    found = [mean_distance(answers, tau) for tau in (1, 2, 3, 4)]
    assert found == sorted(found, reverse=True)


def test_a_known_seed_tells_no_less_and_its_log_dets_bound_that() -> None:
    """Corollary 2 of PAC Privacy, by sums."""
    answers = np.random.default_rng(4).normal(size=(6, 4, 1))
    known = np.mean([information_of(laws(answers[:, [kind]], 0.7, points=2001)) for kind in range(4)])
    by_log_det = np.mean(0.5 * np.log1p(answers[:, :, 0].var(axis=0) / 0.7**2))
    assert information_of(laws(answers, 0.7, points=2001)) <= known <= by_log_det + SLIP


# The arithmetic


def test_distances_are_the_least_over_all_orders() -> None:
    pairs = np.random.default_rng(1).normal(size=(20, 2, 4, 3))
    found = permuted.permuted_distances(pairs)
    for (first, second), one in zip(pairs, found, strict=True):
        every = [((first - second[list(order)]) ** 2).sum() / 4 for order in itertools.permutations(range(4))]
        assert one == pytest.approx(min(every), rel=1e-9)
        assert one >= min(every)


def too_many(failed: int, runs: int, gamma: float) -> bool:
    """False alarms: one in ten thousand for a bound that fails as often as it may."""
    return failed > binom.isf(1e-4, runs, gamma)


def failures(bound: Callable[..., float], runs: int = 600, gamma: float = 0.1) -> int:
    """How often the expectation of all-or-nothing distances lies above its bound from 40 pairs."""
    own = np.random.default_rng(8)
    return sum(bound(4.0 * (own.random(16) < 0.3), 4.0 * (own.random(40) < 0.3), 4.0, gamma) < 1.2 for _ in range(runs))


def test_the_mean_of_bounded_distances_is_below_its_bound_as_often_as_stated() -> None:
    assert not too_many(failures(permuted.distance_upper), 600, 0.1)
    assert too_many(failures(lambda pilot, seen, most, gamma: seen.mean()), 600, 0.1), "the twin: no slack"

    def with_third(pilot: np.ndarray, seen: np.ndarray, most: float, gamma: float) -> float:
        return float(seen.mean() + (permuted.distance_upper(pilot, seen, most, gamma) - seen.mean()) / 3)

    assert too_many(failures(with_third), 600, 0.1), "the twin: a third of it"
    by_pilot = failures(lambda pilot, seen, most, gamma: permuted.distance_upper(seen, seen, most, 0.9))
    assert too_many(by_pilot, 600, 0.1), "the twin: another gamma"


def pairs_of(pilot: list[float], seen: list[float]) -> mode.SeededPairs:
    """Pairs of one answer each, at zero and elsewhere, with two seeds that change nothing."""
    clouds = [np.array([[[0.0]] * 2, [[one]] * 2]) for one in (*pilot, *seen)]
    return mode.SeededPairs(np.array(clouds[: len(pilot)]), np.array(clouds[len(pilot) :]))


def settings(**options: Any) -> NoiseSettings:
    usual: dict[str, Any] = {"shape": "isotropic", "floor": 0.0, "weights": None, "draws": None, "machine": Machine()}
    return NoiseSettings(**usual | {"seeded": False, "public": (), "pool_public": ()} | options)


def test_distances_may_be_as_long_as_the_ball_is_wide() -> None:
    """The pilot shows -1 and 1, and all pairs are two radii apart: so is the bound."""
    clouds = np.array([[[[-1.0]] * 2, [[1.0]] * 2]] * 80)
    found = mode.measured(mode.SeededPairs(clouds[:16], clouds[16:]), settings(), 0.1)
    assert found.ball.radius == pytest.approx(1)
    assert found.seen == pytest.approx(4)
    assert found.distance == pytest.approx(4)


def test_the_stake_is_placed_by_the_pilot_alone() -> None:
    """Another order of the same measured pairs, or other ones of the same distances, leave the stake as it is."""
    placed: list[Any] = []
    usual = permuted.Wagers.placed

    class Noted(permuted.Wagers):
        @classmethod
        def placed(cls, *args: Any, **options: Any) -> Any:
            placed.append(args[:2])
            return usual(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permuted, "Wagers", Noted)
        for seen in ([0.1] * 40, [0.9] * 40):
            mode.measured(pairs_of([0.2, 1.0] * 8, seen), settings(), 0.1)
    assert placed[0] == placed[1]


def test_a_long_answer_is_cut_to_the_ball() -> None:
    made = lc.plan(lambda rows, seed: rows.mean(axis=0), X, cap=lc.mutual_information(0.5), **OPTIONS)

    class Still:
        def below(self, n: int) -> int:
            return 0

        def normals(self, size: int) -> np.ndarray:
            return np.zeros(size)

    far = replace(made.releaser, rerun=lambda world, seed: np.full(2, 1e6), draw=lambda source: MASKS[0])
    ball, space = far.ball, far.noise.space
    moved = (far.vector(Still()) - space.centre) * space.scale @ space.directions.T * ball.stretch
    assert np.linalg.norm(moved) <= ball.radius * 1.01
    none = replace(far, rerun=lambda world, seed: None)
    assert none.vector(Still()) == pytest.approx(space.centre)


# Through plans


def failed_plans(fn: Callable[..., Any], runs: int, **options: Any) -> int:
    """Of so many plans, those whose certificate states less than half the true mean distance, in noise deviations."""
    failed = 0
    for number in range(runs):
        plan = lc.plan(fn, X, cap=lc.mutual_information(0.5), seed=number, **OPTIONS | {"confidence": 0.9} | options)
        if not plan.noise.space.rank:  # the pilot has seen nothing move: the centre leaves, whatever the half
            continue
        answers, deviation = mapped(plan, fn)
        failed += mean_distance(answers, 2) / (2 * deviation**2) > plan.certificate.signal * (1 + 1e-9)
    return failed


RUNS = 60
FEW, MANY = 20, 640  # plans, and worlds in each: there slack is small and cannot make up for a fault


@pytest.mark.parametrize("fn", [by_kind, even, in_the_plane])
def test_certificates_fail_no_more_often_than_they_say(fn: Callable[..., Any]) -> None:
    assert not too_many(failed_plans(fn, RUNS), RUNS, 0.1)


# `even` is the function of the planted faults below.
@pytest.mark.parametrize("fn", others_later([by_kind, even, in_the_plane], even))
def test_certificates_of_many_worlds_fail_no_more_often_than_they_say(fn: Callable[..., Any]) -> None:
    assert not too_many(failed_plans(fn, FEW, worlds=MANY), FEW, 0.1)
    assert not too_many(failed_plans(fn, FEW, worlds=MANY, confidence=0.5), FEW, 0.5)


def test_a_planted_mean_without_slack_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mode, "distance_upper", lambda pilot, seen, most, gamma: float(seen.mean()))
    assert too_many(failed_plans(even, RUNS), RUNS, 0.1)


def test_planted_complements_counted_as_independent_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    independent = secret_seeds.independent_worlds

    def complements(n: int, m: int, *rest: Any, **options: Any) -> Worlds:
        drawn = independent(n, m, *rest, **options)
        masks = np.array([drawn.mask(k) for k in range(m)])
        masks[1::2] = ~masks[0::2]
        return Worlds(np.packbits(masks, axis=1), n, drawn.share, paired=False, design=drawn.design)

    monkeypatch.setattr(secret_seeds, "independent_worlds", complements)
    assert too_many(failed_plans(even, FEW, worlds=MANY), FEW, 0.1)


def test_planted_seeds_that_all_pairs_share_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeating:
        def __init__(self, source: np.random.Generator) -> None:
            self.source = source

        def __getattr__(self, name: str) -> Any:
            return getattr(self.source, name)

        def integers(self, *limits: Any, size: Any = None, **how: Any) -> Any:
            drawn = self.source.integers(*limits, size=size, **how)
            if np.ndim(drawn) == 3:
                drawn[40:] = drawn[40]  # after the pilot
            return drawn

    stream = secret_seeds.stream
    monkeypatch.setattr(secret_seeds, "stream", lambda *number: Repeating(stream(*number)))
    assert too_many(failed_plans(even, FEW, worlds=MANY), FEW, 0.1)


@pytest.mark.parametrize("shape", ["isotropic", "best"])
@pytest.mark.parametrize("fn", [by_kind, even, in_the_plane])
def test_no_attacker_on_all_halves_and_seeds_beats_the_certificate(fn: Callable[..., Any], shape: str) -> None:
    plan = lc.plan(fn, X, cap=[lc.mutual_information(0.2), lc.membership(0.65)], shape=shape, **OPTIONS)
    answers, deviation = mapped(plan, fn)
    law = laws(answers, deviation)
    assert information_of(law) <= plan.certificate.mutual_information <= 0.2
    assert membership_of(law, MASKS) <= plan.certificate.membership_success <= 0.65


def test_a_release_is_one_run_on_a_fresh_half_with_a_fresh_seed() -> None:
    """And what leaves has the law that was certified: its mean over many trials is that of all halves and seeds."""
    ran: list[tuple[bytes, int]] = []

    def noted(rows: np.ndarray, *, seed: int) -> np.ndarray:
        ran.append((rows.tobytes(), seed))
        return by_kind(rows, seed)

    plan = lc.plan(noted, X, cap=lc.mutual_information(1.0), **OPTIONS)
    answers, deviation = mapped(plan, by_kind)
    space, ball = plan.noise.space, plan.releaser.ball
    ran.clear()
    got = np.array([plan.releaser.vector(plan.randomness) for _ in range(4000)])
    assert len(ran) == 4000
    assert len({half for half, _ in ran}) == len(MASKS)
    assert len({seed for _, seed in ran}) > 3990, "seeds come from all of 2^32"
    assert set(np.bincount([seed % KINDS for _, seed in ran]) // 800) == {1}, "a false alarm in 10^10"
    moved = (got - space.centre) @ space.directions.T * ball.stretch
    spread = math.sqrt(answers.var() + deviation**2)
    assert moved.mean() == pytest.approx(answers.mean(), abs=5 * spread / math.sqrt(4000))
    assert moved.std() == pytest.approx(spread, rel=0.06)


def test_a_function_that_ignores_its_seed_has_twice_the_variance_of_its_answers() -> None:
    plan = lc.plan(
        lambda rows, seed: rows.mean(axis=0), X, cap=lc.membership(0.6), shape="isotropic", **OPTIONS | {"worlds": 4096}
    )
    answers = all_answers(lambda rows, seed: rows.mean(axis=0))
    inside, deviation = mapped(plan, lambda rows, seed: rows.mean(axis=0))
    assert mean_distance(answers, 2) == pytest.approx(2 * answers[:, 0].var(axis=0).sum())
    by_trace = math.sqrt(inside[:, 0].var(axis=0).sum()) / norm.ppf(0.6)
    assert by_trace <= deviation <= 1.15 * by_trace


def test_a_function_that_is_all_seed_pays_for_the_unseen_alone() -> None:
    """Its noise falls with the number of pairs, in variance like one over it."""

    def all_seed(rows: np.ndarray, *, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).random(2)

    few, many = (
        lc.plan(all_seed, X, cap=lc.membership(0.6), shape="isotropic", **OPTIONS | {"worlds": worlds})
        for worlds in (256, 4096)
    )
    for plan in (few, many):
        assert "Nearly all of the noise is for pairs that were not seen" in " ".join(str(plan.certificate).split())
    assert 5 < (few.noise.std / many.noise.std) ** 2 < 40  # 16, but for the radius, which a few answers fix
