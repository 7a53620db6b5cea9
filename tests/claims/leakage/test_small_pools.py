"""All C(8,4) worlds of a pool of eight: the library against brute force that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest

import leakcap as lc
from tests.claims.leakage.oracle import Cloud, Line, all_halves

POOL = np.random.default_rng(11).standard_normal((8, 3))
WORLDS = all_halves(8)


@pytest.fixture(scope="module")
def line():
    """One output: the mean of one column. Everything is summed over the release grid, nothing sampled."""
    tasks = np.stack([(WORLDS[:, :3].sum(axis=1) == k) for k in range(4)], axis=1).astype(float)
    caps = [lc.membership(0.62), lc.task(tasks, 0.9), lc.any_inference(0.04, 0.5), lc.mutual_information(3.0)]
    plan = lc.plan(lambda X: X[:, 0].mean(), POOL, cap=caps, worlds=WORLDS)
    oracle = Line(plan.outputs[:, 0], plan.noise.covariance()[0, 0] ** 0.5)
    return plan, oracle, tasks


def test_rank_one_is_integrated_and_no_sampling_margin_is_left(line):
    plan, _, _ = line
    assert plan.certificate.integrated
    # The binding cap is used up to a millionth.
    assert 0.62 - 1e-5 < plan.certificate.membership_success <= 0.62


def test_membership_of_every_unit_equals_an_independent_integration(line):
    plan, oracle, _ = line
    for unit in range(8):
        assert plan.exposure[unit] == pytest.approx(oracle.membership(WORLDS[:, unit]), abs=1e-6)


def test_the_leakage_curve_equals_an_independent_integration(line):
    plan, _, _ = line
    sizes = [1, 7, 18, 35]
    again = plan.recap([lc.membership(0.62), *(lc.any_inference(size / len(WORLDS), 0.999) for size in sizes)])
    oracle = Line(again.outputs[:, 0], again.noise.covariance()[0, 0] ** 0.5)
    certified = [figure.certified for figure in again.certificate.capped[1:]]
    assert certified == pytest.approx(oracle.curve(sizes), abs=1e-6)


def test_a_task_equals_an_independent_integration(line):
    plan, oracle, tasks = line
    figure = plan.certificate.capped[1]
    assert figure.certified == pytest.approx(oracle.task(tasks), abs=1e-6)
    assert figure.before == pytest.approx(tasks.mean(axis=0).max())


def test_mutual_information_equals_an_independent_integration(line):
    plan, oracle, _ = line
    assert plan.certificate.mutual_information == pytest.approx(oracle.information(), abs=1e-6)


def test_the_oracle_itself_tells_a_noise_that_is_one_per_cent_off(line):
    """The planted fault: at 1 % more noise the same comparison must fail."""
    plan, _, _ = line
    off = Line(plan.outputs[:, 0], 1.01 * plan.noise.covariance()[0, 0] ** 0.5)
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

    for unit in range(8):
        close(plan.exposure[unit], lambda p, u=unit: np.abs(p @ inside[:, u] - 0.5) + 0.5, 0.008)
    _, task, naming, world = cert.capped
    close(task.certified, lambda p: (p @ tasks).max(axis=1), 0.01)
    close(naming.certified, lambda p: (p @ inside).max(axis=1), 0.01)
    close(world.certified, lambda p: p.max(axis=1), 0.01)
    ordered = np.sort(cloud.posterior, axis=1)[:, ::-1]
    most = np.cumsum(ordered, axis=1)
    for prior, bound in cert.leakage_curve:
        k = int(prior * len(WORLDS) + 1e-9)
        part = prior * len(WORLDS) - k
        top = (most[:, k - 1] if k else 0) + part * (ordered[:, k] if k < len(WORLDS) else 0)
        close(bound, lambda _, top=top: top, 0.01)
    close(
        cert.mutual_information, lambda p: np.log(len(WORLDS)) + (p * np.log(np.maximum(p, 1e-300))).sum(axis=1), 0.05
    )
