"""The best attacker: the posterior over all worlds, and from it what is likelier of everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer, Units
from leakcap.audit.attacks.posterior import Belief
from leakcap.audit.trials import Known, Trials

__all__ = ["participation"]


def participation(known: Known, belief: Belief) -> Scorer:
    """How likely everybody took part, given what is seen."""
    assert known.worlds is not None
    worlds = known.worlds
    half = worlds.m // 2
    # Of a pair of complementary worlds only the difference counts: half of the product.
    masks = worlds.masks()[:half] - np.float32(0.5) if worlds.paired else worlds.masks().astype(np.float32)

    def score(trials: Trials, rows: slice, units: Units = slice(None)) -> npt.NDArray[Any]:
        likely = belief.block(trials, rows)
        if not worlds.paired:
            return np.asarray(likely @ masks[:, units])
        return np.asarray((likely[:, :half] - likely[:, half:]) @ masks[:, units] + np.float32(0.5))

    return score
