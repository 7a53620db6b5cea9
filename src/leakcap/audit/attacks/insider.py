"""Somebody who knows the pool and of everybody else whether they took part: two answers are left for each person.

What every person adds is taken from the pool, or learnt from releases whose participants are known; the noise is taken
as it was seen. So a release path that adds something else than it says, or less noise, is seen here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer, Units
from leakcap.audit.trials import Known, Trials
from leakcap.ground.arrays import Floats

__all__ = ["BY_POOL", "LEARNT", "knowing_all_others"]

BY_POOL, LEARNT = "by the pool", "as learnt"
RELEASES_A_UNIT = 4  # that what a person adds is learnt from, at least


def knowing_all_others(known: Known, learn: Trials) -> dict[str, Scorer]:
    """How likely it is that a unit took part, as a log-likelihood ratio, given all other coins; by each way to know."""
    if known.steps is None:
        return {}
    ways = {BY_POOL: known.steps}
    if len(learn) >= RELEASES_A_UNIT * known.units:
        table = np.column_stack([np.ones(len(learn)), learn.inside().astype(np.float64)])
        ways[LEARNT] = np.asarray(np.linalg.lstsq(table, learn.seen)[0][1:], dtype=np.float64)
    return {way: _scorer(steps, learn) for way, steps in ways.items()}


def _scorer(steps: Floats, learn: Trials) -> Scorer:
    left = learn.seen - learn.added(steps)
    centre = left.mean(axis=0)
    noise = np.atleast_2d(np.cov(left.T))
    precision = np.linalg.pinv(noise, hermitian=True)
    pull = steps @ precision  # (n, d)
    size = np.einsum("ud,ud->u", pull, steps)

    def score(trials: Trials, rows: slice, units: Units = slice(None)) -> npt.NDArray[Any]:
        part = trials.part(rows)
        rest = part.seen - centre - part.added(steps)  # what is left when the unit's own coin is taken as it fell
        return np.asarray(rest @ pull[units].T + (part.inside(units) - 0.5) * size[units])

    return score
