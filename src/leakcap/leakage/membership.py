"""One product for all units: how likely each took part, given each release, reduced to sums on the fly.

The largest cost of a certificate, so it is built for speed: posteriors of a world and its complement enter
as one difference (half the work); both factors sit on a grid of powers of two, so that f32 sums are exact in
any order; a compiled loop reduces each tile while it is in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, crew, threads
from leakcap.leakage.confidence import MeanEstimate
from leakcap.leakage.posterior import Sampled, Source, View
from leakcap.worlds import Worlds

__all__ = ["Tick", "UnitMeans", "evidence", "observe_units", "unit_columns"]

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


def observe_units(
    source: Source,
    worlds: Worlds,
    thresholds: Floats,
    chosen: npt.NDArray[np.intp] | None = None,
    machine: Machine = Machine(),  # noqa: B008
    tick: Tick = lambda _: None,
) -> UnitMeans:
    """Means over releases for all units, or for the `chosen` ones."""
    if machine.device and isinstance(source, Sampled):
        return _on_device(source, worlds, thresholds=thresholds, chosen=chosen, device=machine.device, tick=tick)
    n = worlds.n if chosen is None else len(chosen)
    sums = _Sums.zeros(n, len(thresholds))
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


def _on_device(
    source: Sampled,
    worlds: Worlds,
    thresholds: Floats,
    chosen: npt.NDArray[np.intp] | None,
    device: str,
    tick: Tick,
) -> UnitMeans:
    """The same by torch: the draws are made here, so they are the same; what is added up has its own rounding."""
    from leakcap.kernels.gpu import unit_sums

    units = worlds.n if chosen is None else len(chosen)
    step = max(1, TOGETHER // source.rows)

    def releases() -> Iterator[Floats]:
        for start in range(0, source.blocks, step):
            some = [source.seen(block)[0] for block in range(start, min(start + step, source.blocks))]
            yield np.concatenate(some)
            tick(units * sum(map(len, some)))

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
    sums: _Sums,
    best: Floats,
    tick: Tick,
) -> None:
    from leakcap.leakage._loops import add_panel

    rows, weight = seen.table, seen.weight
    shift = 0.0 if worlds.paired else worlds.rate
    product = np.empty((PANEL, TILE), dtype=rows.dtype)
    for tile in tiles:
        columns = unit_columns(worlds, tile if chosen is None else chosen[tile], rows.dtype)
        for start in range(0, len(rows), PANEL):
            panel = rows[start : start + PANEL]
            out = product[: len(panel), : columns.shape[1]]
            np.matmul(panel, columns, out=out)
            if shift:
                out -= out.dtype.type(shift)
            part = slice(start, start + len(panel))
            add_panel(
                out,
                weight[part],
                cuts.astype(out.dtype),
                sums.total[tile],
                sums.squares[tile],
                sums.stick_total[:, tile],
                sums.stick_squares[:, tile],
                best[part],
            )
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
