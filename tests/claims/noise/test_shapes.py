"""The log-det bound against integrated information, and the shapes against every other way to spend the noise."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from leakcap.errors import InputError
from leakcap.ground.cores import Machine
from leakcap.noise.search import Goal, Search
from leakcap.noise.shapes import information_ceiling, isotropic, linear, logdet, shape_variances
from leakcap.worlds import draw_worlds
from tests.claims.leakage.plane import Plane

SHAPES = {"logdet": logdet, "linear": linear, "isotropic": isotropic}


def gaussian_mixture_information(points, weights, noise, groups):
    """I(W; Z + B) on a line by quadrature: `groups[i]` is the world of atom `i`, which has probability `weights[i]`."""
    y = np.linspace(points.min() - 10 * noise, points.max() + 10 * noise, 20_001)
    joint = np.stack(
        [
            (weights[groups == g] * np.exp(-0.5 * ((y[:, None] - points[groups == g]) / noise) ** 2)).sum(axis=1)
            for g in range(groups.max() + 1)
        ],
        axis=1,
    )
    joint /= joint.sum()
    total = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    used = joint > 1e-150
    return float((joint[used] * np.log(joint[used] / total[used])).sum())


@settings(max_examples=80, derandomize=True)
@given(st.data())
def test_no_mixture_carries_more_than_the_ceiling(data):
    """One output. Worlds may have random outputs of their own: several atoms each."""
    atoms = data.draw(st.integers(2, 8))
    points = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=atoms, max_size=atoms)))
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=atoms, max_size=atoms)))
    groups = np.array([0, 1, *data.draw(st.lists(st.integers(0, 1), min_size=atoms - 2, max_size=atoms - 2))])
    noise = data.draw(st.floats(0.05, 10))
    weights /= weights.sum()
    mean = weights @ points
    carried = gaussian_mixture_information(points, weights, noise, groups)
    own = gaussian_mixture_information(points, weights, noise, np.arange(atoms))  # every atom a world of its own
    ceiling = information_ceiling(np.array([weights @ (points - mean) ** 2]), np.array([noise**2]))
    assert carried <= own + 1e-9
    assert own <= ceiling + 1e-9
    # About any other centre the bound only grows.
    assert ceiling <= information_ceiling(np.array([weights @ (points - 1.0) ** 2]), np.array([noise**2])) + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_no_correlated_outputs_carry_more_than_either_form_of_the_ceiling(seed):
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(6, 16, rng)
    points = rng.standard_normal((16, 2)) @ np.array([[2.0, 1.8], [0.0, 0.3]]) * rng.choice([0.1, 1.0, 2.0])
    points -= points.mean(axis=0)
    carried = Plane(points, worlds.masks(), step=0.1).information()
    covariance = points.T @ points / 16
    by_determinant = 0.5 * np.linalg.slogdet(np.eye(2) + covariance)[1]
    by_diagonal = information_ceiling(np.diag(covariance), np.ones(2))
    assert carried <= by_determinant + 1e-6
    assert by_determinant <= by_diagonal
    # What calibration uses in turned directions is the determinant, rounded up.
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    goal = Goal(worlds, (), None, shape="best", floor=0.0, machine=Machine(2**28))
    turned = Search(goal, points @ turn, turn, np.ones(2), budget=1.0, seed=None)
    assert by_determinant <= turned.ceiling(0.0) <= by_determinant + 1e-11


def test_the_ceiling_is_nearly_reached_by_outputs_that_look_normal():
    """Quantiles of a normal, little apart: then hardly anything is given away."""
    z = 3 * np.array([float(mpmath.erfinv(2 * p - 1)) * math.sqrt(2) for p in (np.arange(400) + 0.5) / 400])
    carried = gaussian_mixture_information(z, np.full(400, 1 / 400), 1.0, np.arange(400))
    ceiling = information_ceiling(np.array([z @ z / 400]), np.ones(1))
    assert 0.98 * ceiling < carried <= ceiling
    # Planted faults: deviations in the place of variances, and a forgotten unit under the logarithm.
    assert carried > information_ceiling(np.sqrt([z @ z / 400]), np.ones(1))
    assert carried > 0.5 * math.log(z @ z / 400)


# ---- the least noise ----------------------------------------------------------------------------------------------


def information(variances, noise):
    """1/2 sum log(1 + v/e) to forty digits."""
    with mpmath.workdps(40):
        return (
            mpmath.fsum(
                mpmath.log1p(mpmath.mpf(float(v)) / mpmath.mpf(float(e))) for v, e in zip(variances, noise, strict=True)
            )
            / 2
        )


def least_by_search(variances, beta):
    """The least total noise found by a general optimiser, in logarithms, from several starts."""
    best = np.inf
    for start in (-2.0, 0.0, 2.0):
        with np.errstate(all="ignore"):  # it steps far out now and then
            found = minimize(
                lambda x: np.exp(x).sum(),
                np.log(variances / beta) + start,
                constraints={"type": "ineq", "fun": lambda x: beta - 0.5 * np.log1p(variances / np.exp(x)).sum()},
                method="SLSQP",
                options={"maxiter": 500, "ftol": 1e-12},
            )
        noise = np.exp(found.x)
        if 0.5 * np.log1p(variances / noise).sum() <= beta * (1 + 1e-7):
            best = min(best, noise.sum())
    return best


def spend_all(covariance, shape, beta):
    """The multiple of a noise covariance that carries exactly `beta`."""
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        noise = math.exp(middle) * shape
        carried = 0.5 * (np.linalg.slogdet(noise + covariance)[1] - np.linalg.slogdet(noise)[1])
        low, high = (middle, high) if carried > beta else (low, middle)
    return math.exp(high) * shape


VARIANCES = [np.array([4.0]), np.array([1.0, 1.0, 1.0]), np.array([9.0, 1.0, 0.01]), np.array([5.0, 3.0, 1e-6, 1e-9])]


@pytest.mark.parametrize("beta", [0.01, 0.25, 1.0, 4.0])
@pytest.mark.parametrize("variances", VARIANCES, ids=str)
def test_logdet_needs_the_least_noise_of_all(variances, beta):
    noise = logdet(variances, beta)
    total = noise.sum()
    searched = least_by_search(variances, beta)
    assert searched < np.inf
    assert total <= searched * (1 + 1e-5)
    # The stationarity of the proof: e^2 + e v is the same multiple of v everywhere.
    multiple = (noise**2 + noise * variances) / variances
    assert np.allclose(multiple, multiple[0], rtol=1e-9)
    # Noise with correlated coordinates does no better, however it is chosen.
    rng = np.random.default_rng(0)
    r = len(variances)
    for closeness in (0.01, 0.1, 1.0):
        for _ in range(10):
            root = np.diag(np.sqrt(noise)) @ (np.eye(r) + closeness * rng.standard_normal((r, r)))
            other = spend_all(np.diag(variances), root @ root.T, beta)
            assert np.trace(other) >= total * (1 - 1e-7)
    # Nor do the other shapes, and with less noise the budget is broken (the planted fault).
    assert total <= linear(variances, beta).sum() * (1 + 1e-9)
    assert total <= isotropic(variances, beta).sum() * (1 + 1e-9)
    assert information(variances, 0.999 * noise) > beta


def test_one_output_has_a_closed_form():
    for beta, saved in ((0.25, 2 - 1 / math.expm1(0.5)), (1.0, 0.5 - 1 / math.expm1(2))):
        assert logdet(np.array([1.0]), beta)[0] == pytest.approx(1 / math.expm1(2 * beta), rel=1e-9)
        assert linear(np.array([1.0]), beta)[0] - logdet(np.array([1.0]), beta)[0] == pytest.approx(saved, rel=1e-8)
    # As printed in the project's notes: 23 % less variance at beta 1/4, 3.2 times less at 1.
    assert logdet(np.array([1.0]), 0.25)[0] / linear(np.array([1.0]), 0.25)[0] == pytest.approx(0.77, abs=0.005)
    assert linear(np.array([1.0]), 1.0)[0] / logdet(np.array([1.0]), 1.0)[0] == pytest.approx(3.2, abs=0.05)


@settings(max_examples=150, derandomize=True)
@given(
    st.sampled_from(sorted(SHAPES)),
    st.lists(st.floats(-25, 15), min_size=1, max_size=12),
    st.floats(-9, 3.5),
)
def test_every_shape_keeps_its_budget(shape, logs, log_beta):
    variances, beta = np.exp(np.array(logs)), math.exp(log_beta)
    noise = shape_variances(shape, variances, beta)
    assert (noise > 0).all()
    carried = information(variances, noise)
    assert carried <= beta
    assert information_ceiling(variances, noise) >= carried
    if shape != "linear":
        assert carried >= beta * (1 - 1e-8)  # nothing is given away
    if shape == "isotropic":
        assert np.ptp(noise) == 0


def test_a_planted_factor_of_two_in_the_papers_rule_is_caught():
    variances = np.array([3.0, 1.0, 0.2])
    assert information(variances, linear(variances, 0.1) / 2) > 0.1


def test_unknown_shapes_are_refused():
    with pytest.raises(InputError):
        shape_variances("best", np.ones(2), 1.0)
