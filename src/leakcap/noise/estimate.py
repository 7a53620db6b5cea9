"""About how much noise some caps will cost: the search of a calibration without its certificate.

It promises nothing and spends no confidence. It compares sets of worlds with each other: whatever is chosen by it is
calibrated and certified afterwards, on fresh draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakcap.caps import Cap
from leakcap.cores import Machine
from leakcap.leakage.certify import COARSEST, count_bounds, entropy_slack, grid_step
from leakcap.leakage.confidence import Attempts, Floats, Mean, log_term
from leakcap.leakage.measures import RATIOS, information_budget, needs
from leakcap.noise.calibrate import _candidates, _refine, _rough, _Search
from leakcap.noise.entropy import sampler_distance
from leakcap.noise.gaussian import Noise
from leakcap.noise.subspace import Subspace
from leakcap.worlds import Worlds

__all__ = ["likely_noise", "relative_noise"]

DRAWS = 2**13  # for every number of worlds alike; repeated estimates then agree to within 2 %
FEW = 2**11  # where settings are compared that differ by more
EXPOSED = 512  # units that the search looks at, the most exposed ones
CLOSE = 1.2  # of the least noise variance by a rough search: shapes that may turn out to be the best


def relative_noise(
    space: Subspace,
    worlds: Worlds,
    caps: Sequence[Cap],
    seed: np.random.SeedSequence,
    shape: str = "best",
    floor: float = 0.0,
    machine: Machine = Machine(),  # noqa: B008
) -> float:
    """Total noise that keeps the caps, as a multiple of the total spread of the answers between worlds.

    Relative, because the spread itself is known the better the more worlds there are: its luck would be taken for a
    gain or a loss. Estimated on the same number of draws for every number of worlds, so that what the worst unit's
    luck adds is alike and falls out of comparisons.
    """
    if space.rank == 0:
        return 0.0
    rough = _rough_searches(space, worlds, caps, seed, shape, floor, machine)
    close = CLOSE * min(total for _, _, total in rough)
    least = min(
        (search.deviations(_refined(search, log_t, DRAWS)) ** 2).sum()
        for search, log_t, total in rough
        if total <= close
    )
    return float(np.sqrt(least / space.variances.sum()))


def likely_noise(
    space: Subspace,
    worlds: Worlds,
    caps: Sequence[Cap],
    seed: np.random.SeedSequence,
    shape: str = "best",
    floor: float = 0.0,
    machine: Machine = Machine(),  # noqa: B008
    draws: int | None = None,
    gamma: float = 1e-6,
) -> Noise:
    """About the noise that a calibration would choose: its shape by a rough search, its scale by a few draws.

    `draws` is how many would certify it: few of them need a margin for confidence, which counts. Where the calibration
    chooses their number, it keeps that margin small, and it is left out here.
    """
    if space.rank == 0:
        return Noise(space, np.empty(0), floor)
    rough = _rough_searches(space, worlds, caps, seed, shape, floor, machine)
    search, log_t, _ = min(rough, key=lambda found: found[2])
    if draws is None or grid_step(search.points(log_t), worlds.m, worlds.n):  # summed over a grid: no draws, no margin
        log_t = _refined(search, log_t, FEW)
    else:
        bounds = count_bounds(worlds.m, worlds.n, len(RATIOS), search.wanted, stages=3)
        log_t, _ = _refine(search, log_t, log_term(Attempts(gamma).share(1), bounds), draws)
    return Noise(space.turned(search.turn), search.deviations(log_t), floor)


def _rough_searches(
    space: Subspace,
    worlds: Worlds,
    caps: Sequence[Cap],
    seed: np.random.SeedSequence,
    shape: str,
    floor: float,
    machine: Machine,
) -> list[tuple[_Search, float, float]]:
    """Every shape that is worth trying, a scale near the one it needs, and its noise variance there."""
    wanted, concrete = needs(caps, worlds)
    slack = entropy_slack(sampler_distance(space.rank, 2**10), worlds.m)
    budget = max(information_budget(concrete, worlds.rate, worlds.m) - slack, 1e-12)
    shared = worlds, concrete, wanted, budget, seed, machine
    coordinates = space.coordinates
    rough: list[tuple[_Search, float, float]] = []
    for turn, noise in _candidates(shape, coordinates, space.variances, worlds, concrete, wanted):
        search = _Search(coordinates if turn is None else coordinates @ turn, turn, noise, floor, *shared)
        log_t = _rough(search, np.log(rough[-1][2] / search.shape.sum()) if rough else None)
        rough.append((search, log_t, float((search.deviations(log_t) ** 2).sum())))
    return rough


def _refined(search: _Search, log_t: float, draws: int) -> float:
    """The least scale of one shape, from one near it."""
    m, n, chosen = search.worlds.m, search.worlds.n, None
    if search.wanted.units and n > 2 * EXPOSED:
        seen = search.observe(log_t, 1024).units
        assert seen is not None
        chosen = np.argsort(-seen.balanced.estimate)[:EXPOSED]
    step = COARSEST if grid_step(search.points(log_t), m, n) else None

    def gap(at: float) -> float:
        return search.gap(search.observe(at, draws, chosen, step), _estimate)

    return search.root(gap, log_t, 0.002)


def _estimate(mean: Mean) -> Floats:
    return mean.estimate
