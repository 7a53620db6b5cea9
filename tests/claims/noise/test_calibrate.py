"""Calibration: more noise never helps an attacker, and what comes back is what was certified."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.leakage.certify import Effort, certify
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import needs
from leakcap.noise import sampler_distance
from leakcap.noise.search import Goal, Search
from leakcap.worlds import draw_worlds
from tests.claims.leakage.plane import Plane

module = import_module("leakcap.noise.calibrate")  # the package has a function of that name
PRIORS = [1 / 16, 0.1, 0.3, 0.5, 0.8]
CUTS = np.array([0.55, 2 / 3, 0.8, 0.95])


def game(rate=1 / 2, m=16, n=6, r=2, seed=0):
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(n, m, rng, rate)
    points = worlds.masks() @ rng.standard_normal((n, r))
    return worlds, (points - points.mean(axis=0)) / points.std()


def best(cost, gain, budget):
    """The most gain for a budget, cheapest first."""
    order = np.argsort(-gain / np.maximum(cost, 1e-300))
    return np.interp(budget, np.concatenate([[0], cost[order].cumsum()]), np.concatenate([[0], gain[order].cumsum()]))


def figures(points, worlds):
    """Every figure that the page names, by quadrature."""
    plane = Plane(points, worlds.masks(), step=0.12)
    inside, total = plane.joint @ plane.masks, plane.joint.sum(axis=1)
    wins = np.random.default_rng(9).random((plane.m, 5)) < 0.4
    q = plane.rate
    return {
        "membership": plane.membership(),
        "sticks": plane.sticks(CUTS).ravel(),
        "true positive rate": np.array([best(total - a, a, f * (1 - q)) / q for a in inside.T for f in (0.01, 0.2)]),
        "precision": np.array([best(total, a, c) / c for a in inside.T for c in (0.02, 0.3)]),
        "naming": np.array([plane.naming()]),
        "task": np.array([plane.task(wins.astype(float))]),
        "curve": plane.curve(PRIORS),
        "information": np.array([plane.information()]),
        "known": plane.known(2),
    }


def largest_rise(less, more, worlds, outputs):
    """How much any figure grows from noise of covariance `less` to noise of covariance `more`."""
    first, second = (figures(outputs @ np.linalg.inv(np.linalg.cholesky(noise)).T, worlds) for noise in (less, more))
    return max(float((second[name] - first[name]).max()) for name in first)


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_every_figure_falls_as_the_noise_grows(rate):
    rng = np.random.default_rng(1)
    worlds, outputs = game(rate, m=18)
    for scale in (0.3, 2.0):
        root = rng.standard_normal((2, 2))
        less = scale * (root @ root.T + 0.1 * np.eye(2))
        extra = rng.standard_normal((2, 1))
        # A multiple, noise in one further direction only, and a floor under one eigenvalue.
        turned = np.linalg.eigh(less)
        floored = (turned[1] * np.maximum(turned[0], 2 * turned[0][0])) @ turned[1].T
        for more in (1.3 * less, less + scale * extra @ extra.T, floored):
            assert largest_rise(less, more, worlds, outputs) <= 2e-4  # the quadrature's step


def test_planted_noise_that_is_not_larger_in_every_direction_is_caught():
    """Twice the variance in one direction, half of it in the other: more noise in total, and some figure rises."""
    worlds, outputs = game()
    assert largest_rise(0.3 * np.eye(2), 0.3 * np.diag([3.0, 0.5]), worlds, outputs) > 0.01


def search_for(worlds, coordinates, caps, turn=None, floor=0.0):
    goal = Goal.of(caps, worlds, floor=floor, machine=Machine(2**28))
    shape = np.array([1.0, 0.3])[: coordinates.shape[1]]
    return Search(goal, coordinates, turn, shape, budget=1.0, seed=np.random.SeedSequence(0))


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_the_family_of_the_search_grows_and_its_figures_fall(floor):
    caps = [lc.membership(0.7), lc.any_inference(0.1, 0.5), lc.mutual_information(0.5)]
    for r in (1, 2):
        worlds, outputs = game(r=r)
        search = search_for(worlds, outputs, caps, floor=floor)
        scales = np.linspace(-5, 4, 10)
        deviations = np.array([search.deviations(t) for t in scales])
        assert (np.diff(deviations, axis=0) >= 0).all()
        assert deviations.min() >= floor
        assert (np.diff([search.ceiling(t) for t in scales]) <= 0).all()
        if r == 1:
            seen = [search.observe(t, 0, step=2.0**-8) for t in scales]
            for figure in (
                lambda s: s.units.balanced.estimate,
                lambda s: s.units.sticks.estimate.ravel(),
                lambda s: s.worlds.curve.estimate,
                lambda s: s.worlds.information.estimate,
            ):
                assert (np.diff([figure(s) for s in seen], axis=0) <= 1e-6).all()
            assert (np.diff([search.gap(s, lambda mean: mean.estimate) for s in seen]) <= 1e-6).all()


def test_certified_figures_are_not_monotone():
    """Why they are never bisected: with a hair more noise and fresh draws, some certified figures rise."""
    worlds, points = game()
    wanted, caps = needs([lc.membership(0.9)], worlds)
    effort = Effort((512,), 512, 256)
    found = []
    for i, scale in enumerate(np.linspace(1, 1.01, 8)):
        seed = np.random.SeedSequence(i)
        done = certify(points / scale, worlds, caps, wanted, 0.1, effort, seed, 2.0, 0.0, None, Machine(2**28))
        found.append(done.membership)
    assert (np.diff(found) > 0).any()


# ---- what is returned ---------------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """Every call of the certifying pass: its arguments by name, and what it found."""
    record = []

    def spy(*given, **named):
        found = certify(*given, **named)
        record.append((inspect.signature(certify).bind(*given, **named).arguments, found))
        return found

    monkeypatch.setattr(module, "certify", spy)
    return record


def calibrated(worlds, outputs, caps, attempts, seed, draws=None):
    variances, rng = (outputs**2).mean(axis=0), np.random.default_rng(seed)
    goal = Goal.of(caps, worlds)
    return module.calibrate(goal, outputs, variances, attempts=attempts, rng=rng, draws=draws)


def plane_points(points):
    """One output as the first of two."""
    return points if points.shape[1] == 2 else np.hstack([points, np.zeros_like(points)])


CASES = {
    "one output": (1, "best", 0.0),
    "best shape": (2, "best", 0.0),
    "one of the papers' shapes": (2, "linear", 0.0),
    "with a floor": (2, "isotropic", 0.4),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_returned_was_certified_at_the_noise_that_is_used(name, calls):
    r, shape, floor = CASES[name]
    worlds, outputs = game(r=r, m=32, n=8)
    cap = lc.membership(0.66)
    attempts = Attempts(0.1)
    done = module.calibrate(
        Goal.of([cap], worlds, shape=shape, floor=floor),
        outputs,
        (outputs**2).mean(axis=0),
        attempts=attempts,
        rng=np.random.default_rng(2),
        draws=2**13,
    )
    given, found = calls[-1]
    assert done.findings is found
    assert np.array_equal(done.coordinates / done.deviations, given["points"])
    assert found.values[0] <= cap.limit
    assert done.deviations.min() >= floor
    assert done.step == (given["step"] or module.GRID)
    assert done.distance == given["distance"]
    assert done.distance == sampler_distance(r, float(np.abs(given["points"]).max()), done.step)
    # Every attempt spent its own share and drew afresh.
    assert [one["gamma"] for one, _ in calls] == [0.1 / (j * (j + 1)) for j in range(1, len(calls) + 1)]
    assert done.attempt == attempts.made == len(calls)
    # The coordinates are those of the outputs, turned.
    turned = outputs if done.turn is None else outputs @ done.turn
    assert np.allclose(turned, done.coordinates)
    # And the best attacker, by quadrature, stays below what was certified for him; not far below.
    plane = Plane(plane_points(done.coordinates / done.deviations), worlds.masks(), step=0.1)
    assert (plane.membership() <= found.exposure + 2e-4).all()
    assert plane.membership().max() >= found.membership - 0.02
    if not floor:
        assert found.membership >= 0.5 + 0.9 * (cap.limit - 0.5), "no more noise than needed"


def test_a_planted_noise_five_per_cent_too_small_is_caught():
    """Certified without sampling error, so that five per cent show: an attacker beats the certified figure."""
    worlds, outputs = game(r=1, m=32, n=8)
    done = calibrated(worlds, outputs, [lc.membership(0.66)], Attempts(0.1), 2)
    assert done.findings.integrated
    points = plane_points(done.coordinates / done.deviations)
    assert Plane(points, worlds.masks(), step=0.05).membership().max() <= done.findings.membership + 1e-4
    assert Plane(points / 0.95, worlds.masks(), step=0.05).membership().max() > done.findings.membership + 1e-3


@pytest.mark.parametrize("columns", [1, 3])
def test_a_plan_uses_the_coordinates_and_deviations_that_were_certified(columns, calls):
    X = np.random.default_rng(4).standard_normal((12, columns))
    plan = lc.plan(lambda X: X.mean(axis=0), X, cap=lc.membership(0.7), worlds=32, seed=1, draws=1024)
    given, found = calls[-1]
    noise = plan.noise
    assert np.array_equal(noise.space.coordinates / noise.deviations, given["points"])
    assert plan.certificate.membership_success == found.membership
    assert plan.certificate.grid_step == (given["step"] or module.GRID)
    # From outside: outputs and the noise's own factor lead to the same distances between worlds.
    whole = (plan.outputs - plan.outputs.mean(axis=0)) @ np.linalg.pinv(noise.factor).T
    assert np.allclose(whole @ whole.T, given["points"] @ given["points"].T, atol=1e-8)


def test_a_failed_attempt_raises_the_noise_and_draws_afresh(calls, monkeypatch):
    """The search is made to aim too low, so that the first attempts fail."""
    monkeypatch.setattr("leakcap.noise.search.forecast", lambda mean, **_: mean.estimate)
    worlds, outputs = game(m=32, n=8)
    attempts = Attempts(0.1)
    done = calibrated(worlds, outputs, [lc.membership(0.66)], attempts, 2, 2048)
    assert done.attempt > 1
    limits = [found.values[0] for _, found in calls]
    assert all(value > 0.66 for value in limits[:-1])
    assert limits[-1] <= 0.66
    spread = [np.abs(one["points"]).max() for one, _ in calls]
    assert (np.diff(spread) < 0).all()
    seeds = {one["seed"].entropy for one, _ in calls}
    assert len(seeds) == len(calls)
    # Recaps go on where the account stands.
    calibrated(worlds, outputs, [lc.membership(0.7)], attempts, 3, 2048)
    assert [one["gamma"] for one, _ in calls] == [0.1 / (j * (j + 1)) for j in range(1, len(calls) + 1)]


def test_a_cap_that_is_missed_by_a_little_is_missed(monkeypatch):
    """The first pass is told to find a hair above the cap, the second one the cap itself."""
    found = [0.66 + 1e-12, 0.66]

    def told(*given, **named):
        return replace(certify(*given, **named), values=(found.pop(0),))

    monkeypatch.setattr(module, "certify", told)
    worlds, outputs = game(m=32, n=8)
    done = calibrated(worlds, outputs, [lc.membership(0.66)], Attempts(0.1), 2, 2048)
    assert done.attempt == 2
    assert done.findings.values == (0.66,)
