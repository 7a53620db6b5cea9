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
from leakcap.leakage.measures import RATIOS, prior
from leakcap.leakage.stages import draws_for_recognition
from leakcap.noise.entropy import GRID, sampler_distance
from leakcap.noise.search import Goal, ScaledShape, refined, rough_scales

__all__ = ["MAX_ATTEMPTS", "Calibrated", "Chooser", "calibrate"]

MAX_ATTEMPTS = 12

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
    worlds, wanted = goal.worlds, goal.wanted
    # The shape is free to choose: whatever is chosen is certified afterwards.
    best = (choose or _best_of_all)(goal, coordinates, variances, rng)
    search = best.search
    bounds = count_bounds(worlds.m, worlds.n, len(RATIOS), wanted, stages=3)  # about: it only aims the search
    term = log_term(attempts.share(attempts.made + 1), bounds)
    log_t, used = refined(search, best.log_t, term, draws)
    screen = goal.machine.device is None  # a device looks at everybody in less time
    recognised = 0.0 if grid_step(search.points(log_t), worlds.m, worlds.n) else search.recognised(log_t)
    effort = Effort.of(
        used,
        worlds.m,
        worlds.n,
        wanted.worlds,
        everybody=goal.names_members,
        screen=screen,
        enough=draws_for_recognition(recognised, term),
    )
    for _ in range(MAX_ATTEMPTS):
        points = search.points(log_t)
        step = grid_step(points, worlds.m, worlds.n)
        distance = sampler_distance(points.shape[1], float(np.abs(points).max()), step or GRID)
        gamma = attempts.next()
        findings = certify(
            points,
            worlds,
            goal.caps,
            wanted,
            gamma=gamma,
            effort=effort,
            seed=np.random.SeedSequence(int(rng.integers(2**63))),
            mi_ceiling=search.ceiling(log_t),
            distance=distance,
            step=step,
            machine=goal.machine,
            share_done=share_done,
        )
        missed = max(
            (value - cap.limit) / (cap.limit - prior(cap, worlds.rate, worlds.m))
            for value, cap in zip(findings.values, goal.caps, strict=True)
        )
        if missed <= 0:
            return Calibrated(
                turn=search.turn,
                coordinates=search.coordinates,
                deviations=search.deviations(log_t),
                findings=findings,
                attempt=attempts.made,
                distance=distance,
                step=step or GRID,
            )
        # Success above the prior falls like the inverse deviation: scale it down to the room there is. Where units
        # decided that the search had not looked at, look at them.
        log_t += 2 * np.log1p(missed) + 0.01
        if wanted.units:
            worst = np.argsort(-findings.exposure)[:64]
            log_t = max(log_t, refined(search, log_t, term, used, also=worst)[0])
    raise NumericalError(f"no noise could be certified in {MAX_ATTEMPTS} attempts; raise draws= or loosen the cap")


def _best_of_all(goal: Goal, coordinates: Floats, variances: Floats, rng: np.random.Generator) -> ScaledShape:
    seed = np.random.SeedSequence(int(rng.integers(2**63)))  # one for all shapes: they are compared
    return min(rough_scales(goal, coordinates, variances, seed), key=lambda scaled: scaled.total)
