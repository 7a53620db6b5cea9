"""The score itself, or the score beside what is usual for the unit: the simplest attacks.

Scores are larger for likelier members. Statistics are 0 where nothing can be said (a score that is not finite,
no finite shadow score to compare with).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.audit.shadow.lira import Statistics
from leakcap.audit.shadow.sides import shadows_of, sides_of, target_of
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["CALIBRATIONS", "Threshold"]

CALIBRATIONS = ("none", "outside")


@dataclass(frozen=True)
class Threshold:
    """One threshold for everybody.

    Args:
        calibration: "none", the score, measured from the mean of all shadow scores so that 0 says nothing (one
            constant for all units: no ranking changes); "outside", measured from the unit's own mean in shadow
            releases that it took no part in (difficulty calibration, Watson et al. 2022).
    """

    calibration: str = "none"

    def __post_init__(self) -> None:
        checks.choice(CALIBRATIONS, calibration=self.calibration)

    def fit(self, shadow: npt.ArrayLike, inside: npt.ArrayLike) -> Statistics:
        """`shadow` `(s, n)`: each unit's score in each shadow release; `inside`: whether it took part there."""
        sides = sides_of(*shadows_of(shadow, inside))
        if self.calibration == "none":
            everything = sides.counts.sum()
            middle = (sides.counts * sides.means).sum() / everything if everything else np.nan
            usual = np.full(sides.means.shape[1], middle)
        else:
            usual = np.where(sides.counts[0] > 0, sides.means[0], np.nan)

        def statistics(target: npt.ArrayLike) -> Floats:
            with np.errstate(all="ignore"):
                above = target_of(target, len(usual)) - usual
            return np.where(np.isfinite(above), above, 0.0)

        return statistics
