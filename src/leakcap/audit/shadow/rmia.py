"""The robust membership inference attack (Zarifzadeh et al. 2024), for all units at once.

A unit's probability under the release is divided by its usual one, and so is that of each row of a population that
took part in nothing. The statistic is the share of population rows whose ratio the unit's exceeds by a factor.
Works with few shadow releases, since it asks for one mean per unit and no spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.audit.shadow.lira import VARIANTS
from leakcap.audit.shadow.sides import Scores, shadows_of, sides_of, target_of
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["Rmia"]


@dataclass(frozen=True)
class Rmia:
    """`Rmia().fit(shadow, inside, population)` gives a function from probabilities to statistics from 0 to 1.

    Everything is a probability or another likelihood, 0 or above: of a unit's true label, say. Statistics are 0 where
    nothing can be said (not finite, never scored in a shadow release, usual probability 0).

    Args:
        variant: "online", a unit's usual probability is the middle of its means inside and outside; "offline", only
            its mean outside is known, and that inside is taken to be `slope * outside + 1 - slope`.
        gamma: the factor, 1 or above.
        slope: of the offline guess, from 0 (members are always certain) to 1 (members look like everybody).
    """

    variant: str = "online"
    gamma: float = 2.0
    slope: float = 0.33

    def __post_init__(self) -> None:
        checks.choice(VARIANTS, variant=self.variant)
        checks.probability(slope=self.slope)
        if checks.positive(gamma=self.gamma) < 1:
            raise InputError("gamma must be 1 or above: it says by how much a ratio has to be exceeded")

    def fit(
        self, shadow: npt.ArrayLike, inside: npt.ArrayLike, population: npt.ArrayLike
    ) -> Callable[[npt.ArrayLike, npt.ArrayLike], Floats]:
        """What is usual for every unit and for every population row.

        Args:
            shadow: `(s, n)`, each unit's probability in each shadow release; `inside` tells whether it took part.
            population: `(s, z)`, that of rows outside all of these releases, and outside the attacked ones.
        """
        given, members = shadows_of(shadow, inside)
        others = target_of(population, np.shape(population)[-1] if np.ndim(population) == 2 else 0, "population")
        if len(others) != len(given):
            raise InputError("population must have a row for each shadow release, as shadow has")
        for table in (given, others):
            _nonnegative(table)
        usual = self._usual(given, members)
        usual_others = self._usual(others, np.zeros(others.shape, dtype=np.bool_), population=True)

        def statistics(target: npt.ArrayLike, population: npt.ArrayLike) -> Floats:
            """`(t, n)`, from units `(t, n)` and population rows `(t, z)` in the same attacked releases."""
            scores = target_of(target, len(usual))
            rows = target_of(population, len(usual_others), "population")
            if len(rows) != len(scores):
                raise InputError("target and population must have a row for each attacked release")
            for table in (scores, rows):
                _nonnegative(table)
            found = np.zeros(scores.shape)
            for release, (own, beside) in enumerate(zip(scores, rows, strict=True)):
                ratios = _ratios(own, usual)
                needed = np.sort(self.gamma * _ratios(beside, usual_others))
                needed = needed[~np.isnan(needed)]
                if len(needed):  # a sorted list answers all pairs at once: no table of units x population
                    share = np.searchsorted(needed, ratios, side="right") / len(needed)
                    found[release] = np.where(np.isnan(ratios), 0.0, share)
            return found

        return statistics

    def _usual(self, scores: Scores, members: npt.NDArray[np.bool_], population: bool = False) -> Floats:
        sides = sides_of(scores, members)
        means = np.where(sides.counts > 0, sides.means, np.nan)
        if self.variant == "offline":  # the same guess for both, or they could not be compared
            return np.asarray(((1 + self.slope) * means[0] + (1 - self.slope)) / 2)
        return np.asarray(means[0] if population else means.mean(axis=0))


def _ratios(scores: Scores, usual: Floats) -> Floats:
    with np.errstate(all="ignore"):
        found = scores / usual
    return np.where(np.isfinite(found), found, np.nan)


def _nonnegative(table: Scores) -> None:
    if (table < 0).any():
        raise InputError("a probability or likelihood is below 0: give probabilities, not losses or logits")
