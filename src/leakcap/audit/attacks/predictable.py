"""Randomness that comes again: releases that are all alike, or that a guessed seed repeats."""

from __future__ import annotations

import numpy as np

from leakcap.audit.trials import Trials, numbers_in
from leakcap.audit.verdicts import CHECK, HOLDS, REFUTED, Finding
from leakcap.noise import Seeded
from leakcap.planning.plans import Plan
from leakcap.simulate import rebuild

__all__ = ["predictable"]

SEEDS = 1000  # that are tried
FIRST = 64  # releases that have to agree; no honest one takes any value in more than half of all cases


def predictable(plan: Plan, trials: Trials, seeds: int = SEEDS) -> Finding | None:
    """Whether releases repeat each other, or follow from one of the first seeds. None where nothing is random."""
    if plan.certificate.kind == "simulation" or plan.noise.space.rank == 0 or len(trials) < FIRST:
        return None
    first, node = trials.seen[:FIRST], plan.run.simulation.node
    predicted = bool((first == first[0]).all())
    for seed in range(seeds):
        source = Seeded(seed)
        if all(np.array_equal(numbers_in(rebuild(node, plan.releaser.vector(source))), row) for row in first):
            predicted = True
            break
    p = (seeds + 1) * 0.5 ** (FIRST - 1) if predicted else 1.0
    verdict = REFUTED if predicted else HOLDS
    return Finding(
        attack="predictable",
        question="whether releases can be predicted",
        measured=float(predicted),
        interval=(np.nan, np.nan),
        prior=0.0,
        certified=None,
        p_value=p,
        verdict=verdict,
        trials=len(trials),
        kind=CHECK,
        reading="yes" if predicted else "no",
    )
