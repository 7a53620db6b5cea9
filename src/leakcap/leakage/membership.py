"""One product for all units: how likely each took part, given each release, reduced to sums on the fly.

The largest cost of a certificate, so it is built for speed: posteriors of a world and its complement enter
as one difference (half the work); both factors sit on a grid of powers of two, so that f32 sums are exact in
any order; a compiled loop reduces each tile while it is in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, crew, threads
from leakcap.leakage.confidence import MeanEstimate, Wagers
from leakcap.leakage.posterior import Sampled, Source, View
from leakcap.worlds import Worlds

__all__ = ["Evidence", "Tick", "UnitMeans", "UnitWagers", "evidence", "observe_naming", "observe_units", "unit_columns"]

Tick: TypeAlias = Callable[[int], None]  # told how many more pairs of a release and a unit were looked at

TILE = 1024  # units per product
PANEL = 512  # releases per product
TOGETHER = 2**14  # releases that a device is given at a time


@dataclass(frozen=True, eq=False)
class UnitMeans:
    """Per unit: `balanced`, the success of the best attacker; `sticks[l]`, the mean of (q_u - t_l)_+; and
    over all units `naming`, the mean of the largest q_u."""

    balanced: MeanEstimate
    sticks: MeanEstimate
    thresholds: Floats
    naming: MeanEstimate

    def at(self, chosen: npt.NDArray[np.intp]) -> UnitMeans:
        """Some of the units."""
        return replace(self, balanced=self.balanced.at(chosen), sticks=self.sticks.at((slice(None), chosen)))


@dataclass(frozen=True, eq=False)
class UnitWagers:
    """On `|q_u - rate|` and on every stick of every unit, `(1 + sticks, units)`, and one on naming a member."""

    units: Wagers
    naming: Wagers
    variance: Floats  # that they were placed for
    naming_variance: Floats

    @classmethod
    def placed(cls, seen: UnitMeans, rate: float, draws: int, log_term: float) -> UnitWagers:
        """For the means and variances seen before."""
        deviation = seen.balanced.scaled(4 * rate * (1 - rate), -2 * rate * (1 - rate))
        most = np.concatenate([[max(rate, 1 - rate)], 1 - seen.thresholds])[:, None]
        mean = np.concatenate([deviation.estimate[None], seen.sticks.estimate])
        variance = np.concatenate([deviation.variance[None], seen.sticks.variance])
        return cls(
            Wagers.placed(mean, variance, np.broadcast_to(most, mean.shape), draws=draws, log_term=log_term),
            Wagers.placed(seen.naming.estimate, seen.naming.variance, 1.0, draws=draws, log_term=log_term),
            variance=variance,
            naming_variance=seen.naming.variance,
        )


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
    n = worlds.n if chosen is None else len(chosen)
    sums = _Sums.zeros(n, len(thresholds)) if wagers is None else _Capitals.of(wagers)
    width = worlds.m // 2 if worlds.paired else worlds.m
    exact = source.draws == 0
    dtype = np.float64 if exact else np.float32
    # A quarter of the memory holds evidence; the rest is for blocks of posteriors, tiles and sums.
    blocks_at_once = max(1, machine.memory // 4 // (source.rows * width * np.dtype(dtype).itemsize))
    with crew(float(source.rows * source.blocks) * width * n) as pool:
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
                    cuts=thresholds - worlds.rate,
                    chosen=chosen,
                    sums=sums,
                    best=best,
                    tick=tick,
                )
                for group, best in zip(groups, top, strict=True)
            ]
            for job in jobs:
                job.result()
            sums.add_naming(weight, top.max(axis=0) + worlds.rate)
    return sums.means(source.draws, worlds.rate, thresholds)


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
        capitals = _Capitals(wagers, capital=left.units, naming=left.naming, rounding=left.rounding)
        return capitals.means(left.draws, worlds.rate, thresholds)
    found = unit_sums(releases(), source.points, worlds=worlds, thresholds=thresholds, chosen=chosen, device=device)
    sums = _Sums(
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
    sums: _Sums | _Capitals,
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


@dataclass
class _Sums:
    total: Floats
    squares: Floats
    stick_total: Floats
    stick_squares: Floats
    naming: Floats = field(default_factory=lambda: np.zeros(2))
    rounding: float = 0.0

    @classmethod
    def zeros(cls, n: int, sticks: int) -> _Sums:
        return cls(np.zeros(n), np.zeros(n), np.zeros((sticks, n)), np.zeros((sticks, n)))

    def corner(self, tile: slice) -> _Sums:
        """Room for some units, without gaps: loops over it are fast."""
        return _Sums.zeros(len(self.total[tile]), len(self.stick_total))

    def join(self, tile: slice, corner: _Sums) -> None:
        for mine, more in (
            (self.total, corner.total),
            (self.squares, corner.squares),
            (self.stick_total, corner.stick_total),
            (self.stick_squares, corner.stick_squares),
        ):
            mine[..., tile] += more

    def add(self, panel: npt.NDArray[np.floating], *, weight: Floats, cuts: Any, best: Floats) -> None:
        """Releases x units, as deviations from the rate."""
        from leakcap.leakage._loops import add_panel

        add_panel(panel, weight, cuts, self.total, self.squares, self.stick_total, self.stick_squares, best)

    def add_naming(self, weight: Floats, best: Floats) -> None:
        self.naming += weight @ best, weight @ best**2

    def means(self, draws: int, rate: float, thresholds: Floats) -> UnitMeans:
        def mean(total: Floats, squares: Floats, span: float | Floats) -> MeanEstimate:
            if draws == 0:
                return MeanEstimate.exact(total, self.rounding)
            return MeanEstimate.from_sums(total, squares, draws=draws, span=span, rounding=self.rounding)

        # |q_u - q| / (4 q (1-q)) above 1/2: at q = 1/2 that is max(q_u, 1 - q_u).
        deviation = mean(self.total, self.squares, max(rate, 1 - rate))
        sticks = mean(self.stick_total, self.stick_squares, 1 - thresholds[:, None])
        naming = mean(self.naming[:1], self.naming[1:], 1.0)
        return UnitMeans(deviation.scaled(0.25 / (rate * (1 - rate)), 0.5), sticks, thresholds, naming)


@dataclass
class _Capitals:
    """What releases have left of the wagers: logarithms, `(1 + sticks, units)`."""

    wagers: UnitWagers
    capital: Floats
    naming: Floats = field(default_factory=lambda: np.zeros(1))
    rounding: float = 0.0

    @classmethod
    def of(cls, wagers: UnitWagers) -> _Capitals:
        return cls(wagers, np.zeros(wagers.units.base.shape))

    def corner(self, tile: slice) -> _Capitals:
        """Room for some units, without gaps: loops over it are fast."""
        units = self.wagers.units[:, tile]
        gapless = Wagers(np.ascontiguousarray(units.base), np.ascontiguousarray(units.stake), units.most)
        return _Capitals.of(replace(self.wagers, units=gapless))

    def join(self, tile: slice, corner: _Capitals) -> None:
        self.capital[:, tile] += corner.capital

    def add(self, panel: npt.NDArray[np.floating], *, weight: Floats, cuts: Any, best: Floats) -> None:
        """Releases x units, as deviations from the rate. Every release counts once."""
        from leakcap.leakage._loops import wager_panel

        wager_panel(panel, cuts, self.wagers.units.base, self.wagers.units.stake, self.capital, best)

    def add_naming(self, weight: Floats, best: Floats) -> None:
        placed = self.wagers.naming
        self.naming += np.log(placed.base.astype(np.float64) - placed.stake.astype(np.float64) * best[:, None]).sum(
            axis=0
        )

    def means(self, draws: int, rate: float, thresholds: Floats) -> UnitMeans:
        def mean(capital: Floats, wagers: Wagers, variance: Floats) -> MeanEstimate:
            return MeanEstimate.from_wagers(capital, wagers, variance=variance, draws=draws, rounding=self.rounding)

        placed, variance = self.wagers.units, self.wagers.variance
        deviation = mean(self.capital[0], placed[0], variance[0])
        sticks = mean(self.capital[1:], placed[1:], variance[1:])
        naming = mean(self.naming, self.wagers.naming, self.wagers.naming_variance)
        return UnitMeans(deviation.scaled(0.25 / (rate * (1 - rate)), 0.5), sticks, thresholds, naming)
