"""`design="bits"`: brute force over all coins of small pools, and attacks on what the release path gives.

Steps and posteriors are computed here from the data, by code that the bound does not share.
"""

from __future__ import annotations

import math
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, norm

import leakcap as lc
from leakcap.worlds import fair_bits
from tests.claims.modes.coins import Watched

BITS = import_module("leakcap.modes.bits")
POOLS = {
    "spread": np.random.default_rng(0).standard_normal(8),
    "an outlier": np.array([0.0, 0.1, -0.2, 0.3, 0.0, 12.0, 0.1]),
    "two values": np.array([0.0, 1, 0, 1, 1, 1]),
    "nobody but one": np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0]),
}
TWELVE = np.array([0.3, -1.0, 0.2, 0.9, 4.0, 0.0, 0.0, -0.4, 1.1, 0.5, -2.0, 0.7])
CAP = lc.membership(0.6)


def planned(values: Any, fn: Any = lc.stats.mean, cap: Any = CAP, **options: Any) -> lc.Plan:
    return lc.plan(fn, values, cap=cap, design="bits", **{"seed": 1} | options)


def steps_of(values: np.ndarray, fn: Any) -> np.ndarray:
    return 2 * (values - values.mean(axis=0)) / (len(values) if fn is lc.stats.mean else 1)


class Game:
    """All coins of a small pool, and the law of the released number for each: success is an integral over it."""

    def __init__(self, steps: np.ndarray, deviation: float) -> None:
        self.n = len(steps)
        coins = np.array(list(product([0, 1], repeat=self.n)))
        means = coins @ steps
        cells = 2001 if self.n < 10 else 501
        y = np.linspace(means.min() - 9 * deviation, means.max() + 9 * deviation, cells)
        weight = norm.pdf(y, means[:, None], deviation) * (y[1] - y[0]) / len(coins)
        self.weight = weight.reshape(*[2] * self.n, -1)  # an axis for each coin

    def successes(self, unit: int) -> list[float]:
        """Of the best guess at one coin, by attackers who know the coins of fewer and fewer others, at last of none."""
        seen, found = np.moveaxis(self.weight, unit, 0), []
        while True:
            found.append(float(np.maximum(seen[0], seen[1]).sum()))
            if seen.ndim == 2:
                return found
            seen = seen[..., 0, :] + seen[..., 1, :]  # the last of the others is not known any more

    def worst(self) -> float:
        return max(success for unit in range(self.n) for success in self.successes(unit))


def game(plan: lc.Plan, values: np.ndarray, fn: Any = lc.stats.mean) -> Game:
    return Game(steps_of(values, fn), float(plan.noise.output_deviations[0]))


INTEGRATED = 1e-6  # what the sum over so few numbers may be off by


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
def test_no_attacker_beats_the_bound_whoever_else_is_known(name: str, fn: Any) -> None:
    plan = planned(POOLS[name], fn)
    small = game(plan, POOLS[name], fn)
    for unit, bound in enumerate(plan.exposure):
        found = small.successes(unit)
        assert len(found) == small.n and max(found) <= bound + INTEGRATED
    assert plan.exposure.max() <= plan.certificate.membership_success <= CAP.success


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
def test_the_bound_is_attained_by_whoever_knows_everybody_else(name: str, fn: Any) -> None:
    plan = planned(POOLS[name], fn)
    found = game(plan, POOLS[name], fn).worst()
    assert found == pytest.approx(plan.certificate.membership_success, abs=INTEGRATED)
    assert found == pytest.approx(CAP.success, abs=INTEGRATED), "no more noise than the cap needs"


def test_no_attacker_beats_the_bound_in_a_pool_of_twelve_and_one_attains_it() -> None:
    plan = planned(TWELVE)
    small = game(plan, TWELVE)
    for unit in (4, 10, 0):  # the two furthest from the mean, and somebody
        found = small.successes(unit)
        assert len(found) == 12 and max(found) <= plan.exposure[unit] + INTEGRATED
        assert found[0] == pytest.approx(plan.exposure[unit], abs=INTEGRATED)
    assert plan.exposure[4] == pytest.approx(CAP.success, abs=INTEGRATED)


