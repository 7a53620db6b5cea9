"""One certifying pass: every figure of a certificate, bounded together on fresh draws.

Statements are counted before anything is drawn and share one failure probability. Draws depend on the
outputs, never on the secret world.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from leakcap import convert
from leakcap.caps import Cap
from leakcap.convert.continuity import entropy_slack
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine
from leakcap.ground.proofs import proves
from leakcap.leakage.collusion import known_sizes, known_upper, known_wagers, observe_known
from leakcap.leakage.confidence import Bound, MeanEstimate, log_term, upper
from leakcap.leakage.measures import Needs, Observed, balanced_by_information, measure, naming, thresholds
from leakcap.leakage.membership import Tick, UnitMeans, observe_units
from leakcap.leakage.posterior import Cells, Sampled, Source
from leakcap.leakage.stages import (
    KNOWN,
    PILOT,
    PLENTY,
    Effort,
    UnitGame,
    look_again,
    look_at_all,
    looked_at_again,
    screen_all,
)
from leakcap.leakage.tasks import WorldMeans, default_priors, entropy_of, observe_worlds
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

FINEST, COARSEST = 2.0**-10, 2.0**-4  # steps of the release grid, in noise deviations
MAX_SORTED = 2**25  # posteriors that are sorted for the curve over given inputs
CELL_FLOPS, CELLS = 2e11, 2**23  # what summing over all releases may cost, where that is possible


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
    gamma_again: float  # of it, for the units that were looked at again; the rest is for what is said of everybody
    bounds: int
    effort: Effort


def grid_step(points: Floats, m: int, n: int) -> float | None:
    """The step of the grid on which a rank-one release can be summed exactly; None if that is too costly.

    Finer ones only at a sixteenth of that cost: even the coarsest adds but .03 % to the variance of the noise.
    """
    if points.shape[1] != 1:
        return None
    step = FINEST
    while step <= COARSEST:
        cells = Cells(points[:, 0], step).cells
        affordable = 1 if step == COARSEST else 1 / 16
        if cells * m <= affordable * CELLS and 2.0 * cells * m * n <= affordable * CELL_FLOPS:
            return step
        step *= 2
    return None


def count_bounds(m: int, n: int, sticks: int, wanted: Needs, stages: int) -> int:
    """How many statements a pass makes."""
    people = stages * n * (1 + sticks) + 1 + len(known_sizes(m, n)) * n if n else 0  # naming one of them included
    return people + len(priors_for(m, wanted)) + 1 + len(wanted.tasks)


def priors_for(m: int, wanted: Needs) -> tuple[Fraction, ...]:
    usual = default_priors(m)
    return tuple(sorted({*usual, *wanted.priors})) if wanted.priors else usual


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
    mi_ceiling += entropy_slack(distance, m)
    if not n:
        return _of_inputs(
            points,
            worlds,
            caps,
            wanted,
            gamma=gamma,
            effort=effort,
            seed=seed,
            ceiling=mi_ceiling,
            blur=distance,
            step=step,
        )
    cuts = thresholds(worlds.rate)
    if step:
        effort = replace(effort, stages=effort.stages[:1], known=min(effort.known, KNOWN), screening=0, naming=0)
    stages, screened = effort.stages, bool(effort.screening)
    bounds = count_bounds(m, n, sticks=0 if screened else len(cuts), wanted=wanted, stages=1)
    # Half is for what is said of everybody, the rest for the few that are looked at again, counted when they are known.
    gamma_again = gamma / 2 if len(stages) > 1 or screened else 0.0
    term = log_term(gamma - gamma_again, bounds)
    bound: Bound = partial(upper, log_term=term)
    first, second, third, fourth = seed.spawn(4)
    game = UnitGame(points, worlds, cuts, caps=tuple(caps), distance=distance, step=step, machine=machine)
    tick = _meter(n, game.source(stages[0], first), effort=effort, sizes=len(known_sizes(m, n)), share_done=share_done)
    start = (screen_all if screened else look_at_all)(game, effort, first, term=term, tick=tick)
    effort = start.effort
    bounds += look_again(game, start, second, gamma_again=gamma_again)
    # From here on all are bounds, and hold together.
    held = UnitMeans(
        balanced=MeanEstimate.exact(start.top[0], distance),
        sticks=MeanEstimate.exact(np.array(start.top[1:]), 2 * distance),
        thresholds=cuts,
        naming=MeanEstimate.exact(bound(start.naming), distance),
    )
    priors, tasks = priors_for(m, wanted), wanted.tasks
    aside = None if step else observe_worlds(game.source(PILOT, third.spawn(1)[0]), priors, tasks)
    placed = aside.wagers(effort.worlds, term, m) if aside else None
    seen_worlds = _blur(observe_worlds(game.source(effort.worlds, third), priors, tasks, placed), distance, m)
    seen = Observed(rate=worlds.rate, m=m, mi_ceiling=mi_ceiling, units=held, worlds=seen_worlds)
    by_information = balanced_by_information(mi_ceiling, worlds.rate)
    exposure = np.minimum(bound(held.balanced), by_information)
    mi = min(mi_ceiling, float(bound(seen_worlds.information)[0]))
    sizes = known_sizes(m, n)
    sources = [Sampled(points, effort.known, child) for child in fourth.spawn(len(sizes))]
    before = None if screened else start.seen.balanced
    worst_known = list(_worst_known(sources, worlds, sizes, term=term, before=before, distance=distance, tick=tick))
    share_done(1.0)
    points_of_curve = np.array(priors, dtype=np.float64)
    ceilings = np.minimum(convert.posterior(mi, points_of_curve), 1.0)
    return Findings(
        exposure=exposure,
        membership=float(exposure.max()),
        naming=min(1.0, float(bound(held.naming)[0]), float(convert.posterior(mi_ceiling, worlds.rate))),
        sticks=tuple(zip(cuts.tolist(), bound(held.sticks).max(axis=1).tolist(), strict=True)),
        curve=tuple(
            zip(points_of_curve.tolist(), np.minimum(bound(seen_worlds.curve), ceilings).tolist(), strict=True)
        ),
        mutual_information=mi,
        known=tuple(zip(sizes, worst_known, strict=True)),
        values=tuple(measure(cap, seen, bound) for cap in caps),
        integrated=bool(step),
        gamma=gamma,
        gamma_again=gamma_again,
        bounds=bounds,
        effort=replace(effort, stages=(), worlds=0) if step else effort,
    )


@proves("given-inputs")
def _of_inputs(
    points: Floats,
    inputs: Worlds,
    caps: Sequence[Cap],
    wanted: Needs,
    *,
    gamma: float,
    effort: Effort,
    seed: np.random.SeedSequence,
    ceiling: float,
    blur: float,
    step: float | None,
) -> Findings:
    """The same where nobody is in the worlds: curve, information and tasks, naming the input among them."""
    m, shares = inputs.m, inputs.shares
    bounds = count_bounds(m, 0, sticks=0, wanted=wanted, stages=0)
    bound: Bound = partial(upper, log_term=log_term(gamma, bounds))
    priors = priors_for(m, wanted)
    draws = min(effort.stages[0], max(effort.worlds, MAX_SORTED // m))

    def source(draws: int, seed: np.random.SeedSequence) -> Source:
        return Cells(points[:, 0], step, shares) if step else Sampled(points, draws, seed, prior=shares)

    pilot, certifying = seed.spawn(2)
    aside = None if step else observe_worlds(source(PILOT, pilot), priors, wanted.tasks)
    placed = aside.wagers(draws, log_term(gamma, bounds), m) if aside else None
    found = _blur(observe_worlds(source(draws, certifying), priors, wanted.tasks, placed), blur, m)
    seen = Observed(rate=inputs.rate, m=m, mi_ceiling=ceiling, worlds=found, shares=shares)
    mi = min(ceiling, float(bound(found.information)[0]), entropy_of(shares, m))
    chances = np.array(priors, dtype=np.float64)
    curve = np.minimum(bound(found.curve), np.minimum(convert.posterior(mi, chances), 1.0))
    return Findings(
        exposure=np.empty(0),
        membership=1.0,
        naming=min(1.0, naming(seen, bound)),
        sticks=(),
        curve=tuple(zip(chances.tolist(), curve.tolist(), strict=True)),
        mutual_information=mi,
        known=(),
        values=tuple(measure(cap, seen, bound) for cap in caps),
        integrated=bool(step),
        gamma=gamma,
        gamma_again=0.0,
        bounds=bounds,
        effort=Effort((), 0 if step else draws, 0),
    )


def _worst_known(
    sources: Sequence[Sampled],
    worlds: Worlds,
    sizes: Sequence[int],
    *,
    term: float,
    before: MeanEstimate | None,
    distance: float,
    tick: Tick,
) -> Iterator[float]:
    """For each number of known memberships a bound for the unit that fares worst; `before` is what was seen of all
    units without them, None where second moments have to do."""
    for source, k in zip(sources, sizes, strict=True):
        if before is None:
            found = known_upper(source, worlds, k, term) + distance
        else:
            # Sizes grow, and whoever knows one more learns a little more: each places the wagers of the next.
            stakes = known_wagers(before, worlds.rate, source.draws, term)
            before = observe_known(source, worlds, k, tick=tick, wagers=stakes)
            found = upper(before.blurred(distance), term)
        yield min(1.0, float(found.max()))


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
    effort = Effort.of(draws or 2**16, m, n, False, screen=machine.device is None)
    # The search looks at the units that are exposed most, for some shapes and scales; attackers who know participants
    # cost half as much again; further stages look at some units, with many draws.
    search = 2**14 * min(n, 256) + 2**10 * min(n, 1024) + 2**17 * min(n, 128)
    everybody = n * (PILOT + effort.stages[0] + 1.5 * effort.known * len(known_sizes(m, n)))
    few = sum(stage * min(n, looked_at_again(effort.stages[0], n, stage)) for stage in effort.stages[1:])
    if effort.screening:  # about a twentieth of the units are looked at closely
        everybody = n * (effort.naming + 0.05 * PLENTY) + 64 * (effort.screening + 3 * effort.known)
    return one * (search + everybody + few)


def _meter(n: int, source: Source, effort: Effort, sizes: int, share_done: Callable[[float], None]) -> Tick:
    """Adds up what was done of the passes over all units; the screened ones after the first are short."""
    total = n * (effort.naming or source.blocks * source.rows + sizes * effort.known)
    done, lock = 0, threading.Lock()

    def tick(pairs: int) -> None:
        nonlocal done
        with lock:
            done += pairs
            share_done(min(done / total, 1.0))

    return tick


def _blur(seen: WorldMeans, distance: float, m: int) -> WorldMeans:
    return replace(
        seen,
        curve=seen.curve.blurred(distance),
        information=seen.information.blurred(entropy_slack(distance, m)),
        tasks=tuple(mean.blurred(distance) for mean in seen.tasks),
    )
