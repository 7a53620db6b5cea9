"""`mode="individual"` by sampled swaps: brute force over all parts of pools of up to twelve people, ridge included.

Answers, coordinates and success are computed here from the data, by code that the bound does not share; integrals are
exact to 1e-5. Certificates hold with confidence 1 - 1e-6, so comparisons need no other false-alarm rate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.leakage import couplings
from leakcap.modes import swapped
from tests.claims.leakage.test_swaps import best_balanced
from tests.claims.worlds import laws

RNG = np.random.default_rng(8)
TALL = np.concatenate([RNG.standard_normal(11), [9.0]])
TARGET = 2 * TALL + RNG.standard_normal(12)
TARGET[4] = -6.0


def ridge(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    apart = rows - rows.mean()
    slope = apart @ target / (apart @ apart + 1.0)
    return np.array([slope, target.mean() - slope * rows.mean()])


def middle(rows: np.ndarray) -> float:
    return float(np.median(rows))


CASES: dict[str, tuple[int, Any, tuple[Any, ...], dict[str, Any]]] = {
    "variance": (12, lc.stats.variance, (TALL[:, None],), {}),
    "median": (12, lc.stats.median, (TALL[:, None],), {}),
    "quartile of an odd pool": (11, functools.partial(lc.stats.quantile, q=0.25), (TALL[1:, None],), {}),
    "median of strata": (10, lc.stats.median, (TALL[2:, None],), {"strata": np.arange(10) % 2}),
    "covariance of thirds": (9, lc.stats.covariance, (TALL[3:, None],), {"rate": 1 / 3}),
    "ridge, run again": (10, ridge, (TALL[2:], TARGET[2:]), {"weights": "equal"}),
    "median, run again": (12, middle, (TALL,), {}),
}


@functools.cache
def planned(name: str) -> lc.Plan:
    _, fn, data, options = CASES[name]
    common = {"mode": "individual", "worlds": 64, "seed": 1, "draws": 512}
    return lc.plan(fn, *data, cap=lc.membership(0.7), **common | options)


def worlds_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    n, _, _, options = CASES[name]
    if "strata" in options:
        return laws.table(laws.stratified_halves(options["strata"].tolist()), n)
    return laws.table(laws.thirds(n) if "rate" in options else laws.halves(n), n)


def answers_of(plan: lc.Plan, masks: np.ndarray, data: tuple[Any, ...], fn: Callable[..., Any]) -> np.ndarray:
    """What is noised, in noise deviations, for every part."""
    made: Any = plan.releaser
    space = made.noise.space
    raw = np.array([np.ravel(fn(*(part[mask] for part in data))) for mask in masks])
    found = ((raw - space.centre) * space.scale) @ space.directions.T
    return np.clip(found, made.low, made.high) / made.noise.deviations


def truth(plan: lc.Plan, name: str) -> np.ndarray:
    _, fn, data, _ = CASES[name]
    masks, chances = worlds_of(name)
    return best_balanced(masks, chances, answers_of(plan, masks, data, fn))


def test_no_attacker_beats_the_certificate_of_a_ridge_regression_by_updates() -> None:
    """The estimator's own plan: scores along the pool's spread and at its mean, and swaps by updates of rank two."""
    rows, target = TALL[2:], TARGET[2:]
    options = {"mode": "individual", "draws": 512}
    made = lc.estimators.Ridge(1.0, cap=lc.membership(0.7), worlds=64, random_state=1, options=options)
    plan = made.fit(rows[:, None], target).plan_
    assert plan.run.swapped is not None and not plan.run.swapped.costly

    def scores(rows_in: np.ndarray, target_in: np.ndarray) -> np.ndarray:
        slope, intercept = ridge(rows_in, target_in)
        sign = np.sign(plan.run.simulation.table[0, 0]) * np.sign(ridge(*(part[first] for part in (rows, target)))[0])
        return np.array([sign * slope * rows.std(), intercept + slope * rows.mean()]) / target.std()

    first = plan.run.worlds.mask(0)
    assert scores(rows[first], target[first]) == pytest.approx(plan.run.simulation.table[0], rel=1e-9)
    masks, chances = laws.table(laws.halves(10), 10)
    found = best_balanced(masks, chances, answers_of(plan, masks, (rows, target), scores))
    assert (found <= plan.exposure + 1e-5).all()
    assert plan.certificate.membership_success <= 0.7


@pytest.mark.parametrize("name", CASES)
def test_no_attacker_beats_the_certificate_over_all_parts(name: str) -> None:
    plan = planned(name)
    assert (truth(plan, name) <= plan.exposure + 1e-5).all()
    assert plan.exposure.max() == pytest.approx(plan.certificate.membership_success)
    assert plan.certificate.membership_success <= 0.7
    assert plan.certificate.theorems[0] == "sampled-swaps"


@pytest.mark.parametrize("name", ["variance", "ridge, run again"])
def test_the_bound_is_the_mean_over_all_swaps_and_a_margin(name: str) -> None:
    """Every half, everybody in it, everybody outside: the mean that is sampled, enumerated."""
    plan = planned(name)
    _, fn, data, _ = CASES[name]
    masks, _ = worlds_of(name)
    answers = answers_of(plan, masks, data, fn)
    place = {mask.tobytes(): number for number, mask in enumerate(masks)}
    for unit in (0, masks.shape[1] - 1):
        told = []
        for number, mask in enumerate(masks):
            for other in np.flatnonzero(~mask) if mask[unit] else ():
                after = mask.copy()
                after[unit], after[other] = False, True
                told.append(answers[number] - answers[place[after.tobytes()]])
        mean = norm.cdf(np.linalg.norm(told, axis=1) / 2).mean()
        assert mean <= plan.exposure[unit] <= mean + 0.12


def made_by(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]) -> lc.Plan:
    honest = couplings.swap_means
    monkeypatch.setattr(couplings, "swap_means", lambda *given, **options: fault(honest, *given, **options))
    try:
        return planned.__wrapped__("variance")
    finally:
        monkeypatch.undo()


def halved(honest: Any, source: Any, deviations: Any, *rest: Any, **options: Any) -> Any:
    return honest(source, 2 * deviations, *rest, **options)


def test_planted_shorter_distances_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances half of what they are; the search for the noise believes them."""
    monkeypatch.setattr(
        "leakcap.noise.couplings.lengths_of",
        lambda moved, shape: np.linalg.norm(moved.steps / shape, axis=1) / 2,
    )
    plan = made_by(monkeypatch, halved)
    assert (truth(plan, "variance") > plan.exposure + 0.02).any()


