"""What a swap of two people does to a statistic that is no sum: the updates behind `mode="individual"`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakcap.ground.arrays import Floats
from leakcap.kernels.moments.swapped import SwappedCovariances, SwappedQuantiles, SwappedVariances
from leakcap.kernels.swapping import Swapper
from leakcap.stats.cells import finite_table, quantile_levels
from leakcap.worlds import Units

__all__ = ["swapped_covariances", "swapped_quantiles", "swapped_variances"]


def swapped_covariances(data: tuple[Any, ...], units: Units) -> Swapper | None:
    table = _own_rows(data, units)
    return None if table is None else SwappedCovariances.of(table)


def swapped_variances(data: tuple[Any, ...], units: Units) -> Swapper | None:
    table = _own_rows(data, units)
    return None if table is None else SwappedVariances.of(table)


def swapped_quantiles(
    data: tuple[Any, ...], units: Units, q: float | Sequence[float] = 0.5, grid: Any = None
) -> Swapper | None:
    """None with a grid, on which quantiles are those of counts."""
    table = _own_rows(data, units)
    return None if table is None or grid is not None else SwappedQuantiles.of(table, quantile_levels(q).ravel())


def _own_rows(data: tuple[Any, ...], units: Units) -> Floats | None:
    """The one table of a pool in which everybody has one row; otherwise None."""
    return None if units.of_row is not None else finite_table(data)
