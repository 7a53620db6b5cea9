"""Randomness that comes again: releases that are all alike, or that a guessed seed repeats."""

from __future__ import annotations

import numpy as np

from leakcap.audit.findings import HOLDS, REFUTED, Finding
from leakcap.audit.trials import Trials, numbers_in
from leakcap.noise import Seeded
from leakcap.releases import Plan
from leakcap.simulate import rebuild

__all__ = ["predictable"]

SEEDS = 1000  # that are tried
FIRST = 64  # releases that have to agree; no honest one takes any value in more than half of all cases


def predictable(plan: Plan, trials: Trials, seeds: int = SEEDS) -> Finding | None:
    """Whether releases repeat each other, or follow from one of the first seeds. None where nothing is random."""
    if plan.certificate.kind == "simulation" or plan.noise.space.rank == 0 or len(trials) < FIRST:
        return None
    first, node = trials.seen[:FIRST], plan._simulation.node
    foretold = bool((first == first[0]).all())
    for seed in range(seeds):
        source = Seeded(seed)
        if all(np.array_equal(numbers_in(rebuild(node, plan._mechanism.vector(source))), row) for row in first):
            foretold = True
            break
    p = (seeds + 1) * 0.5 ** (FIRST - 1) if foretold else 1.0
    verdict = REFUTED if foretold else HOLDS
    question = "whether releases can be foretold"
    return Finding("predictable", question, float(foretold), (np.nan, np.nan), 0.0, None, p, verdict, len(trials))
