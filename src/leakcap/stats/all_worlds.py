"""Plain statistics in all worlds at once; None where rows are not all finite numbers: those run one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels import gpu
from leakcap.kernels.moments import covariances, masked_sums, means, quantiles, shares, variances
from leakcap.stats.cells import bin_edges, bin_of, finite_table, level_of, quantile_levels
from leakcap.stats.on_grid import grids_of, in_worlds
from leakcap.worlds import Units, Worlds

__all__ = [
    "world_categories",
    "world_covariances",
    "world_histograms",
    "world_means",
    "world_quantiles",
    "world_sums",
    "world_variances",
]


def world_means(data: tuple[Any, ...], units: Units, worlds: Worlds, device: str | None = None) -> Floats | None:
    """Means of every world, flattened."""
    table = finite_table(data)
    if table is None:
        return None
    if device:
        return gpu.means(table, worlds.over_rows(units), device=device)
    return means(table, worlds, units)


def world_sums(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
    """Sums of every world, flattened."""
    table = finite_table(data)
    return None if table is None else masked_sums(table, worlds, units)


def world_variances(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats | None:
    """Variances of every world, flattened."""
    table = finite_table(data)
    return None if table is None else variances(table, worlds, units)


def world_covariances(data: tuple[Any, ...], units: Units, worlds: Worlds, device: str | None = None) -> Floats | None:
    """Covariances of every world, flattened."""
    table = finite_table(data)
    if table is None:
        return None
    if device:
        return gpu.covariances(table, worlds.over_rows(units), device=device).reshape(worlds.m, -1)
    return covariances(table, worlds, units).reshape(worlds.m, -1)


def world_quantiles(
    data: tuple[Any, ...], units: Units, worlds: Worlds, q: float | Sequence[float] = 0.5, grid: Any = None
) -> Floats | None:
    """Quantiles of every world, flattened."""
    table, levels = finite_table(data), quantile_levels(q)
    if table is None:
        return None
    if grid is not None:
        return in_worlds(table, grids_of(grid, data[0]), levels, worlds=worlds, units=units)
    return quantiles(table, worlds.over_rows(units), levels.ravel()).reshape(worlds.m, -1)


def world_histograms(
    data: tuple[Any, ...], units: Units, worlds: Worlds, edges: Sequence[float] | Floats
) -> Floats | None:
    """Shares in bins of every world, flattened."""
    table, ends = finite_table(data), bin_edges(edges)
    if table is None:
        return None
    return shares(bin_of(table, ends), len(ends) - 1, worlds, units).reshape(worlds.m, -1)


def world_categories(data: tuple[Any, ...], units: Units, worlds: Worlds, levels: Sequence[Any]) -> Floats | None:
    """Shares of levels of every world, flattened."""
    if np.asarray(data[0]).dtype.kind not in "biuf" or any(isinstance(level, str) for level in levels):
        return None
    table = finite_table(data)
    if table is None:
        return None
    place, counted = level_of(table, np.asarray(levels, dtype=np.float64))
    return shares(np.where(counted, place, -1), len(levels), worlds, units).reshape(worlds.m, -1)
