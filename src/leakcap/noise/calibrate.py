"""The least noise that keeps a list of caps: search on one set of draws, certify on fresh ones.

Certified values are random and do not fall as noise grows: they are never bisected. If certification fails, the noise
is raised and tried again with a smaller share of the failure probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import Effort, Findings, certify, count_bounds, grid_step
from leakcap.leakage.confidence import Attempts, log_term
from leakcap.leakage.measures import RATIOS, before
from leakcap.leakage.stages import draws_for_recognition
from leakcap.noise.entropy import GRID, sampler_distance
from leakcap.noise.search import Goal, ScaledShape, Search, draws_needed, refined, rough_scales

__all__ = ["MAX_ATTEMPTS", "Calibrated", "Chooser", "calibrate", "looked_at"]

MAX_ATTEMPTS = 12
SOME = 256  # units by which the number of draws is chosen

Chooser: TypeAlias = Callable[[Goal, Floats, Floats, np.random.Generator], ScaledShape]  # of a shape, roughly scaled


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Noise deviations per direction, and what was certified for them.

    `turn` rotates principal coordinates to those directions; None leaves them as they are.
    """

    turn: Floats | None
    coordinates: Floats
    deviations: Floats
    findings: Findings
    attempt: int
    distance: float
    step: float

    def missed(self, goal: Goal) -> float:
        """How far the worst cap is missed, relative to the room between its prior and its limit; <= 0 is kept."""
        worlds = goal.worlds
        return max(
            (value - cap.limit) / (cap.limit - before(cap, worlds.rate, worlds.m, worlds.shares))
            for value, cap in zip(self.findings.values, goal.caps, strict=True)
        )


@proves("monotone", "confidence")
def calibrate(
    goal: Goal,
    coordinates: Floats,
    variances: Floats,
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    draws: int | None = None,
    share_done: Callable[[float], None] = lambda _: None,
    choose: Chooser | None = None,
) -> Calibrated:
    """Noise for principal coordinates that keeps all caps, verified on fresh draws.

    `share_done` is called with the share of the certifying pass that is behind; not while noise is searched. `choose`
    finds the shape; without it, the best of those that are always tried.

    Guarantee: the returned findings were certified with probability `1 - gamma` over all attempts and recaps
    that share `attempts`.
    """
    # The shape is free to choose: whatever is chosen is certified afterwards.
    best = (choose or _best_of_all)(goal, coordinates, variances, rng)
    search = best.search
    term = _aimed_term(goal, attempts)
    log_t, used = refined(search, best.log_t, term, draws)
    effort = _effort(search, log_t, used, term)
    for _ in range(MAX_ATTEMPTS):
        calibrated = _attempted(search, log_t, effort, attempts=attempts, rng=rng, share_done=share_done)
        missed = calibrated.missed(goal)
        if missed <= 0:
            return calibrated
        # Success above the prior falls like the inverse deviation: scale it down to the room there is. Where units
        # decided that the search had not looked at, look at them.
        log_t += 2 * np.log1p(missed) + 0.01
        if goal.wanted.units:
            worst = np.argsort(-calibrated.findings.exposure)[:64]
            log_t = max(log_t, refined(search, log_t, term, used, also=worst)[0])
    raise NumericalError(f"no noise could be certified in {MAX_ATTEMPTS} attempts; raise draws= or loosen the cap")


@proves("confidence")
def looked_at(
    search: Search,
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    draws: int | None = None,
    share_done: Callable[[float], None] = lambda _: None,
) -> Calibrated:
    """Noise as it is (`search` at scale 1), certified once, whether it keeps the caps or not: see `missed`.

    Guarantee: the findings hold with probability `1 - gamma` over all attempts that share `attempts`. How many draws
    there are is fixed by other draws.
    """
    term = _aimed_term(search.goal, attempts)
    used = draws or draws_needed(search, 0.0, term, search.exposed(SOME))
    effort = _effort(search, 0.0, used, term)
    return _attempted(search, 0.0, effort, attempts=attempts, rng=rng, share_done=share_done)


def _aimed_term(goal: Goal, attempts: Attempts) -> float:
    bounds = count_bounds(goal.worlds.m, goal.worlds.n, len(RATIOS), goal.wanted, stages=3)  # about: it only aims
    return log_term(attempts.share(attempts.made + 1), bounds)


def _effort(search: Search, log_t: float, used: int, term: float) -> Effort:
    goal, worlds = search.goal, search.goal.worlds
    recognised = 0.0 if grid_step(search.points(log_t), worlds.m, worlds.n) else search.recognised(log_t)
    return Effort.of(
        used,
        worlds.m,
        worlds.n,
        goal.wanted.worlds,
        everybody=goal.names_members,
        screen=goal.machine.device is None,  # a device looks at everybody in less time
        enough=draws_for_recognition(recognised, term),
    )


def _attempted(
    search: Search,
    log_t: float,
    effort: Effort,
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    share_done: Callable[[float], None],
) -> Calibrated:
    """One attempt: a share of the failure probability, and fresh draws."""
    goal, points = search.goal, search.points(log_t)
    worlds = goal.worlds
    step = grid_step(points, worlds.m, worlds.n)
    distance = sampler_distance(points.shape[1], float(np.abs(points).max()), step or GRID)
    gamma = attempts.next()
    findings = certify(
        points,
        worlds,
        goal.caps,
        goal.wanted,
        gamma=gamma,
        effort=effort,
        seed=np.random.SeedSequence(int(rng.integers(2**63))),
        mi_ceiling=search.ceiling(log_t),
        distance=distance,
        step=step,
        machine=goal.machine,
        share_done=share_done,
    )
    return Calibrated(
        turn=search.turn,
        coordinates=search.coordinates,
        deviations=search.deviations(log_t),
        findings=findings,
        attempt=attempts.made,
        distance=distance,
        step=step or GRID,
    )


def _best_of_all(goal: Goal, coordinates: Floats, variances: Floats, rng: np.random.Generator) -> ScaledShape:
    seed = np.random.SeedSequence(int(rng.integers(2**63)))  # one for all shapes: they are compared
    return min(rough_scales(goal, coordinates, variances, seed), key=lambda scaled: scaled.total)
