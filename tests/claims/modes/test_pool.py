"""Pool caps: what one person moves is computed here from the rows, by code that noise and certificate do not share."""

from __future__ import annotations

import itertools
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, norm

import leakcap as lc
from leakcap.noise import Seeded

POOL = import_module("leakcap.modes.pool")
CAP = lc.pool_membership(0.6)
RNG = np.random.default_rng(3)
ROWS = np.vstack([RNG.normal(20, 30, size=(6, 2)), [[0, 100], [100, 0], [1e9, -1e9], [100, 100]]])
KEYS = {"ward": ["A", "B", "C"]}
TABLE = pandas.DataFrame({"ward": list("AABBBAXBAC"), "cost": ROWS[:, 0], "stay": ROWS[:, 1]})
BOUNDS = (0, 100)


def clipped(rows: Any) -> np.ndarray:
    return np.clip(np.asarray(rows, dtype=float), *BOUNDS)


def mean_sums(rows: np.ndarray) -> np.ndarray:
    """In half-widths about the middle, and the number of rows."""
    return np.append(((clipped(rows) - 50) / 50).sum(axis=0), len(rows))


def covariance_sums(rows: np.ndarray) -> np.ndarray:
    z = (clipped(rows) - 50) / 50
    pairs = [(z[:, i] * z[:, j]).sum() for i in range(2) for j in range(i, 2)]
    return np.concatenate([pairs, z.sum(axis=0), [len(z)]])


def bins(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([np.histogram(np.clip(column, 0, 100), [0, 30, 60, 100.001])[0] for column in rows.T])


def group_sums(table: pandas.DataFrame) -> np.ndarray:
    parts = [table[table.ward == ward] for ward in KEYS["ward"]]
    return np.concatenate([mean_sums(part[["cost", "stay"]]) for part in parts])


def group_counts(table: pandas.DataFrame) -> np.ndarray:
    return np.array([(table.ward == ward).sum() for ward in KEYS["ward"]], dtype=float)


def counts_on_a_tree(rows: np.ndarray) -> np.ndarray:
    """In nine cells of each column, and in fours of them."""
    levels = [np.linspace(0, 90, 10), [0, 40, 80, 90]]
    return np.concatenate([np.histogram(np.clip(x, 0, 89.9), cuts)[0] for x in rows.T for cuts in levels])


QUESTIONS: dict[str, tuple[Any, Any, dict[str, Any], Any]] = {
    "mean": (lc.stats.mean, ROWS, {"bounds": BOUNDS}, mean_sums),
    "sum": (lc.stats.sum, ROWS, {"bounds": BOUNDS}, lambda rows: clipped(rows).sum(axis=0)),
    "count": (lc.stats.count, ROWS, {}, lambda rows: np.array([len(rows)])),
    "covariance": (lc.stats.covariance, ROWS, {"bounds": BOUNDS}, covariance_sums),
    "histogram": (partial(lc.stats.histogram, edges=[0, 30, 60, 100]), ROWS, {}, bins),
    "gram": (lc.stats.gram, ROWS, {"bounds": BOUNDS}, covariance_sums),
    "quantiles": (partial(lc.stats.quantile, q=(0.2, 0.5), grid=range(0, 91, 10)), ROWS, {}, counts_on_a_tree),
    "means by group": (lc.stats.group_by(KEYS, "mean", of=["cost", "stay"]), TABLE, {"bounds": BOUNDS}, group_sums),
    "counts by group": (lc.stats.group_by(KEYS), TABLE, {}, group_counts),
    "own": (
        lc.additive(lambda rows: np.tanh(rows[0])),
        ROWS / 100,
        {"bounds": (-0.5, 0.5)},
        lambda rows: np.clip(np.tanh(rows), -0.5, 0.5).sum(axis=0),
    ),
}


def without(data: Any, person: int) -> Any:
    kept = np.delete(np.arange(len(data)), person)
    return data.iloc[kept] if hasattr(data, "iloc") else data[kept]


def planned(name: str, data: Any = None, **options: Any) -> lc.Plan:
    fn, rows, given, _ = QUESTIONS[name]
    return lc.plan(fn, rows if data is None else data, cap=CAP, **{"seed": 1} | given | options)


def best_success(plan: lc.Plan, name: str, data: Any, person: int) -> float:
    """Of whoever knows everybody else: two normal laws, with and without the person."""
    sums = QUESTIONS[name][3]
    moved = sums(data) - sums(without(data, person))
    return float(norm.cdf(np.sqrt(moved @ np.linalg.solve(plan.noise.covariance(), moved)) / 2))


@pytest.mark.parametrize("name", QUESTIONS)
def test_nobody_shows_by_more_than_the_cap(name: str) -> None:
    data = QUESTIONS[name][1]
    plan = planned(name)
    found = [best_success(plan, name, data, person) for person in range(len(data))]
    assert max(found) <= plan.certificate.membership_success <= CAP.success
    assert plan.certificate.membership_success > CAP.success - 1e-6, "no more noise than the cap needs"
    assert (plan.exposure == plan.certificate.membership_success).all()  # whoever they are


@pytest.mark.parametrize(
    "name", ["mean", "sum", "count", "covariance", "gram", "histogram", "quantiles", "means by group"]
)
def test_the_cap_is_attained_by_whoever_is_at_the_bounds(name: str) -> None:
    data = QUESTIONS[name][1]
    found = max(best_success(planned(name), name, data, person) for person in (6, 7, 8, 9))
    assert found == pytest.approx(CAP.success, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "own"])
