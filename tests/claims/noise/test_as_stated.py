"""The noise that is drawn is the noise that the certificate states."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import leakcap as lc
from leakcap.noise import Seeded
from tests.unit.planning.means import SMALL, X, mean, seeded, vectors


class OneWorld(Seeded):
    """Release randomness for one chosen secret, optionally with the planted fault of too little noise."""

    def __init__(self, world: int, seed: int, scale: float = 1.0) -> None:
        super().__init__(seed)
        self.world, self.scale = world, scale

    def below(self, n: int) -> int:
        return self.world

    def normals(self, size: int) -> np.ndarray:
        return self.scale * super().normals(size)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "membership": {"cap": lc.membership(0.75)},
    "isotropic": {"shape": "isotropic", "weights": "equal"},
    "linear": {"shape": "linear"},
    "weights": {"weights": (1.0, 4.0, 100.0)},
    "floor": {"floor": 0.2},
    "a floor above the noise": {"floor": 5.0},
    "thirds": {"rate": 1 / 3, "worlds": 33},
}


def with_a_constant(x: np.ndarray) -> np.ndarray:
    """Three outputs that vary, one that follows from them, and a constant."""
    return np.r_[x.mean(axis=0), x.mean(axis=0)[[0, 2]].sum(), 7.0]


@functools.cache
def five_outputs(name: str) -> lc.Plan:
    options = dict(OPTIONS[name])
    if name == "weights":
        options["weights"] = (1.0, 4.0, 100.0, 2.0, 3.0)
    return lc.plan(with_a_constant, X, seed=12, **(SMALL | options))


@pytest.mark.parametrize("name", OPTIONS)
def test_factor_covariance_and_deviations_agree(name: str) -> None:
    plan = five_outputs(name)
    factor, covariance = plan.noise.factor, plan.noise.covariance()
    assert factor.shape == (5, 5 if plan.noise.floor else 3)
    assert np.allclose(factor @ factor.T, covariance, atol=1e-15)
    assert np.allclose(plan.noise.output_deviations**2, np.diag(covariance))
    assert plan.noise.std == pytest.approx(np.sqrt(np.trace(covariance)))
    rank = np.linalg.matrix_rank(covariance / covariance.max(), tol=1e-13)
    assert rank == plan.certificate.noised_directions == (5 if plan.noise.floor else 3)
    assert plan.certificate.unnoised_directions == 5 - rank


@pytest.mark.parametrize("name", OPTIONS)
def test_released_vectors_have_the_stated_covariance(name: str) -> None:
    """5,000 releases of one world. The whitened noise has a chi-square length, and every entry of its covariance
    lies within 6 standard errors. False alarms: 1e-6 for the length, below 1e-7 for the entries."""
    plan = five_outputs(name)
    factor = plan.noise.factor
    whiten = np.linalg.pinv(factor)
    count, r = 5000, factor.shape[1]

    def as_stated(scale: float) -> tuple[bool, bool]:
        shift = vectors(plan, count, OneWorld(3, 44, scale)) - plan.outputs[3]
        noise = shift @ whiten.T
        length = float((noise**2).sum())
        inside = chi2.ppf(5e-7, count * r) <= length <= chi2.isf(5e-7, count * r)
        found = noise.T @ noise / count
        error = np.sqrt((1 + np.eye(r)) / count)
        return inside, bool((np.abs(found - np.eye(r)) < 6 * error).all())

    assert as_stated(1.0) == (True, True)
    assert as_stated(0.5) == (False, False), "the planted fault: half the noise"
    outside = vectors(plan, 50, OneWorld(3, 45)) - plan.outputs[3]
    if not plan.noise.floor:
        assert np.allclose(outside, outside @ whiten.T @ factor.T, atol=1e-9), "no noise outside the outputs' subspace"


def test_a_noise_that_ignores_correlations_would_be_rejected() -> None:
    """A second planted fault: the right deviations in every output, independent of each other."""
    plan = five_outputs("plain")
    whiten = np.linalg.pinv(plan.noise.factor)
    wrong = np.random.default_rng(1).normal(size=(5000, 5)) * plan.noise.output_deviations
    noise = wrong @ whiten.T
    error = np.sqrt((1 + np.eye(3)) / 5000)
    assert not (np.abs(noise.T @ noise / 5000 - np.eye(3)) < 6 * error).all()


def test_each_release_starts_from_a_uniformly_drawn_world() -> None:
    """Without noise the world can be read off: 32 worlds, 3,200 releases, chi-square, false alarms 1e-6."""
    plan = seeded()

    class Noiseless(Seeded):
        def normals(self, size: int) -> np.ndarray:
            return np.zeros(size)

    class NeverTheLast(Noiseless):
        """The planted fault: one world in 32 is never drawn."""

        def below(self, n: int) -> int:
            return super().below(n - 1)

    def uniform(randomness: Seeded) -> bool:
        found = vectors(plan, 3200, randomness)
        gaps = ((found[:, None] - plan.outputs) / plan.outputs.std(axis=0)) ** 2
        counts = np.bincount(gaps.sum(axis=2).argmin(axis=1), minlength=32)
        return bool(((counts - 100) ** 2).sum() / 100 < chi2.isf(1e-6, 31))

    assert uniform(Noiseless(10))
    assert not uniform(NeverTheLast(10))


def test_the_mean_release_is_the_mean_world() -> None:
    """5,000 releases; each output within 6 standard errors of the mean over worlds (false alarms below 1e-8)."""
    plan = seeded()
    found = vectors(plan, 5000, Seeded(13))
    error = found.std(axis=0) / np.sqrt(5000)
    assert (np.abs(found.mean(axis=0) - plan.outputs.mean(axis=0)) < 6 * error).all()


def test_a_floor_is_the_least_deviation_in_every_direction() -> None:
    plan = five_outputs("a floor above the noise")
    scale = plan.noise.space.scale
    scaled = plan.noise.covariance() * np.outer(scale, scale)
    assert np.linalg.eigvalsh(scaled).min() == pytest.approx(25.0)
    assert plan.noise.output_deviations.min() > 0


def test_heavier_weights_buy_less_noise() -> None:
    """The noise of an output falls as its weight grows; only ratios of weights matter."""
    light, heavy = (
        lc.plan(mean, X, seed=3, **(SMALL | {"weights": weights})).noise.output_deviations
        for weights in ((1.0, 1e-2, 1e2), (1e4, 1e-2, 1e2))
    )
    assert heavy[0] < light[0]
    assert heavy[1:].sum() > light[1:].sum()
    scaled = lc.plan(mean, X, seed=3, **(SMALL | {"weights": (3.0, 3e-2, 3e2)})).noise.output_deviations
    assert np.allclose(scaled, light, rtol=1e-6)


def test_noise_does_not_depend_on_units_of_measurement() -> None:
    metres = lc.plan(mean, X, seed=3, **SMALL).noise.output_deviations
    millimetres = lc.plan(lambda x: x.mean(axis=0) * [1e3, 1.0, 1e-3], X, seed=3, **SMALL).noise.output_deviations
    assert np.allclose(millimetres, metres * [1e3, 1.0, 1e-3], rtol=1e-6)


def test_large_noise_matrices_are_refused_not_made() -> None:
    plan = lc.plan(lambda x: np.outer(x.mean(axis=0), np.arange(1, 2001)).ravel(), X, seed=3, **SMALL)
    assert plan.noise.factor.shape == (6000, 3)
    with pytest.raises(lc.InputError, match="4,096"):
        plan.noise.covariance()
    assert plan.noise.std == pytest.approx(np.linalg.norm(plan.noise.factor))
