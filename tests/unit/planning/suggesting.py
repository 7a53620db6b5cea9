"""Small plans that ask for suggestions."""

from __future__ import annotations

import numpy as np

import leakcap as lc
from leakcap.planning.suggestions import Suggestion, Suggestions

rng = np.random.default_rng(7)
SKEWED = rng.lognormal(size=60)
TABLE = rng.normal(size=(120, 3)) * [1.0, 2.0, 3.0] + 5
EVEN = rng.uniform(size=120)
QUICK = {"releases": 40, "worlds": 64}
CURSORY = {"releases": 20, "worlds": 32}  # where it does not matter what is found


def mean_plan(seed: int = 0, worlds: int = 32, **options: object) -> lc.Plan:
    return lc.plan(lc.stats.mean, SKEWED, cap=lc.membership(0.6), worlds=worlds, seed=seed, draws=256, **options)


def knobs(found: Suggestions) -> dict[str, Suggestion]:
    return {one.knob: one for one in found}
