"""The best attacker: the posterior over all worlds, and from it what is likelier of everybody."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer
from leakcap.audit.attacks.posterior import Believe
from leakcap.audit.trials import Known

__all__ = ["participation"]

Floats = npt.NDArray[np.float64]


def participation(known: Known, believe: Believe) -> Scorer:
    """How likely everybody took part, given what is seen."""
    assert known.worlds is not None
    worlds = known.worlds
    half = worlds.m // 2
    if not worlds.paired:
        masks = worlds.masks().astype(np.float32)
        return lambda seen: np.asarray(believe(seen).astype(np.float32) @ masks)
    # Of a pair of complementary worlds only the difference counts: half of the product.
    signs = np.where(worlds.masks()[:half], np.float32(0.5), np.float32(-0.5))

    def score(seen: Floats) -> Floats:
        belief = believe(seen)
        return np.asarray((belief[:, :half] - belief[:, half:]).astype(np.float32) @ signs + np.float32(0.5))

    return score
