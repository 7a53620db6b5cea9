"""Every figure of `Plan.compare`, made again: 1,000 answers drawn by releasers or with noise of the stated size.

Agreement is asked for within five standard errors: by chance a check fails less than once in a million times.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import leakcap as lc
from leakcap.noise import Seeded

SUCCESS, ANSWERS, DELTA = 0.6, 1000, 1e-5
RNG = np.random.default_rng(5)
TABLE = pandas.DataFrame({"ward": RNG.choice(list("ABC"), 240), "cost": RNG.gamma(4, 10, 240)})
MEANS = lc.stats.group_by({"ward": ["A", "B", "C"]}, "mean", of="cost")
COUNTS = lc.stats.group_by({"ward": ["A", "B", "C"]}, "count")
CASES: dict[str, tuple[Any, Any, Any]] = {  # function, rows, bounds; some values are outside
    "means by group": (MEANS, TABLE, (0, 70)),
    "counts by group": (COUNTS, TABLE, None),
    "means": (lc.stats.mean, TABLE[["cost"]].assign(twice=lambda rows: 2 * rows.cost), (0, 160)),
    "shares in bins": (partial(lc.stats.histogram, edges=[0, 20, 40, 60, 200]), TABLE["cost"], None),
}
SUMS_OF_EVERYBODY = ("pool", "Laplace", "Gaussian", "zCDP")
PROMISES = ("worlds", "bits", *SUMS_OF_EVERYBODY)


@cache
def plans(case: str) -> dict[str, lc.Plan]:
    fn, rows, bounds = CASES[case]
    worlds = lc.plan(fn, rows, cap=SUCCESS, worlds=64, draws=2048, seed=1)
    bits = lc.plan(fn, rows, cap=SUCCESS, design="bits", seed=2)
    pool = lc.plan(fn, rows, cap=lc.pool_membership(SUCCESS), bounds=bounds, seed=3)
    return {"worlds": worlds, "bits": bits, "pool": pool}


@cache
def compared(case: str) -> Any:
    return plans(case)["worlds"].compare(CASES[case][2])


@cache
def drawn(case: str, name: str) -> np.ndarray:
    """Answers as a release would draw them; of plain differential privacy, with noise of the stated deviations."""
    plan = plans(case)["pool" if name in SUMS_OF_EVERYBODY else name]
    if name in plans(case):
        source = Seeded(9)
        vectors = np.stack([plan.releaser.vector(source) for _ in range(ANSWERS)])
    else:
        deviations, rng = compared(case)[name].deviations, np.random.default_rng(9)
        shape = ANSWERS, len(deviations)
        noise = (
            rng.laplace(0, deviations / np.sqrt(2), shape) if name == "Laplace" else rng.normal(0, deviations, shape)
        )
        vectors = plan.run.brings.values.sum(axis=0) + noise
    finishing = plan.run.finishing
    return vectors if finishing is None else np.stack([finishing.numbers(vector) for vector in vectors])


def answer_of(case: str) -> np.ndarray:
    fn, rows, _ = CASES[case]
    return np.asarray(fn(rows), dtype=float).ravel()


def agrees(stated: float, squares: np.ndarray) -> bool:
    """Whether a stated root mean square may be that of these squares, and itself be found by as many again."""
    slack = 5 * squares.std() / np.sqrt(len(squares)) * np.sqrt(2)
    return bool(abs(squares.mean() - stated**2) <= slack + 1e-18)


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("case", CASES)
def test_errors_are_those_of_drawn_answers(case: str, name: str) -> None:
    made, whole = compared(case), answer_of(case)
    promise = made[name]
    assert np.allclose(made.answer, whole)
    apart = (drawn(case, name) - whole) ** 2
    for stated, squares in zip(promise.error, apart.T, strict=True):
        assert agrees(stated, squares)
    weigh = made.scale**2
    assert agrees(promise.total, (apart * weigh).sum(axis=1) / (whole**2 * weigh).sum())


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("case", CASES)
def test_an_error_told_a_quarter_too_small_is_caught(case: str, name: str) -> None:
    made, whole = compared(case), answer_of(case)
    weigh = made.scale**2
    squares = ((drawn(case, name) - whole) ** 2 * weigh).sum(axis=1) / (whole**2 * weigh).sum()
    assert not agrees(0.75 * made[name].total, squares)


@pytest.mark.parametrize("case", CASES)
def test_the_plans_own_figures_are_those_of_its_summary(case: str) -> None:
    made, summary = compared(case), plans(case)["worlds"].summary()
    assert np.allclose(made["worlds"].noise, summary.noise)
    assert np.allclose(made["worlds"].before_noise, summary.halving)


def test_what_bounds_cut_is_part_of_the_error() -> None:
    tight = plans("means by group")["worlds"].compare((0, 20))["pool"]
    inside = TABLE.assign(cost=TABLE.cost.clip(0, 20))
    assert np.allclose(tight.before_noise, np.abs(MEANS(inside) - MEANS(TABLE)).to_numpy().ravel())
    assert (tight.error > 0.9 * tight.before_noise).all()


def best_guess(deviation: float, law: str, rng: np.random.Generator, guesses: int = 400_000) -> float:
    """Success at telling a count of 1 from a count of 0 by likelihoods, either way as likely."""
    present = rng.integers(2, size=guesses)
    if law == "Laplace":
        seen = present + rng.laplace(0, deviation / np.sqrt(2), guesses)
    else:
        seen = present + rng.normal(0, deviation, guesses)
    return float(((seen > 0.5) == present).mean())


@pytest.mark.parametrize("name", SUMS_OF_EVERYBODY)
def test_nobody_is_told_apart_beyond_the_success(name: str) -> None:
    """On one count, which one person moves by 1."""
    made = count_of_rows()
    (deviation,) = made[name].deviations
    seen = best_guess(deviation, name, np.random.default_rng(1))
    assert seen <= SUCCESS + 5 * 0.5 / np.sqrt(400_000)


@pytest.mark.parametrize("name", ["pool", "Laplace"])
def test_a_planted_quarter_less_noise_is_caught(name: str) -> None:
    (deviation,) = count_of_rows()[name].deviations
    assert best_guess(0.75 * deviation, name, np.random.default_rng(1)) > SUCCESS + 5 * 0.5 / np.sqrt(400_000)


@cache
def count_of_rows() -> Any:
    plan = lc.plan(lc.stats.count, TABLE, cap=lc.pool_membership(SUCCESS), seed=1)
    return plan.compare(worlds=16)


def missed(epsilon: float, deviation: float) -> float:
    """Delta of normal noise on a count: what the larger of two densities has beyond e^epsilon times the other."""

    def beyond(x: float) -> float:
        return max(norm.pdf(x, 1, deviation) - np.exp(epsilon) * norm.pdf(x, 0, deviation), 0.0)

    turn = 0.5 + epsilon * deviation**2
    return quad(beyond, turn, turn + 20 * deviation, epsabs=1e-12)[0]


def test_the_gaussian_row_is_the_stated_epsilon_and_delta_which_keep_the_success() -> None:
    row = count_of_rows()["Gaussian"]
    epsilon = np.log((SUCCESS - DELTA) / (1 - SUCCESS))  # 1 - (1 - delta)/(1 + e^epsilon) is the success
    assert missed(epsilon, row.deviations[0]) == pytest.approx(DELTA, rel=1e-3)
    assert missed(epsilon, row.deviations[0]) <= DELTA * (1 + 1e-6)
    assert missed(epsilon, 0.9 * row.deviations[0]) > 1.5 * DELTA  # a planted tenth less noise
    assert row.how == "normal noise, epsilon 0.4055, delta 1e-05"


def test_the_laplace_row_is_the_stated_epsilon_which_keeps_the_success() -> None:
    row = count_of_rows()["Laplace"]
    assert np.sqrt(2) / row.deviations[0] == pytest.approx(np.log(SUCCESS / (1 - SUCCESS)), rel=1e-6)
    assert np.exp(np.sqrt(2) / row.deviations[0]) <= SUCCESS / (1 - SUCCESS)


def test_the_zcdp_row_is_the_stated_rho_which_keeps_the_success() -> None:
    row = count_of_rows()["zCDP"]
    rho = 1 / row.deviations[0] ** 2 / 2  # the divergence of two normal laws
    least = (2 * SUCCESS - 1) * np.log(SUCCESS / (1 - SUCCESS))  # of any two laws that are told apart so well
    assert rho == pytest.approx(least, rel=1e-6)
    assert rho <= least
