"""Where a released number may lie: intervals from public noise alone, and "too few" where there is none."""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.sql.aggregates import Aggregate, value_from

__all__ = ["LEVEL", "ratio_ends", "with_ends"]

LEVEL = 1.959964  # deviations: 95 %
DRAWS = 400  # of noise, where a number is no ratio
RATIO = "avg"


def with_ends(one: Aggregate, sums: Floats, deviations: Floats) -> tuple[Floats, Floats, Floats]:
    """Values of an aggregate from noised sums, `(groups, sums)`, and the ends of their intervals.

    A mean is a ratio of two noised numbers, so its ends are Fieller's: all ratios that the two do not contradict. Where
    the count is below its own noise there are too few, and the three are NaN.
    """
    found = value_from(one)(sums)
    if one.name in ("count", "sum"):
        return found, found - LEVEL * deviations[:, 0], found + LEVEL * deviations[:, 0]
    if one.name in ("min", "max"):  # no value lies beyond its range
        ends = (found, found - LEVEL * deviations[:, 0], found + LEVEL * deviations[:, 0])
        return tuple(np.clip(each, *(one.args[0].range or (-np.inf, np.inf))) for each in ends)  # type: ignore[return-value]
    few = sums[:, 0] <= deviations[:, 0]
    if one.name == RATIO and one.args[0].range is not None:
        found = np.clip(found, *one.args[0].range)
    low, high = _fieller(one, sums, deviations) if one.name == RATIO else _drawn(one, sums, deviations)
    return tuple(np.where(few, np.nan, each) for each in (found, low, high))  # type: ignore[return-value]


def _fieller(one: Aggregate, sums: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    low, high = ratio_ends(sums[:, 0], sums[:, 1], deviations[:, 0], deviations[:, 1])
    least, most = one.args[0].range or (-np.inf, np.inf)
    middle = (least + most) / 2
    return np.clip(middle + low, least, most), np.clip(middle + high, least, most)


def ratio_ends(n: Floats, total: Floats, of_n: Floats, of_total: Floats) -> tuple[Floats, Floats]:
    """Ends of all ratios r for which |total - r n| is at most LEVEL deviations; infinite where n may be 0."""
    a = n**2 - (LEVEL * of_n) ** 2
    c = total**2 - (LEVEL * of_total) ** 2
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum((n * total) ** 2 - a * c, 0))
        low, high = (n * total - root) / a, (n * total + root) / a
    return np.where(a > 0, low, -np.inf), np.where(a > 0, high, np.inf)


def _drawn(one: Aggregate, sums: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Quantiles over noise as public as the deviations are."""
    rng, finish = np.random.default_rng(0), value_from(one)
    draws = np.stack([finish(sums + deviations * rng.standard_normal(sums.shape)) for _ in range(DRAWS)])
    known = np.isfinite(draws).any(axis=0)
    draws[:, ~known] = 0.0
    low, high = np.nanquantile(draws, [0.025, 0.975], axis=0)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)
