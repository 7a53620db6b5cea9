"""Randomness that comes again: releases that are all alike, or that a guessed seed repeats."""

from __future__ import annotations

import numpy as np

from leakcap.audit.statistics import rates
from leakcap.audit.trials import Trials, numbers_in, seen_of
from leakcap.audit.verdicts import SHOWN, SLACK, Finding, checked
from leakcap.ground.arrays import Floats
from leakcap.noise import Seeded
from leakcap.planning.plans import Plan

__all__ = ["predictable"]

SEEDS = 1000  # that are tried
FIRST = 64  # releases of a block, which have to agree


def predictable(plan: Plan, trials: Trials, alpha: float, seeds: int = SEEDS) -> Finding | None:
    """Whether releases repeat each other, or follow from one of the first seeds. None where nothing is random.

    The releases are taken in blocks. No honest release takes any value in more than half of all cases, so all of a
    block agree with a given sequence, or with their first, with probability 2^-63 at most.
    """
    if plan.certificate.kind == "simulation" or plan.noise.space.rank == 0 or len(trials) < FIRST:
        return None
    blocks = len(trials) // FIRST
    seen = trials.seen[: blocks * FIRST].reshape(blocks, FIRST, -1)
    told = (seen == seen[:, :1]).all(axis=(1, 2))
    told[0] |= _follows(plan, seen[0], seeds)
    count = int(told.sum())
    ends = rates.interval(count, blocks, SHOWN)
    return checked(
        "predictable",
        "whether releases can be predicted",
        measured=count / blocks,
        interval=ends,
        claim=0.0,
        slack=SLACK,
        p=min(1.0, (seeds + blocks) * 0.5 ** (FIRST - 1)) if count else 1.0,
        alpha=alpha,
        trials=len(trials),
        reading="yes" if count else "no",
    )


def _follows(plan: Plan, first: Floats, seeds: int) -> bool:
    """Whether one of the first seeds gives these releases."""
    for seed in range(seeds):
        source = Seeded(seed)
        if all(np.array_equal(numbers_in(seen_of(plan, plan.releaser.vector(source))), row) for row in first):
            return True
    return False