def halved(steps: np.ndarray) -> np.ndarray:
    return steps / 2


def nearer_to_the_largest(steps: np.ndarray) -> np.ndarray:
    return steps - steps[np.argmax(np.abs(steps[:, 0]))] / 4


def without_the_largest(steps: np.ndarray) -> np.ndarray:
    return np.where(np.abs(steps) < np.abs(steps).max(), steps, 0.0)


@pytest.mark.parametrize("fault", [halved, nearer_to_the_largest, without_the_largest])
def test_planted_faults_are_caught(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    charged = BITS._charges
    monkeypatch.setattr(BITS, "_charges", lambda steps, deviations: charged(fault(steps), deviations))
    plan = planned(POOLS["an outlier"])
    assert game(plan, POOLS["an outlier"]).worst() > plan.certificate.membership_success + 0.005


def attacked(plan: lc.Plan, rows: np.ndarray, trials: int, seed: int) -> int:
    """How often the likelihood ratio guesses the most exposed person's coin, knowing all others and the noise."""
    steps, source, right = steps_of(rows, lc.stats.mean), Watched(seed), 0
    precision = np.linalg.inv(plan.noise.covariance())
    unit = int(np.argmax(np.einsum("ud,de,ue->u", steps, precision, steps)))
    for _ in range(trials):
        released = plan.releaser.vector(source)
        coins = source.coins[: len(rows)].astype(float)
        truth, coins[unit] = coins[unit], 0.5
        side = (released - rows.mean(axis=0) - coins @ steps) @ precision @ steps[unit]
        right += (side > 0) == (truth == 1)
    return right


ROWS = np.random.default_rng(5).standard_t(3, size=(40, 3)) * [1, 10, 0.1] + [5, -3, 0]
TRIALS = 20_000


def test_attacks_on_released_values_stay_below_the_certificate_and_reach_it() -> None:
    plan = planned(ROWS)
    right, claimed = attacked(plan, ROWS, TRIALS, seed=3), plan.certificate.membership_success
    assert binomtest(right, TRIALS, claimed).pvalue > 1e-6
    assert right / TRIALS == pytest.approx(claimed, abs=0.015)


def test_a_planted_fifth_less_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    released = BITS.released_vector

    def weaker(noise: Any, coordinates: Any, step: float, randomness: Any) -> Any:
        class Weak:
            def normals(self, size: int) -> Any:
                return 0.8 * randomness.normals(size)

        return released(noise, coordinates, step, Weak())

    monkeypatch.setattr(BITS, "released_vector", weaker)
    plan = planned(ROWS)
    right = attacked(plan, ROWS, TRIALS, seed=3)
    assert binomtest(right, TRIALS, plan.certificate.membership_success, alternative="greater").pvalue < 1e-6


def test_few_false_alarms_equal_an_integration() -> None:
    certificate = planned(ROWS).certificate
    apart = 2 * norm.ppf(certificate.membership_success)
    y = np.linspace(-12, 12 + apart, 200_001)
    p1, p0 = norm.pdf(y, apart), norm.pdf(y)
    for cut, stick in certificate.hockey_sticks:
        integral = np.trapezoid(np.maximum((1 - cut) * p1 - cut * p0, 0), y) / 2
        assert integral - 1e-9 <= stick <= integral + 1e-6
    for alarms in (0.01, 0.001):
        exact = float(norm.cdf(norm.ppf(alarms) + apart))
        assert exact - 1e-9 <= certificate.true_positive_rate(alarms) <= 1.1 * exact


LIMITED = lc.true_positive_rate(0.01, 0.02)


def recognised(plan: lc.Plan, values: np.ndarray, alarms: float) -> float:
    """Share of releases in which the most telling coin is recognised, all others known: by the best test on a grid."""
    deviation = float(plan.noise.output_deviations[0])
    worst = 0.0
    for step in np.abs(steps_of(values, lc.stats.mean)):
        y = np.linspace(-9 * deviation, step + 9 * deviation, 40_001)
        width = y[1] - y[0]
        out, taking_part = norm.pdf(y, 0, deviation) * width, norm.pdf(y, step, deviation) * width
        accused = np.cumsum(out[::-1]) <= alarms  # the likelihood ratio grows with y
        worst = max(worst, float(taking_part[::-1][accused].sum()))
    return worst


@pytest.mark.parametrize("name", POOLS)
def test_a_cap_on_few_false_alarms_is_kept_and_reached(name: str) -> None:
    plan = planned(POOLS[name], cap=LIMITED)
    found = recognised(plan, POOLS[name], LIMITED.fpr)
    (figure,) = plan.certificate.capped
    assert found <= figure.certified <= LIMITED.at_most
    assert found == pytest.approx(LIMITED.at_most, rel=2e-3), "no more noise than the cap needs"
    assert plan.certificate.true_positive_rate(LIMITED.fpr) <= LIMITED.at_most


def test_the_tighter_of_two_caps_decides() -> None:
    alone = planned(ROWS).noise.std
    assert planned(ROWS, cap=[CAP, lc.true_positive_rate(0.01, 0.5)]).noise.std == pytest.approx(alone, rel=1e-9)
    assert planned(ROWS, cap=[CAP, LIMITED]).noise.std == pytest.approx(planned(ROWS, cap=LIMITED).noise.std, rel=1e-9)


def test_a_planted_cap_that_is_not_looked_at_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    furthest = BITS.furthest_apart
    monkeypatch.setattr(BITS, "furthest_apart", lambda caps, law, lost: furthest((CAP,), law, lost))
    plan = planned(POOLS["spread"], cap=LIMITED)
    assert recognised(plan, POOLS["spread"], LIMITED.fpr) > LIMITED.at_most + 0.005
    assert plan.certificate.capped[0].certified > LIMITED.at_most


def test_the_information_is_that_of_all_coins() -> None:
    """By brute force over the coins of a small pool, and the same at every number of known people."""
    values = POOLS["spread"]
    plan = planned(values)
    certificate, deviation = plan.certificate, float(plan.noise.output_deviations[0])
    coins = np.array(list(product([0, 1], repeat=len(values))))
    means = coins @ steps_of(values, lc.stats.mean)
    y = np.linspace(means.min() - 9 * deviation, means.max() + 9 * deviation, 4001)
    density = norm.pdf(y[:, None], means, deviation)
    mixture = density.mean(axis=1)
    entropy = -np.trapezoid(mixture * np.log(mixture), y)
    truth = entropy - 0.5 * math.log(2 * math.pi * math.e * deviation**2)
    assert truth - 1e-6 <= certificate.mutual_information <= 1.2 * truth
    assert {certificate.given(k) for k in range(len(values))} == {certificate.membership_success}
    assert certificate.colluders == len(values) - 1


def uneven(rng: Any) -> float:
    """P-value of eight coins together: all 256 ways in which they fall are equally likely."""
    found = fair_bits(8, 40_000, rng).packed[:, 0]
    return float(chisquare(np.bincount(found, minlength=256)).pvalue)


def test_eight_coins_fall_in_all_ways_alike_and_a_missing_way_is_caught() -> None:
    class NeverAll:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(1)

        def integers(self, low: int, high: int, **options: Any) -> Any:
            return self.rng.integers(low, high - 1, **options)

    assert uneven(np.random.default_rng(1)) > 1e-6
    assert uneven(NeverAll()) < 1e-6


def test_coins_are_fair_and_independent() -> None:
    n, tosses = 11, 40_000
    masks = fair_bits(n, tosses, np.random.default_rng(2)).masks().astype(float)
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(tosses)
    together = np.corrcoef(masks.T) - np.eye(n)
    assert np.abs(together).max() < 5 / math.sqrt(tosses)
    assert abs(masks.sum(axis=1).var() - n / 4) < 0.2, "the number who take part is not fixed"
