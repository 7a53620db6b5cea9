"""Membership inference privacy from a first moment: all halves of small pools, and attacks on the paper's own noise.

The best attacker's success is integrated here from the density `exp(-|x|/s)`; nothing is shared with the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, norm

from leakcap import convert
from leakcap.noise import OperatingSystem
from leakcap.noise.norm import NormNoise

N = 8
HALVES = np.array([[u in chosen for u in range(N)] for chosen in combinations(range(N), N // 2)])
ROWS = np.array([0.2, 1.0, -0.4, 7.0, 0.3, 0.1, -1.1, 0.6])
ANSWERS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": lambda rows: rows.mean(),
    "largest": lambda rows: rows.max(),
    "whether the fourth is in": lambda rows: float(7.0 in rows),
    "a rare answer": lambda rows: 40.0 if rows.sum() > 8.6 else 0.0,
    "two numbers": lambda rows: np.array([rows.mean(), rows.max() / 3]),
}
LENGTHS: dict[float, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda x: np.abs(x).sum(axis=-1),
    2: lambda x: np.sqrt((x**2).sum(axis=-1)),
    math.inf: lambda x: np.abs(x).max(axis=-1),
}


def answers_of(name: str) -> np.ndarray:
    return np.array([np.atleast_1d(ANSWERS[name](ROWS[half])) for half in HALVES])


def best_success(answers: np.ndarray, order: float, scale: float) -> np.ndarray:
    """Against each unit: half, and a quarter of the integral of |p_in - p_out|."""
    d = answers.shape[1]
    axes = [np.linspace(a.min() - 14 * scale, a.max() + 14 * scale, 8001 if d == 1 else 161) for a in answers.T]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    density = np.array([np.exp(-LENGTHS[order](points - answer) / scale) for answer in answers])
    density /= density.sum(axis=1, keepdims=True)
    return np.array(
        [0.5 + 0.25 * np.abs(density[inside].mean(axis=0) - density[~inside].mean(axis=0)).sum() for inside in HALVES.T]
    )


def moment(answers: np.ndarray, order: float, centre: np.ndarray) -> float:
    return float(LENGTHS[order](answers - centre).mean())


@pytest.mark.parametrize("eta", [0.02, 0.1, 0.3, 0.45])
@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "two numbers"])
def test_no_attacker_beats_the_bound_over_all_halves_of_a_small_pool(name: str, eta: float) -> None:
    answers = answers_of(name)
    for centre in (answers.mean(axis=0), np.median(answers, axis=0), answers[3]):
        scale = convert.scale_for_mip(moment(answers, 2, centre), eta)
        found = best_success(answers, 2, scale)
        assert found.max() <= 0.5 + eta + 1e-5
        assert found.max() <= convert.from_first_moment(moment(answers, 2, centre), scale) + 1e-5


@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_it_holds_in_any_norm(order: float) -> None:
    answers = answers_of("two numbers")
    first = moment(answers, order, np.median(answers, axis=0))
    for eta in (0.1, 0.3):
        assert best_success(answers, order, convert.scale_for_mip(first, eta)).max() <= 0.5 + eta + 1e-4


def test_half_the_scale_is_caught() -> None:
    """The twin: noise half as large, for an answer that tells one person's membership and nothing else."""
    answers = answers_of("whether the fourth is in")
    for eta in (0.02, 0.1, 0.3):
        scale = convert.scale_for_mip(moment(answers, 2, np.array([0.5])), eta)
        assert best_success(answers, 2, scale).max() <= 0.5 + eta + 1e-6
        assert best_success(answers, 2, scale / 2).max() > 0.5 + eta + 0.003


def test_the_papers_scale_is_never_less() -> None:
    eta = np.linspace(0.001, 0.499, 400)
    for power in (2, 4, 6, 1000):
        assert (np.asarray(convert.scale_for_mip(1.0, eta)) < (6.16 / eta) ** (1 + 2 / power)).all()
    assert convert.scale_for_mip(1.0, 0.1) == pytest.approx(4.9326, abs=1e-4)
    assert pytest.approx(3795, abs=0.6) == (6.16 / 0.1) ** 2


def test_rounding_never_gains_privacy() -> None:
    rng = np.random.default_rng(0)
    first, eta = 10.0 ** rng.uniform(-9, 9, 4000), 0.5 * rng.uniform(1e-6, 1 - 1e-6, 4000)
    scale = np.asarray(convert.scale_for_mip(first, eta))
    assert (np.asarray(convert.from_first_moment(first, scale)) <= 0.5 + eta).all()
    assert (np.asarray(convert.from_first_moment(first, scale * (1 - 1e-6))) > 0.5 + eta * (1 - 1e-6)).all()
    assert scale == pytest.approx(first / np.arctanh(2 * eta), rel=1e-6)


