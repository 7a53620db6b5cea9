"""Means of bounded values, one for each release, equally distributed or not: by betting. Proof page: audit."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.audit.statistics.tails import largest
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["mean_interval", "mean_p_value"]


@proves("audit")
def mean_interval(values: npt.ArrayLike, alpha: float, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Where the mean of the expectations of independent values lies that are bounded by `low` and `high`.

    Guarantee: misses it with probability at most `alpha`, on either side at most `alpha / 2`, for any laws within the
    bounds, equal or not. One value per release: units of one release depend on each other, average over them.
    """
    side = checks.fraction(alpha=alpha) / 2
    x, span = _scaled(values, low, high), high - low
    return low + span * _mean_low(x, side), high - span * _mean_low(1 - x, side)


@proves("audit")
def mean_p_value(values: npt.ArrayLike, bound: float, low: float = 0.0, high: float = 1.0) -> float:
    """P-value against "the mean of the expectations is at most `bound`"; the same test as `mean_interval`.

    Guarantee: if that is true it is at most `a` with probability at most `a`, for any laws within the bounds.
    """
    x = _scaled(values, low, high)
    claim = (float(bound) - low) / (high - low)
    if not math.isfinite(claim):
        raise InputError("bound must be a finite number")
    if claim >= x.mean():
        return 1.0
    if claim <= 0:
        return 0.0 if claim < 0 or x.max() > 0 else 1.0
    return math.exp(-min(max(0.0, _log_wealth(x, claim) - 1e-9), 708.0))


def _scaled(values: npt.ArrayLike, low: float, high: float) -> Floats:
    given = np.asarray(values, dtype=np.float64).ravel()
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("low must lie below high, and both be finite")
    if len(given) == 0:
        raise InputError("no values were judged: make more releases, or give the judged part a larger share")
    if not ((given >= low) & (given <= high)).all():
        raise InputError("values must lie from low to high: give the bounds that every value keeps for certain")
    return (given - low) / (high - low)


def _mean_low(x: Floats, side: float) -> float:
    """Largest mean, from 0 to 1, at which the gambler's wealth reaches 1 / side."""
    # More by 1e-9 than needed: sums of logarithms are off by less.
    return largest(lambda mean: mean == 0 or _log_wealth(x, mean) >= 1e-9 - math.log(side), 0.0, float(x.mean()), 1e-8)


def _log_wealth(x: Floats, mean: float) -> float:
    """Logarithm of what 1 has become for a gambler who bets, value by value, on a larger mean than this."""
    stakes = 0.5 ** np.arange(1 + math.ceil(math.log2(len(x)) + 1e-9))[:, None]  # fixed before: 1, 1/2, ..., 1/n
    with np.errstate(divide="ignore"):  # the whole stake is lost at a value of 0
        wealth = np.log1p(stakes * (x / mean - 1)).sum(axis=1)
    return float(special.logsumexp(wealth) - math.log(len(stakes)))
