"""Attackers who already know some memberships: how well do they guess somebody else's?

Knowing k memberships at random leaves about m / 2^k worlds, so with few worlds a certificate ends soon
(docs/threat-model.md). This module measures where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import crew
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate, Wagers
from leakcap.leakage.membership import TILE, Evidence, Tick, evidence, unit_columns
from leakcap.leakage.moments import moments_of, root_upper
from leakcap.leakage.posterior import Sampled, View
from leakcap.worlds import Worlds

__all__ = ["known_sizes", "known_upper", "known_wagers", "observe_known"]

NO_CUTS = np.empty(0, dtype=np.float32)


def known_sizes(m: int, n: int) -> tuple[int, ...]:
    """Numbers of known memberships worth reporting: up to log2 m, where nothing is left to hide."""
    last = int(np.log2(m))
    return tuple(k for k in sorted({1, 3, last}) if k <= min(last, n - 1))


@proves("collusion")
def observe_known(
    source: Sampled, worlds: Worlds, k: int, tick: Tick = lambda _: None, wagers: Wagers | None = None
) -> MeanEstimate:
    """Balanced success against every unit, by an attacker told `k` other units' memberships at random.

    Each draw tells one random set of `k` units for all targets; a target in the set is skipped in that draw.
    Which draws count for a unit depends on the sets alone, and worlds are drawn freely (not in turn), so given
    which draws count they are independent and identically distributed.
    """
    n, rate = worlds.n, worlds.rate
    total, squares, capital = np.zeros(n), np.zeros(n), np.zeros(n)
    counted = np.full(n, float(source.draws))
    learn = _informed(source, worlds, k)
    with crew(float(source.rows * source.blocks) * worlds.m * n) as pool:
        parts = list(pool.map(learn, range(source.blocks)))
        table = np.concatenate([seen.table for seen, _ in parts])
        told = np.concatenate([units for _, units in parts])
        rounding = max(seen.rounding for seen, _ in parts)

        def tile_sums(start: int) -> None:
            tile = slice(start, min(start + TILE, n))
            off = table @ unit_columns(worlds, tile)
            if not worlds.paired:
                off -= np.float32(rate)
            inside = (told >= tile.start) & (told < tile.stop)
            draw, column = np.nonzero(inside)
            np.subtract.at(counted, told[draw, column], 1.0)
            off[draw, told[draw, column] - tile.start] = 0.0
            _add(off, total[tile], squares[tile])
            if wagers is not None:
                capital[tile] = _capital_left(off, wagers[tile], told=source.draws - counted[tile])
            tick(off.size)

        list(pool.map(tile_sums, range(0, n, TILE)))
    deviation = MeanEstimate.from_sums(total, squares, draws=counted, span=max(rate, 1 - rate), rounding=rounding)
    if wagers is not None:
        slip = wagers.slip * (source.draws / np.maximum(counted, 1.0)) + 2.0**-48  # also of draws that do not count
        deviation = MeanEstimate.from_wagers(
            capital, wagers, variance=deviation.variance, draws=counted, rounding=rounding, slip=slip
        )
    return deviation.scaled(0.25 / (rate * (1 - rate)), 0.5)


def _informed(source: Sampled, worlds: Worlds, k: int) -> Callable[[int], tuple[Evidence, npt.NDArray[np.intp]]]:
    """A block of releases as evidence for somebody who was told `k` memberships in each, and which units those were."""
    n, source = worlds.n, replace(source, stratified=False)
    seeds = np.random.SeedSequence(source.seed.entropy, spawn_key=(*source.seed.spawn_key, 2**31 + k))

    def learn(block: int) -> tuple[Evidence, npt.NDArray[np.intp]]:
        view = source.view(block)
        child = np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, block))
        told = _distinct(n, len(view.weight), k, np.random.default_rng(child))
        assert view.world is not None
        draw = np.arange(len(told))
        consistent = np.ones((worlds.m, len(told)), dtype=np.bool_)
        for units in told.T:
            bits = worlds.columns(units)
            consistent &= bits == bits[view.world, draw]
        posterior = view.posterior * consistent.T
        mass = posterior.sum(axis=1, keepdims=True, dtype=np.float64)
        # The true world is always consistent; its mass is positive unless it underflowed, and then it is alone.
        lost = mass[:, 0] < 1e-30
        posterior[lost] = 0.0
        posterior[lost, view.world[lost]] = 1.0
        # Entries are right to a relative 100 * 2^-24 (f32 exponentials), which survives the division.
        np.divide(posterior, np.where(lost[:, None], 1.0, mass), out=posterior, casting="same_kind")
        known = View(view.weight, posterior, None, view.rounding + 200 * 2.0**-24)
        found = evidence(known, worlds.paired, exact=False)
        return found, told

    return learn


@proves("second-moments")
def known_upper(source: Sampled, worlds: Worlds, k: int, log_term: float) -> Floats:
    """Bounds on the balanced success against every unit, as in `observe_known`, from second moments.

    Guarantee: each fails with probability at most `exp(-log_term)` over the draws.
    """
    rate, learn = worlds.rate, _informed(source, worlds, k)
    work = float(source.rows * source.blocks) * worlds.m**2 / 4
    seen = moments_of(lambda block: learn(block)[0], source.blocks, source.draws, work)
    root = root_upper(seen.roots(worlds), seen, max(rate, 1 - rate), log_term)
    return np.asarray(0.5 + 0.25 / (rate * (1 - rate)) * root)


def _add(off: npt.NDArray[np.float32], total: Floats, squares: Floats) -> None:
    """Add sums over releases of |a| and of its square."""
    from leakcap.leakage._loops import add_panel

    none, best = np.empty((0, off.shape[1])), np.full(len(off), -np.inf)
    add_panel(off, np.ones(len(off)), NO_CUTS, total, squares, none, none, best)


def _capital_left(off: npt.NDArray[np.float32], wagers: Wagers, told: Floats) -> Floats:
    """Logarithms of what the releases that count have left; where a unit was told (`told` times), `off` is 0."""
    from leakcap.leakage._loops import wager_panel

    capital, best = np.zeros((1, off.shape[1])), np.full(len(off), -np.inf)
    wager_panel(off, NO_CUTS, wagers.base[None], wagers.stake[None], capital, best)
    return np.asarray(capital[0] - told * np.log(wagers.base.astype(np.float64)))


def known_wagers(seen: MeanEstimate, rate: float, draws: int, log_term: float) -> Wagers:
    """On `|q_u - rate|` of every unit, placed for what was seen before."""
    deviation = seen.scaled(4 * rate * (1 - rate), -2 * rate * (1 - rate))
    return Wagers.placed(deviation.estimate, deviation.variance, max(rate, 1 - rate), draws=draws, log_term=log_term)


def _distinct(n: int, rows: int, k: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """`rows` uniform sets of `k` different units."""
    if k * k > n:
        return rng.random((rows, n)).argpartition(k - 1, axis=1)[:, :k]
    # Repeats are rare here: redraw the rows that have one.
    told = rng.integers(n, size=(rows, k))
    while True:
        ordered = np.sort(told, axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not again.any():
            return told
        told[again] = rng.integers(n, size=(int(again.sum()), k))
