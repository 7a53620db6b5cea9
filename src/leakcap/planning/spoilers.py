"""Which output spoils the others: the one without which they would need much less noise. Custodian side.

The best shape of the noise gives most, beside how far an output moves from world to world, to what single people
decide: a maximum, or a mean in which one person weighs much. So that output is left out on trial, and the noise of the
others is found again in some of the worlds. It is a hint: nothing is certified, nothing is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from leakcap import modes
from leakcap.caps import Membership
from leakcap.errors import LeakcapError
from leakcap.ground.arrays import Bools, Floats
from leakcap.kernels.contributions import Contributions
from leakcap.planning.plans import Plan
from leakcap.planning.rehearsal import Rehearsals
from leakcap.planning.request import Request

__all__ = ["spoilers"]

MIN_WORLDS = 128  # in fewer, the luck of worlds looks like an output that spoils
WORLDS = 512  # in which the noise is found again
MAX_CELLS = 2**21  # units times worlds, or times outputs: beyond, a summary would take seconds for it
MAX_OUTPUTS = 64
CLEAR = 0.75  # of the noise in the others, below which it is worth a line
APART = 0.92  # of what leaving out any other output brings: every output costs the others something
TRIED = 2  # outputs, those with most noise beside their spread


def spoilers(plan: Plan, request: Request, labels: tuple[str, ...]) -> Iterator[str]:
    """A line where one output costs the others more than a tenth of their noise, and more than an output must."""
    table, noise = plan.run.simulation.table, plan.noise
    d = table.shape[1]
    if not 2 <= d <= MAX_OUTPUTS or plan.run.finishing is not None or len(labels) != d:
        return
    spread = table.std(axis=0)
    moving = spread > 1e-9 * np.abs(table).max(axis=0)
    if moving.sum() < 2:
        return
    beside = np.where(moving, noise.output_deviations / np.where(moving, spread, 1.0), 0.0)
    order = [int(one) for one in np.argsort(-beside) if moving[one]]
    try:
        before = _noise(plan, request, moving)
        if before is None:
            return
        ratio, worst = min(_without(plan, request, before, one) for one in order[:TRIED])
        if ratio >= CLEAR:
            return
        usual, _ = min(_without(plan, request, before, one) for one in order[TRIED:][-TRIED:] or order[-1:])
    except LeakcapError:  # no cap is kept in so few worlds: no hint
        return
    if ratio < APART * usual:
        other = int(np.flatnonzero(moving & (np.arange(d) != worst))[0])
        now = noise.output_deviations[other]
        yield (
            f"{labels[worst]!r} spoils the others: without it their noise would be about {ratio:.2f} times as large, "
            f"in {labels[other]!r} {ratio * now:.3g} instead of {now:.3g}. Leave it out, or bound what one person can "
            "change in it."
        )


def _without(plan: Plan, request: Request, before: Floats, left_out: int) -> tuple[float, int]:
    """What is left of the noise in the others without one output, and which it was."""
    others = (before > 0) & (np.arange(len(before)) != left_out)
    after = _noise(plan, request, others)
    return (1.0 if after is None else float(np.median(after[others] / before[others]))), left_out


def _noise(plan: Plan, request: Request, kept: Bools) -> Floats | None:
    """About the noise of some outputs, if there were no others, and 0 in those; None where it takes too long."""
    run, simulation = plan.run, plan.run.simulation
    if run.design == "bits":
        brings = run.brings
        if not isinstance(brings, Contributions) or brings.values.size > MAX_CELLS or not _about_one(plan):
            return None
        some = replace(brings, values=brings.values[:, kept])
        settings = replace(request.settings, weights=_weights(request, kept))
        found = modes.bits.certified(some, run.worlds, plan.caps, settings, draw=run.draw)[0].noise
        return _in_place(found.output_deviations, kept)
    if request.mode != "exact":
        return None
    worlds = run.worlds
    count = min(WORLDS, worlds.m) // worlds.share.denominator * worlds.share.denominator
    if count < MIN_WORLDS or count * worlds.n > MAX_CELLS:
        return None
    # Whole pairs, which lie half a list apart; partitions lie together.
    half = np.arange(count // 2)
    chosen = np.concatenate([half, worlds.m // 2 + half]) if worlds.paired else np.arange(count)
    table = simulation.table[np.ix_(chosen, np.flatnonzero(kept))]
    trials = Rehearsals(plan.caps, replace(request.settings, draws=None), request.gamma, releases=2, seed=0)
    found = trials.noise(
        replace(simulation, table=table),
        replace(worlds, packed=worlds.packed[chosen]),
        weights=_weights(request, kept),
    )
    return _in_place(found.output_deviations, kept)


def _in_place(some: Floats, kept: Bools) -> Floats:
    found = np.zeros(len(kept))
    found[kept] = some
    return found


def _weights(request: Request, kept: Bools) -> Any:
    weights = request.settings.weights
    return weights if weights is None or isinstance(weights, str) else np.asarray(weights)[kept]


def _about_one(plan: Plan) -> bool:
    return all(isinstance(cap, Membership) for cap in plan.caps)
