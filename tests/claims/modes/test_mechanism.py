"""Sums over people under exponential noise: all halves and all coins of small pools, and attacks on what is released.

The oracle knows the density `exp(-|x|/s)` and the data; steps, halves and posteriors are its own.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import leakcap as lc
from leakcap.noise import NORMAL, Exponential, Seeded
from tests.claims.modes.coins import Watched

HALVES_OF = {n: np.array([[u in c for u in range(n)] for c in combinations(range(n), n // 2)]) for n in (6, 8, 10)}
OPTIONS: dict[str, dict[str, Any]] = {"individual": {"mode": "individual", "worlds": 64}, "bits": {"design": "bits"}}


def planned(rows: Any, fn: Any = lc.stats.mean, cap: float = 0.65, way: str = "individual", **options: Any) -> lc.Plan:
    return lc.plan(fn, rows, cap=cap, **{"mechanism": "exponential", "seed": 1} | OPTIONS[way] | options)


def pool(n: int, d: int) -> np.ndarray:
    rows = np.random.default_rng([n, d]).standard_normal((n, d)) + 0.5
    rows[0] += 3
    return rows


def density(seen: np.ndarray, answers: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """`exp(-|x|/s)` of what was seen around every answer, up to a factor; of covariance `factor @ factor.T`."""
    d = answers.shape[1]
    whitened = np.linalg.solve(factor, (seen[:, None] - answers).reshape(-1, d).T).T
    return np.exp(-np.linalg.norm(whitened, axis=1) * math.sqrt(d + 1)).reshape(len(seen), len(answers))


def best_success(masks: np.ndarray, answers: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Against each unit, over halves that are equally likely: half, and a quarter of the integral of |p_in - p_out|."""
    reach = np.sqrt(np.diag(factor @ factor.T)) * 10
    points = 2001 if answers.shape[1] == 1 else 141
    axes = [np.linspace(a.min() - r, a.max() + r, points) for a, r in zip(answers.T, reach, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    seen = density(grid, answers, factor)
    seen /= seen.sum(axis=0)
    return np.array(
        [0.5 + 0.25 * np.abs(seen[:, inside].mean(axis=1) - seen[:, ~inside].mean(axis=1)).sum() for inside in masks.T]
    )


@pytest.mark.parametrize(("n", "d"), [(10, 1), (6, 2)])
@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
def test_no_attacker_beats_the_bound_over_all_halves_of_a_small_pool(n: int, d: int, fn: Any) -> None:
    rows, masks = pool(n, d), HALVES_OF[n]
    answers = np.array([np.atleast_1d(fn(rows[half])) for half in masks])
    for cap in (0.55, 0.65, 0.95):
        plan = planned(rows, fn, cap)
        true = best_success(masks, answers, plan.noise.factor)
        assert (true <= plan.exposure + (1e-5 if d == 1 else 2e-3)).all()
        assert plan.exposure.max() == plan.certificate.membership_success <= cap
        assert true.max() > 0.51
        if cap < 0.9:  # planted: a fifth of the noise
            assert (best_success(masks, answers, plan.noise.factor / 5) > plan.exposure + 0.01).any()


@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
def test_under_bits_whoever_knows_all_others_reaches_the_bound_and_no_more(fn: Any) -> None:
    rows = pool(8, 1)
    steps = 2 * (rows - rows.mean(axis=0))[:, 0] / (8 if fn is lc.stats.mean else 1)
    for cap in (0.55, 0.65, 0.99):
        plan = planned(rows, fn, cap, "bits")
        scale = float(plan.noise.output_deviations[0]) / math.sqrt(2)
        true = 1 - np.exp(-np.abs(steps) / (2 * scale)) / 2  # two Laplace laws
        assert (true <= plan.exposure + 1e-12).all()
        assert true.max() == pytest.approx(cap, abs=2e-6)


# ---- what is released ---------------------------------------------------------------------------------------------


ROWS = np.random.default_rng(5).standard_t(3, size=(40, 3)) * [1, 10, 0.1] + [5, -3, 0]
TRIALS = 2500


def insider(plan: lc.Plan, rows: np.ndarray, seed: int = 3) -> int:
    """How often the nearer answer is the right one, for somebody who knows all other coins, about the most exposed."""
    steps, source, right = 2 * (rows - rows.mean(axis=0)) / len(rows), Watched(seed), 0
    precision = np.linalg.inv(plan.noise.covariance())
    unit = int(np.argmax(np.einsum("ud,de,ue->u", steps, precision, steps)))
    for _ in range(TRIALS):
        released = plan.releaser.vector(source)
        coins = source.coins[: len(rows)].astype(float)
        truth, coins[unit] = coins[unit], 0.5
        side = (released - rows.mean(axis=0) - coins @ steps) @ precision @ steps[unit]
        right += (side > 0) == (truth == 1)
    return right


def outsider(plan: lc.Plan, rows: np.ndarray, seed: int = 3) -> int:
    """How often the posterior over all halves is right about the most exposed unit."""
    releaser, masks = plan.releaser, HALVES_OF[len(rows)]
    answers = np.array([rows[half].mean(axis=0) for half in masks])
    unit, source, right, secrets = int(plan.exposure.argmax()), Seeded(seed), 0, []
    draw = releaser.draw
    object.__setattr__(releaser, "draw", lambda randomness: secrets.append(draw(randomness)) or secrets[-1])
    seen = np.array([releaser.vector(source) for _ in range(TRIALS)])
    likelihood = density(seen, answers, plan.noise.factor)
    inside = masks[:, unit]
    guess = likelihood[:, inside].sum(axis=1) > likelihood[:, ~inside].sum(axis=1)
    for one, secret in zip(guess, secrets, strict=True):
        right += one == secret[unit]
    return right


def refuted(right: int, certified: float) -> bool:
    """Fails on a certificate that holds with probability 1e-6."""
    return bool(binomtest(int(right), TRIALS, certified, alternative="greater").pvalue < 1e-6)


def test_attacks_on_released_values_stay_below_the_certificate_and_reach_it() -> None:
    for rows in (ROWS, ROWS[:, :1]):
        plan = planned(rows, way="bits")
        right = insider(plan, rows)
        assert not refuted(right, plan.certificate.membership_success)
        assert right / TRIALS == pytest.approx(plan.certificate.membership_success, abs=0.03)
    for d in (1, 2):
        plan = planned(pool(6, d))
        assert not refuted(outsider(plan, pool(6, d)), plan.certificate.membership_success)


def radius_of_the_paper(self: Exponential, size: int, randomness: Any) -> np.ndarray:
    """The direction as it should be, and the absolute value of a Laplace number for its length."""
    numbers = randomness.normals(size + 2)
    direction = numbers[:size] / np.linalg.norm(numbers[:size])
    return np.asarray(direction * (numbers[size:] ** 2).sum() / 2 * self.scale)


def a_fifth_less(self: Exponential, size: int, randomness: Any) -> np.ndarray:
    numbers = randomness.normals(2 * size + 1)
    return np.asarray(0.8 * numbers[:size] * np.linalg.norm(numbers[size:]) / math.sqrt(size + 1))


@pytest.mark.parametrize("planted", [radius_of_the_paper, a_fifth_less])
def test_planted_radii_are_caught_by_the_same_attack(planted: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Exponential, "draw", planted)
    plan = planned(ROWS, cap=0.75, way="bits")
    assert refuted(insider(plan, ROWS), plan.certificate.membership_success)


# ---- the other figures of coins -----------------------------------------------------------------------------------


def test_few_false_alarms_and_information_of_coins_equal_an_integration() -> None:
    values = np.random.default_rng(0).standard_normal(8)
    for cap in (0.6, 0.9):
        plan = planned(values, cap=cap, way="bits")
        certificate = plan.certificate
        scale = float(plan.noise.output_deviations[0]) / math.sqrt(2)
        steps = 2 * (values - values.mean()) / 8
        apart = np.abs(steps).max()
        y = np.linspace(-40 * scale, 40 * scale + apart, 400_001)
        p1, p0 = (np.exp(-np.abs(y - a) / scale) / (2 * scale) for a in (apart, 0.0))
        for cut, stick in certificate.hockey_sticks:
            integral = float(np.trapezoid(np.maximum((1 - cut) * p1 - cut * p0, 0), y)) / 2
            assert integral - 1e-7 <= stick
            if cut > 1 / (1 + math.exp(-apart / scale)):
                assert stick < 1e-8
        for alarms in (0.01, 0.001):
            exact = min(alarms * math.exp(apart / scale), 1.0)  # of two Laplace laws, while it is below 1/2
            assert exact - 1e-9 <= certificate.true_positive_rate(alarms) <= 1.6 * exact
        coins = np.array(list(product([0, 1], repeat=8)))
        means = coins @ steps
        z = np.linspace(means.min() - 30 * scale, means.max() + 30 * scale, 8001)
        seen = np.exp(-np.abs(z[:, None] - means) / scale) / (2 * scale)
        mixture = seen.mean(axis=1)
        truth = -np.trapezoid(mixture * np.log(mixture), z) - (1 + math.log(2 * scale))
        assert truth - 1e-6 <= certificate.mutual_information <= 2.5 * truth


def test_planted_figures_without_the_average_over_scales_are_caught(monkeypatch: Any) -> None:
    """The twin: figures of normal noise of the mean scale lie below what two Laplace laws tell."""
    monkeypatch.setattr(Exponential, "average", lambda self, figure: figure(1.0))
    with pytest.raises(AssertionError):
        test_few_false_alarms_and_information_of_coins_equal_an_integration()


# ---- which noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", OPTIONS)
def test_auto_takes_the_smaller_noise_and_says_so(way: str) -> None:
    for cap, taken in ((0.6, "Gaussian"), (0.995, "Exponential")):
        plans = {name: planned(ROWS, cap=cap, way=way, mechanism=name) for name in ("gaussian", "exponential", "auto")}
        sizes = {name: float(np.linalg.norm(plan.noise.deviations)) for name, plan in plans.items()}
        assert sizes["auto"] == min(sizes.values())
        assert sizes["auto"] == sizes[taken.lower()]
        words = plans["auto"].certificate.noise
        other = "Exponential" if taken == "Gaussian" else "Gaussian"
        ratio = sizes[other.lower()] / sizes["auto"]
        assert words.startswith(taken) and f"{other} noise would have to be {ratio:.3g} times as large" in words
        assert words in str(plans["auto"].summary())
        assert " ".join(words.split()) in " ".join(str(plans["auto"].certificate).split())
        assert ("exponential" in plans["auto"].certificate.theorems) == (taken == "Exponential")


def test_the_default_is_gaussian_and_its_certificate_says_nothing_new() -> None:
    for way, options in OPTIONS.items():
        left_out = lc.plan(lc.stats.mean, ROWS, cap=0.65, seed=1, **options)
        asked = planned(ROWS, way=way, mechanism="gaussian")
        assert asked.certificate == left_out.certificate
        assert '"noise"' not in left_out.certificate.to_json()
        assert left_out.certificate.noise is None
        assert left_out.noise.law == NORMAL