def test_nobody_with_three_rows_shows_by_more_than_the_cap(name: str) -> None:
    """Three times the same row at the bounds is the worst, and attains it; other people bring three different ones."""
    fn, rows, given, sums = QUESTIONS[name]
    picked = np.ravel([[6] * 3, [7] * 3, [8] * 3, [9] * 3, [0, 6, 8], [7, 9, 1], [2, 3, 4]])
    who = np.repeat(np.arange(7), 3)
    data = rows.iloc[picked] if hasattr(rows, "iloc") else rows[picked]
    plan = lc.plan(fn, data, cap=CAP, unit=who, rows_per_unit=3, seed=1, **given)
    moves = [sums(data) - sums(data[who != person]) for person in range(7)]
    found = [norm.cdf(np.sqrt(move @ np.linalg.solve(plan.noise.covariance(), move)) / 2) for move in moves]
    assert max(found) <= plan.certificate.membership_success <= CAP.success
    assert max(found) == pytest.approx(CAP.success, abs=1e-6)


@pytest.mark.parametrize("name", QUESTIONS)
def test_noise_and_certificate_are_the_same_without_the_person(name: str) -> None:
    data = QUESTIONS[name][1]
    whole = planned(name)
    for person in (0, 8):
        other = planned(name, without(data, person))
        assert np.array_equal(whole.noise.covariance(), other.noise.covariance())
        assert whole.certificate.to_json() == other.certificate.to_json()


