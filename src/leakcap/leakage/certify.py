"""One certifying pass: every figure of a certificate, bounded together on fresh draws.

Statements are counted before anything is drawn and share one failure probability. Draws depend on the
outputs, never on the secret world.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from leakcap import convert
from leakcap.caps import Cap, Membership
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine
from leakcap.leakage.collusion import known_sizes, observe_known
from leakcap.leakage.confidence import Bound, MeanEstimate, log_term, upper
from leakcap.leakage.measures import Needs, Observed, balanced_by_information, measure, thresholds
from leakcap.leakage.membership import Tick, UnitMeans, observe_units
from leakcap.leakage.posterior import Cells, Sampled, Source
from leakcap.leakage.tasks import WorldMeans, default_priors, observe_worlds
from leakcap.worlds import Worlds

__all__ = [
    "COARSEST",
    "Effort",
    "Findings",
    "certify",
    "count_bounds",
    "entropy_slack",
    "grid_step",
    "seconds_to_certify",
]

FINEST, COARSEST = 2.0**-10, 2.0**-6  # steps of the release grid, in noise deviations
FLOPS = 4e12  # what one stage of a pass may cost before units are screened


@dataclass(frozen=True)
class Effort:
    """How many independent releases are drawn for what; fixed before the first one is."""

    stages: tuple[int, ...]  # for all units, then for those not yet below the cap, and so on
    worlds: int
    known: int

    @classmethod
    def of(cls, draws: int, m: int, n: int, worlds_capped: bool) -> Effort:
        affordable = int(FLOPS / (2 * m * n))
        stages = [min(draws, max(4096, affordable))]
        while stages[-1] < draws:
            stages.append(min(4 * stages[-1], draws))
        return cls(
            tuple(stages),
            int(min(draws, max(4096, (2**28 if worlds_capped else 2**24) // m))),
            int(np.clip(FLOPS / 16 / (2 * m * n), 1024, 4096)),
        )


@dataclass(frozen=True, eq=False)
class Findings:
    """What a pass has certified. All figures hold together with probability `1 - gamma`."""

    exposure: Floats  # per unit; custodian side
    membership: float
    naming: float
    sticks: tuple[tuple[float, float], ...]  # (t, bound on the worst unit's E(q_u - t)_+)
    curve: tuple[tuple[float, float], ...]
    mutual_information: float
    known: tuple[tuple[int, float], ...]
    values: tuple[float, ...]  # one per cap
    integrated: bool
    gamma: float
    bounds: int
    effort: Effort


def grid_step(points: Floats, m: int, n: int) -> float | None:
    """The step of the grid on which a rank-one release can be summed exactly; None if that is too costly."""
    if points.shape[1] != 1:
        return None
    step = FINEST
    while step <= COARSEST:
        cells = Cells(points[:, 0], step).cells
        if cells * m <= 2**23 and 2.0 * cells * m * n <= FLOPS:
            return step
        step *= 2
    return None


def count_bounds(m: int, n: int, sticks: int, wanted: Needs, stages: int) -> int:
    """How many statements a pass makes."""
    return (
        stages * n * (1 + sticks) + 1 + len(priors_for(m, wanted)) + 1 + len(wanted.tasks) + len(known_sizes(m, n)) * n
    )


def priors_for(m: int, wanted: Needs) -> tuple[Fraction, ...]:
    return tuple(sorted({*default_priors(m), *wanted.priors}))


def certify(
    points: Floats,
    worlds: Worlds,
    caps: Sequence[Cap],
    wanted: Needs,
    gamma: float,
    effort: Effort,
    seed: np.random.SeedSequence,
    mi_ceiling: float,
    distance: float,
    step: float | None,
    machine: Machine,
    share_done: Callable[[float], None] = lambda _: None,
) -> Findings:
    """Certify whitened outputs (`points`, noise of unit variance in every direction) once.

    Guarantee: with probability at least `1 - gamma` over the draws, every figure bounds the best attacker's
    in the finite game, for releases whose law is within `distance` (total variation) of the ideal one. `share_done`
    is told from time to time how much of the pass is behind.
    """
    m, n = worlds.m, worlds.n
    cuts = thresholds(worlds.rate)
    mi_ceiling += entropy_slack(distance, m)
    stages = effort.stages[:1] if step else effort.stages
    bounds = count_bounds(m, n, sticks=len(cuts), wanted=wanted, stages=len(stages))
    bound: Bound = partial(upper, log_term=log_term(gamma, bounds))
    first, second, third, fourth = seed.spawn(4)

    def source(draws: int, child: np.random.SeedSequence) -> Source:
        return Cells(points[:, 0], step) if step else Sampled(points, draws, child)

    tick = _meter(n, source(stages[0], first), effort=effort, sizes=len(known_sizes(m, n)), share_done=share_done)
    units = observe_units(source(stages[0], first), worlds, thresholds=cuts, chosen=None, machine=machine, tick=tick)
    limit = min([cap.success for cap in caps if isinstance(cap, Membership)] or [1.0])
    for draws, child in zip(stages[1:], second.spawn(len(stages) - 1), strict=True):
        near = np.flatnonzero(bound(units.balanced.blurred(distance)) > limit)
        if not len(near):
            break
        closer = observe_units(Sampled(points, draws, child), worlds, thresholds=cuts, chosen=near, machine=machine)
        units = _merge(units, closer, near, bound)
    units = replace(
        units,
        balanced=units.balanced.blurred(distance),
        sticks=units.sticks.blurred(2 * distance),
        naming=units.naming.blurred(distance),
    )
    seen_worlds = _blur(observe_worlds(source(effort.worlds, third), priors_for(m, wanted), wanted.tasks), distance, m)
    seen = Observed(rate=worlds.rate, m=m, mi_ceiling=mi_ceiling, units=units, worlds=seen_worlds)
    by_information = balanced_by_information(mi_ceiling, worlds.rate)
    exposure = np.minimum(bound(units.balanced), by_information)
    mi = min(mi_ceiling, float(bound(seen_worlds.information)[0]))
    known = []
    for k, child in zip(known_sizes(m, n), fourth.spawn(len(known_sizes(m, n))), strict=True):
        success = observe_known(Sampled(points, effort.known, child), worlds, k, tick).blurred(distance)
        known.append((k, min(1.0, float(bound(success).max()))))
    share_done(1.0)
    priors = np.array(seen_worlds.priors, dtype=np.float64)
    ceilings = np.minimum(convert.posterior(mi, priors), 1.0)
    return Findings(
        exposure=exposure,
        membership=float(exposure.max()),
        naming=min(1.0, float(bound(units.naming)[0]), float(convert.posterior(mi_ceiling, worlds.rate))),
        sticks=tuple(zip(cuts.tolist(), bound(units.sticks).max(axis=1).tolist(), strict=True)),
        curve=tuple(zip(priors.tolist(), np.minimum(bound(seen_worlds.curve), ceilings).tolist(), strict=True)),
        mutual_information=mi,
        known=tuple(known),
        values=tuple(measure(cap, seen, bound) for cap in caps),
        integrated=bool(step),
        gamma=gamma,
        bounds=bounds,
        effort=replace(effort, stages=(), worlds=0) if step else effort,
    )


def seconds_to_certify(worlds: Worlds, draws: int | None, machine: Machine) -> float:
    """About how long the search and one pass will take, from a small pass that is timed."""
    m, n = worlds.m, worlds.n
    points = np.random.default_rng(0).standard_normal((m, 2))
    one = 0.0
    for draws_now, units in ((16, 16), (1024, min(n, 8192))):  # the first one compiles
        started = time.perf_counter()
        source, some = Sampled(points, draws_now, np.random.SeedSequence(0)), np.arange(min(n, units))
        observe_units(source, worlds, thresholds=thresholds(worlds.rate), chosen=some, machine=machine)
        one = 0.75 * (time.perf_counter() - started) / (draws_now * len(some))  # long passes are faster
    effort = Effort.of(draws or 2**14, m, n, False)
    # The search looks at some thousand units for some shapes and scales, and once at all of them; attackers who know
    # participants cost half as much again.
    search = 20 * 1024 * min(n, 4096) + 1024 * n
    return one * (search + n * (effort.stages[0] + 1.5 * effort.known * len(known_sizes(m, n))))


def _meter(n: int, source: Source, effort: Effort, sizes: int, share_done: Callable[[float], None]) -> Tick:
    """Adds up what was done of the passes over all units; the screened ones after the first are short."""
    total = n * (source.blocks * source.rows + sizes * effort.known)
    done, lock = 0, threading.Lock()

    def tick(pairs: int) -> None:
        nonlocal done
        with lock:
            done += pairs
            share_done(min(done / total, 1.0))

    return tick


def _merge(units: UnitMeans, closer: UnitMeans, near: np.ndarray, bound: Bound) -> UnitMeans:
    """Per entry, whichever stage bounds lower: both hold, being counted in the union."""

    def better(coarse: MeanEstimate, fine: MeanEstimate) -> MeanEstimate:
        estimate, variance, draws = coarse.estimate.copy(), coarse.variance.copy(), coarse.draws.copy()
        take = bound(fine) < bound(coarse)[..., near]
        for target, given in ((estimate, fine.estimate), (variance, fine.variance), (draws, fine.draws)):
            target[..., near] = np.where(take, given, target[..., near])
        return MeanEstimate(
            estimate=estimate,
            variance=variance,
            draws=draws,
            span=coarse.span,
            rounding=max(coarse.rounding, fine.rounding),
        )

    return replace(units, balanced=better(units.balanced, closer.balanced), sticks=better(units.sticks, closer.sticks))


def entropy_slack(distance: float, m: int) -> float:
    """How far the information about one of `m` secrets moves when the law moves by `distance` in total variation."""
    entropy = -distance * math.log(distance) - (1 - distance) * math.log1p(-distance) if distance > 0 else 0.0
    return distance * math.log(m) + entropy


def _blur(seen: WorldMeans, distance: float, m: int) -> WorldMeans:
    return replace(
        seen,
        curve=seen.curve.blurred(distance),
        information=seen.information.blurred(entropy_slack(distance, m)),
        tasks=tuple(mean.blurred(distance) for mean in seen.tasks),
    )
