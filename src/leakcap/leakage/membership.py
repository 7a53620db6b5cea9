"""One product for all units: how likely each took part, given each release, reduced to sums on the fly.

The largest cost of a certificate, so it is built for speed: posteriors of a world and its complement enter
as one difference (half the work); both factors sit on a grid of powers of two, so that f32 sums are exact in
any order; a compiled loop reduces each tile while it is in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, crew, threads
from leakcap.leakage.confidence import MeanEstimate, Wagers
from leakcap.leakage.lending import lent_for
from leakcap.leakage.posterior import Sampled, Source, View
from leakcap.leakage.unit_sums import AddedUp, UnitMeans, UnitWagers, Wagered
from leakcap.simulate.executors import Workers
from leakcap.worlds import Worlds

__all__ = ["Evidence", "Tick", "UnitMeans", "UnitWagers", "evidence", "observe_naming", "observe_units", "unit_columns"]

Tick: TypeAlias = Callable[[int], None]  # told how many more pairs of a release and a unit were looked at

TILE = 1024  # units per product
PANEL = 512  # releases per product
TOGETHER = 2**14  # releases that a device is given at a time


def observe_units(
    source: Source,
    worlds: Worlds,
    thresholds: Floats,
    chosen: npt.NDArray[np.intp] | None = None,
    machine: Machine = Machine(),  # noqa: B008
    tick: Tick = lambda _: None,
    wagers: UnitWagers | None = None,
) -> UnitMeans:
    """Means over releases for all units, or for the `chosen` ones; as sums, or by `wagers` that were placed before."""
    if machine.device and isinstance(source, Sampled):
        return _on_device(
            source, worlds, thresholds=thresholds, chosen=chosen, device=machine.device, tick=tick, wagers=wagers
        )
    units = worlds.n if chosen is None else len(chosen)
    look = Look(source, thresholds, wagers, memory=machine.memory)
    products = float(source.rows * source.blocks) * worlds.m * units
    workers = lent_for(products)
    if workers is None:
        seen = [look.at(worlds, chosen, tick=tick, products=products)]
    else:
        seen = list(_by_workers(workers, look, worlds, chosen=chosen, tick=tick))
    return _joined(seen, look, worlds.rate)


@dataclass(frozen=True, eq=False)
class Seen:
    """What releases add up to for some units; and the largest q_u among these in each release."""

    sums: AddedUp | Wagered
    weight: list[Floats]
    best: list[Floats]


@dataclass(frozen=True, eq=False)
class Look:
    """What is looked at, whichever units are."""

    source: Source
    thresholds: Floats
    wagers: UnitWagers | None
    memory: int

    def at(
        self,
        worlds: Worlds,
        chosen: npt.NDArray[np.intp] | None = None,
        *,
        tick: Tick = lambda _: None,
        products: float = 0.0,
    ) -> Seen:
        """At all units, or at the chosen ones; by a thread for each core where there are many products."""
        source, wagers, n = self.source, self.wagers, worlds.n if chosen is None else len(chosen)
        sums = AddedUp.zeros(n, len(self.thresholds)) if wagers is None else Wagered.of(wagers)
        found = Seen(sums, [], [])
        width = worlds.m // 2 if worlds.paired else worlds.m
        exact = source.draws == 0
        dtype = np.float64 if exact else np.float32
        # A quarter of the memory holds evidence; the rest is for blocks of posteriors, tiles and sums.
        blocks_at_once = max(1, self.memory // 4 // (source.rows * width * np.dtype(dtype).itemsize))
        with crew(products * width / worlds.m) as pool:
            for start in range(0, source.blocks, blocks_at_once):
                ids = range(start, min(start + blocks_at_once, source.blocks))
                parts = list(pool.map(lambda block: evidence(source.view(block), worlds.paired, exact), ids))
                rows = np.concatenate([part.table for part in parts])
                weight = np.concatenate([part.weight for part in parts])
                sums.rounding = max(sums.rounding, *(part.rounding for part in parts))
                top = np.full((threads(), len(rows)), -np.inf)
                tiles = [slice(a, min(a + TILE, n)) for a in range(0, n, TILE)]
                groups = [tiles[i :: threads()] for i in range(threads())]
                jobs = [
                    pool.submit(
                        _reduce,
                        group,
                        Evidence(rows, weight, sums.rounding),
                        worlds,
                        cuts=self.thresholds - worlds.rate,
                        chosen=chosen,
                        sums=sums,
                        best=best,
                        tick=tick,
                    )
                    for group, best in zip(groups, top, strict=True)
                ]
                for job in jobs:
                    job.result()
                found.weight.append(weight)
                found.best.append(top.max(axis=0))
        return found

    def of_part(self, part: tuple[Worlds, UnitWagers | None]) -> Seen:
        """In a worker: at all units of these worlds, by one thread."""
        worlds, wagers = part
        return replace(self, wagers=wagers).at(worlds)


def _by_workers(
    workers: Workers, look: Look, worlds: Worlds, *, chosen: npt.NDArray[np.intp] | None, tick: Tick
) -> Iterator[Seen]:
    """The same of parts of the units, each with its own bits alone: releases are drawn anew wherever they are needed.

    Parts are whole tiles, so that every product is the one that it would be here.
    """
    units = np.arange(worlds.n) if chosen is None else chosen
    step = TILE * -(-len(units) // (TILE * 2 * workers.count))
    parts = [slice(start, min(start + step, len(units))) for start in range(0, len(units), step)]
    items = [(worlds.of_units(units[part]), look.wagers and look.wagers.of_units(part)) for part in parts]
    found: dict[int, Seen] = {}
    try:
        for place, seen in workers.run(Look.of_part, (replace(look, wagers=None),), items):
            found[place] = seen
            tick(items[place][0].n * look.source.rows * look.source.blocks)
    finally:
        workers.close()
    yield from (found[place] for place in range(len(parts)))


def _joined(seen: Sequence[Seen], look: Look, rate: float) -> UnitMeans:
    """The means over releases, for all units that were looked at."""
    n = sum(part.sums.units for part in seen)
    sums: Any = AddedUp.zeros(n, len(look.thresholds)) if look.wagers is None else Wagered.of(look.wagers)
    start = 0
    for part in seen:
        sums.join(slice(start, start + part.sums.units), part.sums)
        start += part.sums.units
        sums.rounding = max(sums.rounding, part.sums.rounding)
    for weight, *best in zip(seen[0].weight, *(part.best for part in seen), strict=True):
        sums.add_naming(weight, np.max(best, axis=0) + rate)
    return sums.means(look.source.draws, rate, look.thresholds)


def observe_naming(source: Sampled, worlds: Worlds, wagers: Wagers, tick: Tick = lambda _: None) -> MeanEstimate:
    """The mean of the largest q_u over all units, and nothing about any of them, by a wager that was placed before."""
    rates = np.full((1, worlds.n), np.float32(0.5))  # on every unit, of no consequence
    none = Wagers(2 * rates, rates, np.ones(rates.shape))
    aside = UnitWagers(none, wagers, variance=np.zeros(rates.shape), naming_variance=np.zeros(1))
    return observe_units(source, worlds, np.empty(0), tick=tick, wagers=aside).naming


def _on_device(
    source: Sampled,
    worlds: Worlds,
    thresholds: Floats,
    chosen: npt.NDArray[np.intp] | None,
    device: str,
    tick: Tick,
    wagers: UnitWagers | None,
) -> UnitMeans:
    """The same by torch: the draws are made here, so they are the same; what is added up has its own rounding."""
    from leakcap.kernels.gpu import unit_capitals, unit_sums

    units = worlds.n if chosen is None else len(chosen)
    step = max(1, TOGETHER // source.rows)

    def releases() -> Iterator[Floats]:
        for start in range(0, source.blocks, step):
            some = [source.seen(block)[0] for block in range(start, min(start + step, source.blocks))]
            yield np.concatenate(some)
            tick(units * sum(map(len, some)))

    if wagers is not None:
        placed, naming = wagers.units, wagers.naming
        left = unit_capitals(
            releases(),
            source.points,
            worlds=worlds,
            thresholds=thresholds,
            chosen=chosen,
            units=(placed.base, placed.stake),
            naming=(naming.base, naming.stake),
            device=device,
        )
        capitals = Wagered(wagers, capital=left.units, naming=left.naming, rounding=left.rounding)
        return capitals.means(left.draws, worlds.rate, thresholds)
    found = unit_sums(releases(), source.points, worlds=worlds, thresholds=thresholds, chosen=chosen, device=device)
    sums = AddedUp(
        total=found.total,
        squares=found.squares,
        stick_total=found.stick_total,
        stick_squares=found.stick_squares,
        naming=found.naming,
        rounding=found.rounding,
    )
    return sums.means(found.draws, worlds.rate, thresholds)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Posteriors in the form the product needs: `table @ unit_columns = q_u - rate` (or q_u if not paired)."""

    table: npt.NDArray[np.floating]
    weight: Floats
    rounding: float


