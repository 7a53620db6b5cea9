"""Exponential noise: its law, how well two answers are told apart under it, and what is drawn for it.

Integrals are made here from the density itself, `exp(-|x|/s)`, or from Bessel functions; the library averages over
normal laws. Tests of the law reject a right one with probability 1e-5.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import kve
from scipy.stats import beta, expon, gamma, kstest

from leakcap.noise import Exponential, OperatingSystem, Seeded, entropy, sampler_distance
from leakcap.noise.exponential import scales

FALSE_ALARM = 1e-5
DIMENSIONS = (1, 5)


# ---- the law ------------------------------------------------------------------------------------------------------


def follows(noise: np.ndarray, scale: float) -> bool:
    """Whether lengths are Gamma(d, scale) and squares of a direction's first coordinate Beta(1/2, (d-1)/2)."""
    d = noise.shape[1]
    length = np.linalg.norm(noise, axis=1)
    right = kstest(length / scale, gamma(d).cdf).pvalue > FALSE_ALARM
    if d > 1:
        for along in (noise[:, 0], noise.sum(axis=1) / math.sqrt(d)):
            right &= kstest((along / length) ** 2, beta(0.5, (d - 1) / 2).cdf).pvalue > FALSE_ALARM
        right &= abs(np.corrcoef(length, noise[:, 0])[0, 1]) < 5 / math.sqrt(len(noise))
    return bool(right and abs((noise > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(noise.size))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_lengths_and_directions_follow_the_law_and_planted_ones_do_not(d: int) -> None:
    law, source = Exponential(d), OperatingSystem()
    noise = np.array([law.draw(d, source) for _ in range(8000)])
    assert follows(noise, law.scale)
    assert noise.var(axis=0) == pytest.approx(np.ones(d), rel=0.1)
    assert not follows(1.1 * noise, law.scale)
    assert not follows(np.abs(noise), law.scale)
    rng = np.random.default_rng(d)
    direction = noise / np.linalg.norm(noise, axis=1)[:, None]
    if d > 1:  # the paper's radius, Laplace: the same in one dimension only
        assert not follows(direction * rng.laplace(scale=law.scale, size=(len(noise), 1)), law.scale)
        assert not follows(direction * rng.gamma(d - 1, law.scale, size=(len(noise), 1)), law.scale)
        skewed = noise * np.where(np.arange(d) == 0, 1.2, 1.0)
        assert not follows(skewed, law.scale)
    assert not follows(rng.standard_normal(noise.shape), law.scale)  # the same variance, another law


@pytest.mark.parametrize("d", [1, 2, 10, 1000, 10**6])
def test_the_sum_over_scales_has_the_moments_of_chi_square(d: int) -> None:
    sizes, weights = scales(d)
    assert weights.sum() == pytest.approx(1, abs=1e-13)
    assert (weights * sizes**2).sum() == pytest.approx(1, abs=1e-12)
    assert (weights * sizes**4).sum() == pytest.approx((d + 3) / (d + 1), rel=1e-12)
    if d > 1:
        root = math.sqrt((d + 1) / 2) * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2))
        assert (weights / sizes).sum() == pytest.approx(root, rel=1e-9)


# ---- two answers --------------------------------------------------------------------------------------------------


def told(d: int, distance: float, scale: float) -> float:
    """Half, and half the total variation of two such laws: by an integral over the distance along their line."""
    if d == 1:
        return 1 - math.exp(-distance / (2 * scale)) / 2
    if d == 2:  # by brute force over a plane
        x = np.linspace(-14 * scale, 14 * scale + distance, 901)
        y = np.linspace(-14 * scale, 14 * scale, 901)
        here = np.exp(-np.hypot(x[:, None], y) / scale)
        there = np.exp(-np.hypot(x[:, None] - distance, y) / scale)
        cell = (x[1] - x[0]) * (y[1] - y[0])
        return 0.5 + 0.25 * float(np.abs(here - there).sum() * cell) / (2 * math.pi * scale**2)

    def density(t: float) -> float:  # of one coordinate: t^(d/2) K_(d/2)(t)
        return float(t ** (d / 2) * kve(d / 2, t) * math.exp(-t)) if t > 0 else 0.0

    whole, _ = quad(density, 0, 60, limit=400, epsabs=1e-13)
    part, _ = quad(density, 0, distance / (2 * scale), limit=400, epsabs=1e-13)
    return 0.5 + 0.5 * part / whole


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 20])
def test_success_equals_an_independent_integration(d: int) -> None:
    law, error = Exponential(d), 1e-4 if d == 2 else 1e-9
    for distance in (0.05, 0.4, 1.3, 3.0, 7.0):
        truth = told(d, distance, law.scale)
        assert truth - error <= float(law.success(np.array(distance))) <= truth + error + 1e-6
        # Planted: the noise taken to be twice as large, and a distance for half of it.
        assert float(law.success(np.array(distance / 2))) < truth - 1e-3 or truth > 0.99
    far = law.furthest(0.6)
    assert told(d, far, law.scale) <= 0.6 + error
    assert told(d, 1.001 * far, law.scale) > 0.6 - max(error, 1e-5)


