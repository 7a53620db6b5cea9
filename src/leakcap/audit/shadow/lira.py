"""The likelihood-ratio attack (Carlini et al. 2022), for all units at once.

For every unit, its scores in shadow releases with it and without it are two laws; a release is judged by which of
them its score fits. *Online* compares both, *offline* asks how far the score lies above those of an outsider.
Here the worlds of a plan are the shadow releases: nothing is trained again.

All statistics are larger for likelier members, and 0 where nothing can be said: a score in the attacked release that is
not finite, too few finite shadow scores, shadow scores that are all equal. Differences in the last digits
are taken seriously: they may be what names a world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from leakcap.audit.shadow.sides import Scores, Sides, in_blocks, shadows_of, sides_of, target_of
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores

__all__ = ["VARIANCES", "VARIANTS", "EmpiricalLira", "Lira", "Statistics"]

Statistics = Callable[[npt.ArrayLike], Floats]  # (t, n) scores in attacked releases -> (t, n) statistics
VARIANTS = ("online", "offline")
VARIANCES = ("unit", "pooled")
SHARPEST = 1e-6  # standard deviation of a law whose scores are all equal, in units of the spread around it


@dataclass(frozen=True)
class Lira:
    """Normal laws. `Lira("online").fit(shadow, inside)` gives a function from scores to statistics.

    Online: the log-likelihood ratio. Offline: standard deviations above the mean of an outsider's scores, which is
    the published one-sided tail probability before it saturates.

    Args:
        variant: "online" or "offline".
        variance: "unit", each unit's own (at least two scores on a side); "pooled", one for each side, of the scores
            about their units' means: better with few shadow releases.
            Differs from the published code, which adds what lies between units.
    """

    variant: str = "online"
    variance: str = "unit"

    def __post_init__(self) -> None:
        checks.choice(VARIANTS, variant=self.variant)
        checks.choice(VARIANCES, variance=self.variance)

    def fit(self, shadow: npt.ArrayLike, inside: npt.ArrayLike) -> Statistics:
        """`shadow` `(s, n)`: each unit's score in each shadow release; `inside`: whether it took part there."""
        sides = sides_of(*shadows_of(shadow, inside))
        with np.errstate(all="ignore"):
            return self._ratios(sides) if self.variant == "online" else self._heights(sides)

    def _laws(self, sides: Sides, around: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Variances of both sides, and whether each is known.

        A side without spread (a model that knows its training rows by heart) is a narrow law, not an infinite one.
        """
        pooled = self.variance == "pooled"
        variances = np.broadcast_to(sides.pooled, sides.means.shape) if pooled else sides.variances
        variances = np.where(variances > 0, variances, SHARPEST**2 * around)
        known = (sides.counts >= (1 if pooled else 2)) & (variances > 0) & np.isfinite(variances + sides.means)
        return variances, known

    def _ratios(self, sides: Sides) -> Statistics:
        variances, sure = self._laws(sides, sides.spread)
        known = sure.all(axis=0)
        offset = np.where(known, 0.5 * (np.log(variances[0]) - np.log(variances[1])), 0.0)
        weights = np.where(known, 0.5 / variances, 0.0)
        centres = np.where(known, sides.means, 0.0)

        def statistics(target: npt.ArrayLike) -> Floats:
            from leakcap.audit.shadow._loops import log_ratios

            scores = np.ascontiguousarray(target_of(target, len(offset)))
            found = np.empty(scores.shape)
            log_ratios(scores, offset, centres, weights, found)
            return _finite(found)

        return statistics

    def _heights(self, sides: Sides) -> Statistics:
        variances, sure = self._laws(sides, sides.pooled)  # what is known of insiders is not used
        known = sure[0]
        centre = np.where(known, sides.means[0], 0.0)
        scale = np.where(known, 1 / np.sqrt(variances[0]), 0.0)

        def statistics(target: npt.ArrayLike) -> Floats:
            scores = target_of(target, len(centre))
            with np.errstate(all="ignore"):
                return _finite(np.where(np.isfinite(scores), (scores - centre) * scale, 0.0))

        return statistics


@dataclass(frozen=True)
class EmpiricalLira:
    """No law is assumed: ranks only, so any increasing change of a unit's scores changes nothing.

    Online: the log-ratio of the increments of both empirical distribution functions over a window of ranks around the
    score (`s^0.8` of `s` scores; more if more equal it), smoothed by one score that is a member's with the prior
    probability. It finds members that score lower, or in the middle, as well as those that score higher.
    Offline: the rank among an outsider's scores, as the normal quantile that has this rank.
    A fitted attack holds a sorted copy of the shadow scores and where members stand in it: 12 bytes for each.
    """

    variant: str = "online"

    def __post_init__(self) -> None:
        checks.choice(VARIANTS, variant=self.variant)

    def fit(self, shadow: npt.ArrayLike, inside: npt.ArrayLike) -> Statistics:
        """`shadow` `(s, n)`: each unit's score in each shadow release; `inside`: whether it took part there."""
        ranks = _Ranks.of(*shadows_of(shadow, inside))
        judge = ranks.windows if self.variant == "online" else ranks.heights

        def statistics(target: npt.ArrayLike) -> Floats:
            scores = np.ascontiguousarray(target_of(target, len(ranks.counts)), dtype=np.float64)
            return np.where(np.isfinite(scores), judge(scores), 0.0)

        return statistics


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Sorted scores of every unit, and how many of the first so many are an insider's."""

    ordered: Floats  # (n, s); scores that are not finite come last
    before: npt.NDArray[np.int32]  # (n, s + 1)
    counts: npt.NDArray[np.intp]  # (n,): finite ones

    @staticmethod
    def of(shadow: Scores, inside: npt.NDArray[np.bool_]) -> _Ranks:
        s, n = shadow.shape
        ordered, before = np.empty((n, s)), np.zeros((n, s + 1), dtype=np.int32)
        counts = np.empty(n, dtype=np.intp)

        def fill(some: slice) -> None:
            scores = shadow[:, some].T.astype(np.float64)
            usable = np.isfinite(scores)
            scores[~usable] = np.inf
            order = np.argsort(scores, axis=1)
            ordered[some] = np.take_along_axis(scores, order, axis=1)
            members = np.take_along_axis(inside[:, some].T & usable, order, axis=1)
            np.cumsum(members, axis=1, out=before[some, 1:])
            counts[some] = usable.sum(axis=1)

        on_all_cores(fill, in_blocks(s, n))
        return _Ranks(ordered, before, counts)

    def windows(self, target: Floats) -> Floats:
        from leakcap.audit.shadow._loops import windows

        members, everybody = np.zeros((2, *target.shape))
        windows(self.ordered, self.before, self.counts, self.counts**0.8, target, members, everybody)
        prior = self.before[np.arange(len(self.counts)), self.counts] / np.maximum(self.counts, 1)
        known = (prior > 0) & (prior < 1)
        prior = np.where(known, prior, 0.5)
        odds = np.log(members + prior) - np.log(everybody - members + 1 - prior) - np.log(prior / (1 - prior))
        return np.where(known, odds, 0.0)

    def heights(self, target: Floats) -> Floats:
        from leakcap.audit.shadow._loops import outside_ranks

        below, upto = np.zeros((2, *target.shape), dtype=np.int32)
        outside_ranks(self.ordered, self.before, self.counts, target, below, upto)
        outsiders = self.counts - self.before[np.arange(len(self.counts)), self.counts]
        return np.asarray(ndtri(((below + upto) / 2 + 0.5) / (outsiders + 1)))


def _finite(statistics: Floats) -> Floats:
    """Too large for a number: the largest. Undefined: 0."""
    return np.nan_to_num(statistics, copy=False)