def test_certifying_worlds_were_never_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those that chose the noise nor those of another attempt; the planted twin uses some again."""
    rows = np.random.default_rng(0).standard_normal((80, 1))
    drawn: list[tuple[int, bytes]] = []
    honest = couplings.independent_worlds

    def watched(n: int, m: int, rng: Any, *given: Any, **options: Any) -> Any:
        found = honest(n, m, rng, *given, **options)
        drawn.extend((id(rng), row.tobytes()) for row in found.packed)
        return found

    monkeypatch.setattr(couplings, "independent_worlds", watched)

    def again() -> bool:
        drawn.clear()
        plan = lc.plan(lc.stats.median, rows, cap=0.7, mode="individual", worlds=64, seed=1, draws=256)
        plan.recap(0.65)
        seen = [row for _, row in drawn]
        assert len(seen) > 2 * 256
        return len(set(seen)) < len(seen)

    assert not again()
    certify = swapped.certify_swaps

    def reusing(*given: Any, **options: Any) -> Any:
        return certify(*given, **options | {"seeds": np.random.SeedSequence(5)})

    monkeypatch.setattr(swapped, "certify_swaps", reusing)
    assert again()


def test_attempts_build_on_each_other_and_no_attacker_beats_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aimed too low, the noise grows from attempt to attempt; who was within the cap is not looked at again."""
    honest = swapped.aimed_scale
    monkeypatch.setattr(
        swapped, "aimed_scale", lambda *given, **options: replace(aim := honest(*given, **options), scale=aim.scale / 2)
    )
    plan = planned.__wrapped__("variance")
    certificate = plan.certificate
    assert certificate.attempt >= 2
    assert certificate.gamma_used == pytest.approx(1e-6 * (1 - 1 / (certificate.attempt + 1)))
    assert certificate.bounds < certificate.attempt * 12 + 12
    assert (truth(plan, "variance") <= plan.exposure + 1e-5).all()
    assert certificate.membership_success <= 0.7


def sampled_truth(masks: np.ndarray, answers: np.ndarray, games: int, rng: np.random.Generator) -> np.ndarray:
    """Best balanced success against every unit, less four standard errors, where there are too many directions."""
    seen = answers[rng.integers(len(masks), size=games)] + rng.standard_normal((games, answers.shape[1]))
    likely = np.exp(-0.5 * ((seen[:, None, :] - answers) ** 2).sum(axis=2))
    inside = (likely @ masks) / likely.sum(axis=1, keepdims=True)
    won = np.maximum(inside, 1 - inside)
    return won.mean(axis=0) - 4 * won.std(axis=0) / np.sqrt(games)


def test_no_attacker_beats_the_certificate_of_covariances_by_updates() -> None:
    """Two columns, three different numbers, all halves of twelve people."""
    rows = np.column_stack([TALL, TARGET])
    plan = lc.plan(lc.stats.covariance, rows, cap=0.7, mode="individual", worlds=64, seed=1, draws=512)
    assert plan.run.swapped is not None and not plan.run.swapped.costly
    masks, _ = laws.table(laws.halves(12), 12)
    answers = answers_of(plan, masks, (rows,), lambda part: np.cov(part.T))
    assert answers.shape[1] == 3
    found = sampled_truth(masks, answers, 3000, np.random.default_rng(1))
    assert (found <= plan.exposure).all()
    assert found.max() > 0.55, "the outlier shows"
    assert plan.certificate.membership_success <= 0.7
    halved_noise = sampled_truth(masks, 4 * answers, 3000, np.random.default_rng(1))
    assert (halved_noise > plan.exposure).any(), "a quarter of the noise would be caught"


def test_no_attacker_beats_the_certificate_of_sums_of_products_by_updates() -> None:
    """`X'X` with a column of ones: sums and sums of squares, all halves of twelve people."""
    rows = np.column_stack([np.ones(12), TALL])
    plan = lc.plan(lc.stats.gram, rows, cap=0.7, mode="individual", worlds=64, seed=1, draws=512)
    assert plan.run.swapped is not None and not plan.run.swapped.costly
    masks, chances = laws.table(laws.halves(12), 12)
    answers = answers_of(plan, masks, (rows,), lambda part: 2 * part.T @ part)
    assert answers.shape[1] == 2
    assert (best_balanced(masks, chances, answers) <= plan.exposure + 1e-5).all()
    assert plan.certificate.theorems[0] == "sampled-swaps"
    assert (best_balanced(masks, chances, 4 * answers) > plan.exposure).any(), "a quarter of the noise would be caught"


def test_an_outlier_costs_most_and_units_alike_cost_alike() -> None:
    plan = planned("variance")
    assert int(np.argmax(plan.exposure)) == 11
    assert plan.exposure[11] > np.sort(plan.exposure)[-2] + 0.02