@pytest.mark.parametrize("d", [1, 2, 5, 50, 10_000])
def test_success_grows_is_concave_and_below_the_hyperbolic_tangent(d: int) -> None:
    law = Exponential(d)
    distances = np.linspace(0, 60, 4001)
    success = law.success(distances)
    assert (np.diff(success) >= 0).all()
    assert (success >= 0.5).all() and success[-1] == 1
    assert np.diff(success[distances < 40], 2).max() < 1e-6  # what rounding up adds
    by_square = law.success(np.sqrt(np.linspace(0, 900, 4001)))
    assert np.diff(by_square, 2).max() < 1e-6
    assert (success <= 0.5 + 0.5 * np.tanh(distances / (2 * law.scale)) + 1e-6).all()
    assert law.below(np.array(0.0)) == pytest.approx(0.5, abs=1e-12)
    for probability in (0.01, 0.3, 0.9, 0.999):
        assert float(law.below(np.array(law.quantile(probability)))) == pytest.approx(probability, abs=1e-9)


def test_a_table_with_too_few_cells_would_fall_below_the_curve(monkeypatch: Any) -> None:
    """The slack is needed and covers it: chords of a coarse table lie below the curve, with it they do not."""
    from leakcap.noise import exponential

    exponential._table.cache_clear()
    monkeypatch.setattr(exponential, "CELLS", 64)
    distances = np.linspace(0.01, 8, 500)
    truth = 1 - np.exp(-distances / math.sqrt(2)) / 2
    bound = Exponential(1).success(distances)
    slack = exponential._table(1).slack
    exponential._table.cache_clear()
    assert (bound >= truth).all()
    assert (bound - slack < truth - 1e-3).any()


@pytest.mark.parametrize("d", [1, 2, 6])
def test_no_likelihood_ratio_is_larger_than_stated(d: int) -> None:
    law, distance = Exponential(d), 0.7
    rng = np.random.default_rng(d)
    seen = rng.standard_normal((20_000, d)) * 4
    seen[0] = 0
    seen[0, 0] = 9.0  # on the line through both, beyond them: there it is attained
    other = np.zeros(d)
    other[0] = distance
    ratio = (np.linalg.norm(seen, axis=1) - np.linalg.norm(seen - other, axis=1)) / law.scale
    posterior = 1 / (1 + np.exp(-ratio))
    assert posterior.max() <= law.surest(distance)
    assert posterior.max() == pytest.approx(law.surest(distance), abs=1e-9)
    assert posterior.max() > law.surest(0.9 * distance)


# ---- what is drawn ------------------------------------------------------------------------------------------------


def test_the_samplers_distance_is_the_formula_of_the_page() -> None:
    for d, reach, step in ((1, 3.0, 2.0**-6), (4, 10.0, 2.0**-10), (100, 1e3, 2.0**-10)):
        expected = 2 * sampler_distance(d, reach, step)
        expected += math.sqrt(d / 2) * (2.0**-46 + (d + 1) * 2.0**-57) + 2.0**-52
        assert Exponential(d).sampler_distance(d, reach, step) == pytest.approx(expected, rel=1e-12, abs=0)


WORDS = np.random.default_rng(0).integers(2**64, size=(20, 11), dtype=np.uint64)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_every_number_of_a_draw_comes_from_the_operating_system_and_errs_by_less_than_stated(
    d: int, monkeypatch: Any
) -> None:
    """2d + 1 words of 64 bits: quantiles and their products again, with fifty digits."""
    worst = 0.0
    for words in WORDS[:20, : 2 * d + 1]:
        monkeypatch.setattr(entropy.os, "urandom", lambda size, words=words: words.tobytes()[:size])
        found = Exponential(d).draw(d, OperatingSystem())
        with mpmath.workdps(50):
            numbers = [_quantile(int(word)) for word in words]
            size = mpmath.sqrt(sum(w * w for w in numbers[d:]) / (d + 1))
            ideal = [z * size for z in numbers[:d]]
            worst = max(worst, *(abs(float(x / y - 1)) for x, y in zip(found.tolist(), ideal, strict=True)))
    assert worst < 2.0**-47, "about 20 units in the last place of a number and of the scale together"
    assert worst > 0


def _quantile(word: int) -> Any:
    tail = (mpmath.mpf(word % 2**63) + 0.5) / 2**64
    size = mpmath.findroot(lambda x: mpmath.ncdf(-x) - tail, 8.0 * (0.5 - float(tail)) ** 3 + 2.4 * (0.5 - float(tail)))
    return size if word >= 2**63 else -size


def test_two_draws_share_no_number() -> None:
    law = Exponential(3)
    found = np.array([law.draw(3, Seeded(7)), law.draw(3, OperatingSystem()), law.draw(3, OperatingSystem())])
    assert len(np.unique(found)) == 9
    assert np.array_equal(law.draw(3, Seeded(7)), found[0])


def test_a_planted_radius_is_not_what_the_formula_says() -> None:
    """The twin of the law: an exponential radius in ten dimensions tells two answers that ours hides."""
    d, distance = 10, Exponential(10).furthest(0.6)
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((20_000, d))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    ours = direction * rng.gamma(d, Exponential(d).scale, size=(20_000, 1))
    planted = direction * expon(scale=Exponential(d).scale).rvs((20_000, 1), random_state=1)
    right = [float((noise[:, 0] < distance / 2).mean()) for noise in (ours, planted)]
    assert right[0] == pytest.approx(0.6, abs=0.02)
    assert right[1] > 0.7