def test_true_positives_exceed_false_ones_by_two_eta_and_no_more() -> None:
    """A mechanism whose best attacker reaches 1/2 + eta exactly, at every threshold: Laplace noise on one bit."""
    answers = answers_of("whether the fourth is in")
    for eta in (0.05, 0.1, 0.3):
        scale = -0.5 / math.log(1 - 2 * eta)  # two answers 1 apart: success 1 - exp(-1/(2 scale))/2
        assert best_success(answers, 2, scale).max() == pytest.approx(0.5 + eta, abs=1e-5)
        thresholds = np.linspace(-5, 6, 2001)
        true, false = (_above(thresholds - answer, scale) for answer in (1.0, 0.0))
        assert (true - false).max() == pytest.approx(2 * eta, abs=1e-6)
        assert (true > false + eta).any(), "Theorem 8 as printed"
        assert (true <= false + 2 * eta + 1e-12).all()


def _above(x: np.ndarray, scale: float) -> np.ndarray:
    return np.where(x > 0, np.exp(-np.abs(x) / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2)


# ---- the radius ---------------------------------------------------------------------------------------------------

TRIALS = 2500


def signs_right(noise: NormNoise, trials: int, radius: Callable[[], float] | None = None) -> int:
    """How often the sign of the sum tells which of two opposite answers, of length 1, was released."""
    source, rng, right = OperatingSystem(), np.random.default_rng(3), 0
    for _ in range(trials):
        side = rng.choice([-1.0, 1.0])
        answer = np.full(noise.dimension, side)
        if radius is None:
            released = noise.released(answer, source)
        else:  # planted: the same direction, another length
            drawn = noise.draw(source)
            released = answer + drawn / noise.length(drawn) * radius()
        right += (released.sum() > 0) == (side > 0)
    return right


@pytest.mark.parametrize("eta", [0.1, 0.4])
def test_the_radius_of_the_paper_is_told_apart_and_ours_is_not(eta: float) -> None:
    """False alarms below 1e-6."""
    d, rng = 40, np.random.default_rng(4)
    noise = NormNoise(np.full(d, math.sqrt(d)), 2, float(convert.scale_for_mip(1.0, eta)))
    assert noise.length(np.ones(d)) == pytest.approx(1)
    ours = signs_right(noise, TRIALS)
    assert binomtest(ours, TRIALS, 0.5 + eta, alternative="greater").pvalue > 1e-6
    printed = signs_right(noise, TRIALS, radius=lambda: rng.laplace(scale=noise.scale))
    assert binomtest(printed, TRIALS, 0.5 + eta, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize(("eta", "success"), [(0.4, 0.989), (0.25, 0.931)])
def test_the_papers_own_scale_is_broken_in_a_million_dimensions(eta: float, success: float) -> None:
    """Its constant and its radius: by an integral, and by draws of the component along the diagonal."""
    d, c = 10**6, (6.16 / eta) ** 2
    integral, _ = quad(lambda r: norm.cdf(math.sqrt(d) / r) * math.exp(-r / c) / c, 0, 60 * c, limit=400)
    assert integral == pytest.approx(success, abs=6e-4)
    rng = np.random.default_rng(0)
    along, rest = rng.standard_normal(40_000), rng.chisquare(d - 1, 40_000)
    radius = rng.laplace(scale=c, size=40_000)
    component = math.sqrt(d) * along / np.sqrt(along**2 + rest)
    assert float((1 + radius * component / math.sqrt(d) > 0).mean()) == pytest.approx(success, abs=0.006)
    assert success > 0.5 + eta


def test_with_the_papers_radius_the_scale_of_a_first_moment_fails_from_two_dimensions_on() -> None:
    """Answers of length 1 in opposite directions, in the plane: the nearer one, by an integral over directions."""
    scale = float(convert.scale_for_mip(1.0, 0.1))

    def success(survival: Callable[[float], float]) -> float:
        beyond, _ = quad(lambda angle: survival(1 / (scale * math.cos(angle))), 0, math.pi / 2)
        return 1 - beyond / (math.pi / 2) / 2

    assert 0.67 < success(lambda r: math.exp(-r)) < 0.68
    assert success(lambda r: (1 + r) * math.exp(-r)) < 0.6  # a radius of the law Gamma(2)
