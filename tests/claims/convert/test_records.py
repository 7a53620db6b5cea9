"""Records drawn from a law: no attacker on small cases, enumerated, beats the bounds; what is none is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakcap import convert
from tests.refusals import refusal


def information(joint: np.ndarray) -> float:
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    kept = joint > 0
    return float((joint[kept] * np.log(joint[kept] / product[kept])).sum())


@pytest.mark.parametrize("seed", range(6))
def test_no_attacker_beats_the_bound_for_one_record(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(4))
    channel = rng.dirichlet(np.full(5, rng.choice([0.1, 1.0])), size=4)
    joint = law[:, None] * channel
    best = joint.max(axis=0).sum()
    assert best <= convert.one_record(information(joint), law) <= 1
    # Planted: the least likely value in place of the likeliest.
    if best > law.max() + 0.05:
        assert convert.posterior(information(joint) / 20, law.min()) < best


@pytest.mark.parametrize("seed", range(6))
def test_no_attacker_beats_the_bound_for_each_of_several_records(seed: int) -> None:
    """Two or three records of three values; a mechanism that sees only how often each value occurs."""
    rng = np.random.default_rng(seed)
    n = 2 + seed % 2
    law = rng.dirichlet(np.ones(3))
    words = list(itertools.product(range(3), repeat=n))
    kinds = sorted({tuple(sorted(word)) for word in words})
    channel = rng.dirichlet(np.full(6, 0.3), size=len(kinds))
    chance = np.array([math.prod(law[x] for x in word) for word in words])
    joint = chance[:, None] * channel[[kinds.index(tuple(sorted(word))) for word in words]]
    first = np.array([joint[[word[0] == x for word in words]].sum(axis=0) for x in range(3)])
    best = first.max(axis=0).sum()
    bound = convert.each_record(information(joint), law.max(), n)
    assert best <= bound <= convert.posterior(information(joint), law.max())


def test_records_that_are_drawn_without_replacement_are_not_of_this_kind() -> None:
    """Why a random half does not qualify: two of two values without replacement, and a release that tells the first.

    The other record is then known, too: both are right with certainty, from log 2 nats. For independent records the
    theorem allows less.
    """
    assert convert.each_record(math.log(2), 0.5, 2) < 1.0


def test_one_record_is_the_case_of_one() -> None:
    assert convert.each_record(0.7, 0.25, 1) == pytest.approx(convert.one_record(0.7, [0.25] * 4), rel=1e-12)
    assert convert.each_record(0.0, 0.25, 5) == pytest.approx(0.25, rel=1e-12)
    assert convert.each_record(3.0, 1.0, 5) == 1.0
    assert np.shape(convert.each_record([0.1, 0.2], 0.1, 3)) == (2,)


@pytest.mark.parametrize("law", [[], [0.5, 0.6], [0.5, -0.1, 0.6], [[0.5, 0.5]], ["a"], [float("nan"), 0.5]])
def test_laws_that_are_none_are_refused(law: list) -> None:
    refusal(lambda: convert.one_record(1, law))


def test_numbers_of_records_that_are_none_are_refused() -> None:
    refusal(lambda: convert.each_record(1, 0.1, 0))
    refusal(lambda: convert.each_record(-1, 0.1, 2))
    refusal(lambda: convert.each_record(1, 0.0, 2))
