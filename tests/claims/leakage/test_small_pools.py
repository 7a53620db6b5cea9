"""All C(10,5) worlds of a pool of ten: the library against brute force that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest

import leakcap as lc
from tests.claims.leakage.oracle import Cloud, Line, all_halves

POOL = np.random.default_rng(11).standard_normal((10, 3))
WORLDS = all_halves(10)


@pytest.fixture(scope="module")
def line():
    """One output: the mean of one column. Everything is summed over the release grid, nothing sampled."""
    tasks = np.stack([(WORLDS[:, :3].sum(axis=1) == k) for k in range(4)], axis=1).astype(float)
    caps = [lc.membership(0.62), lc.task(tasks, 0.9), lc.any_inference(0.01, 0.5), lc.mutual_information(3.0)]
    plan = lc.plan(lambda X: X[:, 0].mean(), POOL, cap=caps, worlds=WORLDS)
    return plan, Line(plan.outputs[:, 0], spread(plan)), tasks


def spread(plan):
    """Of the noise and of the rounding to the grid on which it leaves, which hides like noise of its variance."""
    return (plan.noise.covariance()[0, 0] * (1 + plan.certificate.grid_step**2 / 12)) ** 0.5


def agree(certified, expected, plan):
    """Whoever sees a cell of the grid in place of a number loses a little where the likelier answer changes in it."""
    lost = plan.certificate.grid_step**2 / 100
    assert (np.subtract(expected, lost) <= certified).all() and (certified <= np.add(expected, 1e-7)).all()


def test_rank_one_is_integrated_and_no_sampling_margin_is_left(line):
    plan, _, _ = line
    assert plan.certificate.integrated
    # The binding cap is used up to a millionth.
    assert 0.62 - 1e-5 < plan.certificate.membership_success <= 0.62


def test_membership_of_every_unit_equals_an_independent_integration(line):
    plan, oracle, _ = line
    agree(plan.exposure, [oracle.membership(WORLDS[:, unit]) for unit in range(10)], plan)


def test_the_leakage_curve_equals_an_independent_integration(line):
    plan, _, _ = line
    sizes = [1, 25, 63, 126]
    again = plan.recap([lc.membership(0.62), *(lc.any_inference(size / len(WORLDS), 0.999) for size in sizes)])
    oracle = Line(again.outputs[:, 0], spread(again))
    certified = [figure.certified for figure in again.certificate.capped[1:]]
    agree(np.array(certified), oracle.curve(sizes), again)


def test_a_task_equals_an_independent_integration(line):
    plan, oracle, tasks = line
    figure = plan.certificate.capped[1]
    agree(np.array(figure.certified), oracle.task(tasks), plan)
    assert figure.before == pytest.approx(tasks.mean(axis=0).max())


def test_mutual_information_equals_an_independent_integration(line):
    plan, oracle, _ = line
    agree(np.array(plan.certificate.mutual_information), oracle.information(), plan)


def test_the_oracle_itself_tells_a_noise_that_is_one_per_cent_off(line):
    """The planted fault: at 1 % more noise the same comparison must fail."""
    plan, _, _ = line
    off = Line(plan.outputs[:, 0], 1.01 * spread(plan))
    assert abs(off.membership(WORLDS[:, 0]) - plan.exposure[0]) > 1e-4


def test_three_outputs_agree_with_brute_force_within_its_error():
    tasks = np.stack([(WORLDS[:, :3].sum(axis=1) == k) for k in range(4)], axis=1).astype(float)
    plan = lc.plan(
        lambda X: X.mean(axis=0),
        POOL,
        cap=[lc.membership(0.65), lc.task(tasks, 0.95), lc.name_a_member(0.95), lc.identification(0.9)],
        worlds=WORLDS,
        draws=2**16,
    )
    factor = plan.noise.factor
    points = (plan.outputs - plan.outputs.mean(axis=0)) @ np.linalg.pinv(factor).T
    cloud = Cloud(points, 100_000, np.random.default_rng(5))
    cert = plan.certificate
    inside = WORLDS.astype(float)

    def close(certified, value, margin):
        # The certified figure lies above the truth by its statistical margin at most; 5 standard errors for ours.
        mean, error = cloud.estimate(value)
        assert mean - 5 * error <= certified <= mean + 5 * error + margin

    for unit in range(10):
        close(plan.exposure[unit], lambda p, u=unit: np.abs(p @ inside[:, u] - 0.5) + 0.5, 0.008)
    _, task, naming, world = cert.capped
    close(task.certified, lambda p: (p @ tasks).max(axis=1), 0.01)
    close(naming.certified, lambda p: (p @ inside).max(axis=1), 0.01)
    close(world.certified, lambda p: p.max(axis=1), 0.01)
    ordered = np.sort(cloud.posterior, axis=1)[:, ::-1]
    most = np.cumsum(ordered, axis=1)
    for prior, bound in cert.leakage_curve:
        k = int(prior * 252 + 1e-9)
        part = prior * 252 - k
        top = (most[:, k - 1] if k else 0) + part * (ordered[:, k] if k < 252 else 0)
        close(bound, lambda _, top=top: top, 0.01)
    close(cert.mutual_information, lambda p: np.log(252) + (p * np.log(np.maximum(p, 1e-300))).sum(axis=1), 0.05)