def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the look at what every unit brings, which would refuse the plan."""
    added = POOL.exact_total
    monkeypatch.setattr(POOL, "exact_total", lambda values, deviations, _: added(values, deviations))


@pytest.mark.parametrize("name", ["mean", "histogram", "quantiles", "means by group"])
def test_planted_half_of_the_limits_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    charged, least = POOL.charge, POOL.least_deviations
    monkeypatch.setattr(POOL, "charge", lambda extent, deviations: charged(extent, 2 * deviations))
    monkeypatch.setattr(POOL, "least_deviations", lambda extent, allowed: least(extent, allowed) / 2)
    unguarded(monkeypatch)
    plan = planned(name)
    found = max(best_success(plan, name, QUESTIONS[name][1], person) for person in (6, 7, 8))
    assert found > plan.certificate.membership_success + 0.05


def attacked(plan: lc.Plan, other: lc.Plan, trials: int, seed: int) -> int:
    """How often the likelihood ratio is right, of values from the release path with and without a person."""
    source, rng, right = Seeded(seed), np.random.default_rng(seed), 0
    moved = (plan.releaser.total - other.releaser.total) * 2.0**-32 * plan.noise.deviations
    middle = (plan.releaser.total + other.releaser.total) / 2 * 2.0**-32 * plan.noise.deviations
    side = moved / plan.noise.deviations**2
    for _ in range(trials):
        inside = bool(rng.integers(2))
        value = (plan if inside else other).releaser.vector(source)
        right += ((value - middle) @ side > 0) == inside
    return right


def pair() -> tuple[lc.Plan, lc.Plan]:
    return planned("mean"), planned("mean", without(ROWS, 6))


TRIALS = 20_000


def test_attacks_on_released_values_stay_below_the_certificate_and_reach_it() -> None:
    plan, other = pair()
    right = attacked(plan, other, TRIALS, seed=5)
    assert binomtest(right, TRIALS, plan.certificate.membership_success).pvalue > 1e-6
    assert right / TRIALS == pytest.approx(CAP.success, abs=0.015)


def test_a_planted_fifth_less_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, other = pair()
    drawn = Seeded.normals
    monkeypatch.setattr(Seeded, "normals", lambda self, size: 0.8 * drawn(self, size))
    right = attacked(plan, other, TRIALS, seed=5)
    assert binomtest(right, TRIALS, plan.certificate.membership_success, alternative="greater").pvalue < 1e-6


def test_sums_are_exact_whatever_the_order_and_however_large() -> None:
    """Low-order digits of a sum would tell who is in it."""
    rows = np.concatenate([RNG.uniform(0, 100, 2000), [100.0] * 500])[:, None]
    first, again = planned("mean", rows), planned("mean", rows[::-1])
    assert np.array_equal(first.releaser.total, again.releaser.total)
    vectors = [plan.releaser.vector(Seeded(3)) for plan in (first, again)]
    assert np.array_equal(*vectors)
    grid = vectors[0] / first.noise.deviations * 2**10
    assert grid == pytest.approx(np.rint(grid), abs=1e-6)


def test_one_person_with_very_many_rows_moves_no_more_than_declared() -> None:
    many = pandas.DataFrame({"ward": ["A"] * 5000 + ["B"] * 30, "who": [0] * 5000 + list(range(1, 31))})
    fn, options = lc.stats.group_by(KEYS), {"unit": "who", "cap": CAP, "rows_per_unit": 3, "seed": 1}
    plan, other = lc.plan(fn, many, **options), lc.plan(fn, many[many.who > 0], **options)
    moved = (plan.releaser.total - other.releaser.total) * 2.0**-32
    assert norm.cdf(np.linalg.norm(moved) / 2) == pytest.approx(CAP.success, abs=1e-6)


def test_several_rows_of_a_person_in_several_groups_are_covered() -> None:
    """The worst way to spread three rows over groups and bins, by trying all of them."""
    fn, options = lc.stats.group_by(KEYS), {"unit": "who", "cap": CAP, "rows_per_unit": 3, "seed": 1}
    others = pandas.DataFrame({"ward": list("ABCABC"), "who": range(1, 7)})
    base = lc.plan(fn, others, **options)
    worst = 0.0
    for wards in itertools.product("ABC", repeat=3):
        mine = pandas.concat([others, pandas.DataFrame({"ward": wards, "who": [0] * 3})])
        moved = (lc.plan(fn, mine, **options).releaser.total - base.releaser.total) * 2.0**-32
        worst = max(worst, float(norm.cdf(np.linalg.norm(moved) / 2)))
    assert worst == pytest.approx(CAP.success, abs=1e-6)
    assert worst <= CAP.success


@pytest.mark.parametrize(("mu", "delta"), [(0.2513, 1e-5), (1.0, 1e-5), (0.5067, 1e-3), (3.0, 0.1)])
def test_epsilon_of_gaussian_privacy_equals_an_integration(mu: float, delta: float) -> None:
    epsilon = lc.convert.gaussian_epsilon(mu, delta)

    def excess(at: float) -> float:
        return quad(lambda y: max(norm.pdf(y, mu) - np.exp(at) * norm.pdf(y), 0.0), -12, 15, points=[at / mu + mu / 2])[
            0
        ]

    assert excess(epsilon) <= delta * (1 + 1e-6)
    assert excess(epsilon * (1 - 1e-4)) > delta


def test_few_false_alarms_are_those_of_two_normal_laws() -> None:
    certificate = planned("mean").certificate
    for fpr in (0.001, 0.01, 0.1):
        exact = norm.cdf(norm.ppf(fpr) + 2 * norm.ppf(CAP.success))
        assert exact * (1 - 1e-5) <= certificate.true_positive_rate(fpr) <= exact * 1.001