def evidence(view: View, paired: bool, exact: bool) -> Evidence:
    """A view of releases as the left factor of the product."""
    table = view.posterior
    width = table.shape[1] // 2 if paired else table.shape[1]
    if exact:
        table = (table[:, :width] - table[:, width:]) / 2 if paired else table
        return Evidence(table, view.weight, view.rounding)
    from leakcap.leakage._loops import difference_on_grid

    # On a grid of 2^-25 (2^-24 unpaired) all partial sums are integers below 2^24 of it: exact in f32. Rounding can
    # push a row past its bound by a few units; what lies above counts as lost.
    grid, most = (2.0**25, 0.5) if paired else (2.0**24, 1.0)
    on_grid = np.empty((len(table), width), dtype=np.float32)
    lost, kept = difference_on_grid(table, paired, grid, on_grid)
    rounding = lost + max(0.0, kept - most)
    # 2^-24: subtracting the rate; 2^-18: the compiled loop adds 64 values in f32 before they join f64 sums.
    return Evidence(on_grid, view.weight, view.rounding + rounding + 2.0**-24 + 2.0**-18)


def unit_columns(
    worlds: Worlds, units: slice | npt.NDArray[np.intp], dtype: npt.DTypeLike = np.float32
) -> npt.NDArray[np.floating]:
    """The right factor: +1 / -1 for a pair of complementary worlds, else 1 / 0."""
    bits = worlds.columns(units, rows=worlds.m // 2 if worlds.paired else None).astype(dtype)
    if worlds.paired:
        bits *= 2
        bits -= 1
    return bits


def _reduce(
    tiles: Iterable[slice],
    seen: Evidence,
    worlds: Worlds,
    *,
    cuts: Floats,
    chosen: npt.NDArray[np.intp] | None,
    sums: AddedUp | Wagered,
    best: Floats,
    tick: Tick,
) -> None:
    rows, weight = seen.table, seen.weight
    shift = 0.0 if worlds.paired else worlds.rate
    for tile in tiles:
        columns = unit_columns(worlds, tile if chosen is None else chosen[tile], rows.dtype)
        product = np.empty((PANEL, columns.shape[1]), dtype=rows.dtype)
        corner: Any = sums.corner(tile)
        for start in range(0, len(rows), PANEL):
            panel = rows[start : start + PANEL]
            out = product[: len(panel)]
            np.matmul(panel, columns, out=out)
            if shift:
                out -= out.dtype.type(shift)
            part = slice(start, start + len(panel))
            corner.add(out, weight=weight[part], cuts=cuts.astype(out.dtype), best=best[part])
        sums.join(tile, corner)
        tick(len(rows) * columns.shape[1])
