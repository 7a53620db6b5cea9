"""The search over all covariances: its gradients, that it is never worse, and that what it returns keeps the cap."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import leakcap as lc
from leakcap.leakage.sensitivity import figures_of, glance
from leakcap.noise import optimise
from leakcap.noise.search import Goal
from leakcap.planning import optimising
from leakcap.worlds import given_worlds
from tests.claims.noise import gaussian_oracle as oracle

WORLDS = given_worlds(oracle.halves(8), 8)
MASKS = WORLDS.masks()
POOL = np.random.default_rng(3).standard_normal((8, 2)) * [1.0, 0.4]
POINTS = 3 * (MASKS @ POOL / 4 - POOL.mean(axis=0))

CAPS = {
    "membership": lc.membership(0.65),
    "recognised": lc.true_positive_rate(0.1, 0.3),
    "precision": lc.precision(0.1, 0.8),
    "naming": lc.name_a_member(0.8),
    "any inference": lc.any_inference(0.1, 0.3),
    "identification": lc.identification(0.2),
    "information": lc.mutual_information(0.5),
    "task": lc.task((MASKS[:, :3].sum(axis=1)[:, None] == np.arange(4)).astype(float), 0.8),
}


def seen(cap, points):
    """Always by the same releases."""
    goal = Goal.of([cap], WORLDS)
    people = np.arange(8 if goal.wanted.units else 0)
    return glance(figures_of(WORLDS, goal.caps, people), points, 4096, np.random.default_rng(5))


@pytest.mark.parametrize("name", CAPS)
def test_gradients_are_those_of_the_figures(name):
    """Stretching the outputs a little changes every figure as its gradient says: the same releases, differences."""
    cap, step = CAPS[name], 2e-3
    rng = np.random.default_rng(1)
    here = seen(cap, POINTS)
    weights = rng.random(len(here.used))
    towards = here.toward(weights)
    for stretch in (np.eye(2), np.array([[1.0, 0.5], [0.5, -1.0]])):
        up, down = (seen(cap, POINTS @ (np.eye(2) + sign * step * stretch)) for sign in (1, -1))
        change = weights @ (up.used - down.used) / (2 * step)
        assert change == pytest.approx((towards * stretch).sum(), rel=0.05, abs=0.02)


def test_a_planted_gradient_of_the_other_sign_is_caught():
    here = seen(CAPS["membership"], POINTS)
    weights = np.ones(len(here.used))
    up = seen(CAPS["membership"], POINTS * 1.002)
    assert (up.used - here.used).sum() / 0.002 != pytest.approx(-np.trace(here.toward(weights)), rel=0.05)


def rows():
    """A few people far out, each in a direction of their own: shapes by first order are not the best."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((40, 3))
    table[:3] += 6 * np.eye(3)
    return table


@pytest.fixture(scope="module")
def searched():
    """Forty rounds, whatever the machine."""
    plan = lc.plan(lambda x: x.mean(axis=0), rows(), cap=0.7, worlds=128, seed=1, design="worlds", draws=8192)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimise, "time", SimpleNamespace(perf_counter=count(step=0.025).__next__))
        return plan, lc.optimize_noise(plan, seconds=1.25)


def test_the_search_is_never_worse_and_its_plan_keeps_the_cap(searched):
    plan, found = searched
    assert found.after <= found.before == pytest.approx((plan.noise.deviations**2).sum())
    assert found.after == pytest.approx((found.plan.noise.deviations**2).sum())
    assert found.plan.certificate.membership_success <= 0.7
    assert found.ratio > 1.05  # it does find something here
    assert found.plan.certificate.attempt > plan.certificate.attempt  # with a share of gamma of its own
    assert found.lower_bound <= found.after and "times the lower bound" in repr(found)


def test_the_certificate_states_what_adds_up_of_the_noise_that_was_found(searched):
    for plan in (searched[0], searched[1].plan):
        spread = np.cov(plan.outputs.T, bias=True)
        whitened = np.linalg.solve(plan.noise.covariance(), spread)
        information = np.linalg.slogdet(np.eye(3) + whitened)[1] / 2
        assert plan.certificate.log_det == pytest.approx(information, rel=1e-9)
        assert plan.certificate.signal == pytest.approx(np.trace(whitened), rel=1e-9)
    assert searched[0].certificate.signal != pytest.approx(searched[1].plan.certificate.signal, rel=0.01)


def test_an_independent_attacker_stays_below_the_cap_and_beats_it_with_less_noise():
    """Two outputs, by quadrature; and with two thirds of the noise, as a planted fault, above it."""
    plan = lc.plan(lambda x: x.mean(axis=0), POOL, cap=0.7, worlds=MASKS, seed=1, design="worlds", draws=2**15)
    found = lc.optimize_noise(plan, seconds=1.0).plan
    covariance, masks = found.noise.covariance(), found.worlds.masks()
    assert oracle.membership(oracle.joint(found.outputs, covariance, fine=121, reach=6), masks) <= 0.7
    assert oracle.membership(oracle.joint(found.outputs, covariance / 1.5, fine=121, reach=6), masks) > 0.7


def test_the_given_plan_comes_back_where_nothing_better_is_found(searched, monkeypatch):
    plan, _ = searched
    best = optimising.better_shape

    def worse(goal, coordinates, covariance, **rest):
        return best(goal, coordinates, np.diag(np.diag(covariance)[::-1] ** 3), **rest | {"seconds": 0.0})

    monkeypatch.setattr(optimising, "better_shape", worse)
    found = lc.optimize_noise(plan, seconds=0.1)
    assert found.plan is plan and found.after == found.before and "nothing better" in repr(found)


def test_one_output_has_one_shape_and_its_bound_is_close():
    plan = lc.plan(lambda x: x[:, 0].mean(), POOL, cap=0.7, worlds=MASKS, seed=1, design="worlds")
    found = lc.optimize_noise(plan, seconds=0.1)
    assert found.plan is plan and 1 <= found.gap < 1.05


def test_equal_answers_need_no_noise_and_no_search():
    plan = lc.plan(lambda x: 1.0, POOL, cap=0.7, worlds=64, seed=1, design="worlds")
    found = lc.optimize_noise(plan, seconds=0.1)
    assert found.plan is plan and found.after == found.lower_bound == 0 and found.gap == 1


def test_both_plans_have_one_right_to_release(searched):
    plan, found = searched
    found.plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_with_a_checkpoint_the_same_search_gives_the_same_noise_again(tmp_path):
    def once():
        plan = lc.plan(
            lambda x: x.mean(axis=0), rows(), cap=0.7, worlds=64, design="worlds", draws=1024, checkpoint=tmp_path / "c"
        )
        return lc.optimize_noise(plan, seconds=0.3)

    first, again = once(), once()
    assert np.array_equal(first.plan.noise.deviations, again.plan.noise.deviations)
    assert first.plan.certificate == again.plan.certificate


@pytest.mark.parametrize("seconds", [0, -1, "long", float("nan")])
def test_a_time_that_is_none_is_refused(searched, seconds):
    with pytest.raises(lc.InputError, match="seconds"):
        lc.optimize_noise(searched[0], seconds=seconds)


def test_other_modes_and_other_things_are_refused():
    plan = lc.plan(lambda x: x.mean(axis=0), rows(), cap=0.9, worlds=64, seed=1, mode="confidence")
    with pytest.raises(lc.InputError, match="mode 'exact'"):
        lc.optimize_noise(plan)
    with pytest.raises(lc.InputError, match="takes a plan"):
        lc.optimize_noise(np.eye(2))
