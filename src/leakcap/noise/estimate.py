"""About how much noise some caps will cost: the search of a calibration without its certificate.

It promises nothing and spends no confidence. It compares sets of worlds with each other: whatever is chosen by it is
calibrated and certified afterwards, on fresh draws.
"""

from __future__ import annotations

import numpy as np

from leakcap.leakage.certify import COARSEST, count_bounds, grid_step
from leakcap.leakage.confidence import Attempts, log_term
from leakcap.leakage.measures import RATIOS
from leakcap.noise.gaussian import Noise
from leakcap.noise.search import Goal, Search, estimate_of, refined, rough_scales
from leakcap.noise.subspace import Subspace

__all__ = ["likely_noise", "relative_noise"]

DRAWS = 2**13  # for every number of worlds alike; repeated estimates then agree to within 2 %
FEW_DRAWS = 2**11  # where settings are compared that differ by more
EXPOSED_UNITS = 512  # that the search looks at, the most exposed ones
CLOSE = 1.2  # of the least noise variance by a rough search: shapes that may turn out to be the best


def relative_noise(goal: Goal, space: Subspace, seed: np.random.SeedSequence) -> float:
    """Total noise that keeps the caps, as a multiple of the total spread of the answers between worlds.

    Relative, because the spread itself is known the better the more worlds there are: its luck would be taken for a
    gain or a loss. Estimated on the same number of draws for every number of worlds, so that what the worst unit's
    luck adds is alike and falls out of comparisons.
    """
    if space.rank == 0:
        return 0.0
    rough = rough_scales(goal, space.coordinates, space.variances, seed)
    close = CLOSE * min(scaled.total for scaled in rough)
    least = min(
        (scaled.search.deviations(_least_scale(scaled.search, scaled.log_t, DRAWS)) ** 2).sum()
        for scaled in rough
        if scaled.total <= close
    )
    return float(np.sqrt(least / space.variances.sum()))


def likely_noise(
    goal: Goal, space: Subspace, seed: np.random.SeedSequence, *, draws: int | None = None, gamma: float = 1e-6
) -> Noise:
    """About the noise that a calibration would choose: its shape by a rough search, its scale by a few draws.

    `draws` is how many would certify it: few of them need a margin for confidence, which counts. Where the calibration
    chooses their number, it keeps that margin small, and it is left out here.
    """
    if space.rank == 0:
        return Noise(space, np.empty(0), goal.floor)
    worlds = goal.worlds
    best = min(rough_scales(goal, space.coordinates, space.variances, seed), key=lambda scaled: scaled.total)
    search, log_t = best.search, best.log_t
    if draws is None or grid_step(search.points(log_t), worlds.m, worlds.n):  # summed over a grid: no draws, no margin
        log_t = _least_scale(search, log_t, FEW_DRAWS)
    else:
        bounds = count_bounds(worlds.m, worlds.n, len(RATIOS), goal.wanted, stages=3)
        log_t, _ = refined(search, log_t, log_term(Attempts(gamma).share(1), bounds), draws)
    return Noise(space.turned(search.turn), search.deviations(log_t), goal.floor)


def _least_scale(search: Search, log_t: float, draws: int) -> float:
    """The least scale of one shape, from one near it."""
    m, n, chosen = search.goal.worlds.m, search.goal.worlds.n, None
    if search.goal.wanted.units and n > 2 * EXPOSED_UNITS:
        seen = search.observe(log_t, 1024).units
        assert seen is not None
        chosen = np.argsort(-seen.balanced.estimate)[:EXPOSED_UNITS]
    step = COARSEST if grid_step(search.points(log_t), m, n) else None

    def gap(at: float) -> float:
        return search.gap(search.observe(at, draws, chosen, step), estimate_of)

    return search.root(gap, log_t, 0.002)
