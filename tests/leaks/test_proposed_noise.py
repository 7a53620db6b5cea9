"""Plans with proposed or optimised noise: what leaves tells no more about noise and outputs than with other plans."""

from __future__ import annotations

import pickle
import re
from itertools import chain

import numpy as np
import pytest

import leakcap as lc

POOL = np.random.default_rng(4).standard_normal((12, 2))
PROPOSED = np.array([[0.71828, 0.14142], [0.14142, 0.57721]])


@pytest.fixture
def plan():
    return lc.plan(lambda x: x.mean(axis=0), POOL, cap=0.8, worlds=64, design="worlds", draws=1024)


def better(plan):
    return lc.optimize_noise(plan, seconds=0.2).plan


def proposed(plan):
    return lc.verify(plan, PROPOSED).plan


def numbers_in(text):
    return {float(one) for one in re.findall(r"-?\d+\.\d{4,}(?:e-?\d+)?", text)}


@pytest.mark.parametrize("with_noise", [better, proposed])
def test_a_release_holds_no_noise_and_no_outputs(plan, with_noise):
    made = with_noise(plan)
    release = made.release()
    told = numbers_in(release.certificate.to_json() + str(release.certificate) + repr(release))
    hidden = np.concatenate([made.noise.covariance().ravel(), made.noise.deviations, made.outputs.ravel()])
    assert not told & set(hidden.tolist())
    assert len(pickle.dumps(release)) < 60_000 and not hasattr(release, "plan")


def test_a_planted_certificate_with_the_noise_in_it_is_caught(plan):
    made = proposed(plan)
    told = numbers_in(f"{made.noise.covariance()[0, 0]!r}")
    assert told & set(made.noise.covariance().ravel().tolist())


def test_a_plan_its_proposals_and_its_optimum_release_once_together(plan):
    others = better(plan), proposed(plan)
    plan.release()
    for other in others:
        with pytest.raises(lc.AlreadyReleased):
            other.release()


@pytest.mark.parametrize(
    "record", [lambda plan: lc.optimize_noise(plan, seconds=0.2), lambda p: lc.verify(p, PROPOSED)]
)
def test_records_are_the_custodians_and_are_not_pickled(plan, record):
    with pytest.raises(lc.LeakcapError, match="custodian"):
        pickle.dumps(record(plan))


def test_refusals_quote_neither_the_proposal_nor_the_outputs(plan):
    values = [f"{abs(value):.5f}" for value in chain(PROPOSED.ravel(), plan.outputs.ravel())]
    for bad in (PROPOSED * [[1, -1], [1, 1]], -PROPOSED, PROPOSED[:1], np.outer(PROPOSED[0], PROPOSED[0])):
        with pytest.raises(lc.InputError) as refusal:
            lc.verify(plan, bad)
        assert not any(value in str(refusal.value) for value in values)
