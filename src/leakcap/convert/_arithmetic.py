"""The arithmetic under `convert`: checked arrays, Bernoulli divergences and their roots, on the safe side of rounding.

Every divergence here is a sum of terms that are never negative, so it keeps its *relative* accuracy where the
textbook formula cancels: next to the prior, and at priors like 1e-300. `at_least` takes off more than the rounding
error, so a point that passes is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.errors import InputError

__all__ = [
    "TINY",
    "FloatArray",
    "Numbers",
    "at_least",
    "bernoulli",
    "budget",
    "channel",
    "counts",
    "down",
    "log_comb",
    "nonnegative",
    "order",
    "plain",
    "prior",
    "probability",
    "rate",
    "ratio_up",
    "root_above",
    "root_f",
    "sum_up",
    "up",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = float | FloatArray

TINY = float(np.finfo(np.float64).tiny)
SLACK = 2.0**-45  # relative; the error analysis in docs/proofs/currency.md stays below half of it
FLOOR = 1e-300  # absolute; covers underflow, where relative accuracy ends
_ROUND = 2.0**-48  # sixteen units in the last place: more than a dozen elementary operations lose

# Steps from a guess, in units of its last place: a root is found between two of them, however good the guess is.
LADDER = np.concatenate([-(8 ** np.arange(16)), 8 ** np.arange(16)])

# phi(t) = (1+t) log(1+t) - t with s = t/(2+t) is 2s^2/(1-s) (1 + (1+s)(s/3 + s^3/5 + ...)); |s| <= 1/7 needs ten terms.
_SERIES = [1.0 / (2 * j + 3) for j in range(10)]


def up(value: FloatArray, most: float = np.inf) -> FloatArray:
    """A number surely above the exact result of a few correctly rounded operations, clipped at `most`."""
    return np.minimum(np.nextafter(value * (1 + _ROUND), np.inf), most)


def down(value: FloatArray) -> FloatArray:
    """A number surely below the exact result of a few correctly rounded operations on numbers above 0."""
    return np.maximum(np.nextafter(value * (1 - _ROUND), -np.inf), 0)


def at_least(divergence: FloatArray) -> FloatArray:
    """What the exact divergence surely reaches, given the computed one."""
    return divergence * (1 - SLACK) - FLOOR


def budget(divergence: FloatArray) -> FloatArray:
    """A budget that `root_above` turns back into no more than it came from, whatever the rounding."""
    return np.maximum(divergence * (1 - 4 * SLACK) - 4 * FLOOR, 0)


def excess(shift: FloatArray, base: FloatArray) -> FloatArray:
    """`(base + shift) log(1 + shift/base) - shift`, at least 0, to relative accuracy; 0 where `base` is 0."""
    t = np.divide(shift, base, out=np.zeros(shift.shape), where=base > 0)
    t = np.maximum(t, -1.0)
    close = np.abs(t) <= 0.25
    s = np.where(close, t, 0.0)
    s /= 2 + s
    square = s * s
    series = np.full_like(s, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        series *= square
        series += coefficient
    near = base * (2 * square / (1 - s)) * (1 + (1 + s) * s * series)
    far = special.xlog1py(base * (1 + t), t) - base * t
    result: FloatArray = np.where(close, near, far)
    return result


def bernoulli(shift: FloatArray, base: FloatArray, rest: FloatArray) -> FloatArray:
    """KL(Bern(base + shift) || Bern(base)), where `rest` is 1 - base."""
    one, other = excess(*_together([shift, -shift], [base, rest]))
    return one + other


def channel(weight: FloatArray, rise: FloatArray, fall: FloatArray, base: FloatArray, rest: FloatArray) -> FloatArray:
    """Mutual information of two bits: the first is 1 with probability `weight`, the second with probability `base`.

    The second bit's probability is `base + rise` when the first bit is 1, and `base - fall` when it is 0.
    """
    told, told_not, silent, silent_not = excess(*_together([rise, -rise, -fall, fall], [base, rest, base, rest]))
    return weight * (told + told_not) + (1 - weight) * (silent + silent_not)


def _together(*rows: list[FloatArray]) -> list[FloatArray]:
    """Each list as one array, all of one shape: on few numbers a call costs more than what it computes."""
    shape = np.broadcast_shapes(*(one.shape for row in rows for one in row))
    made = [np.empty((len(row), *shape)) for row in rows]
    for array, row in zip(made, rows, strict=True):
        for place, one in enumerate(row):
            array[place] = one
    return made


def root_above(
    lower: Callable[[FloatArray], FloatArray],
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    limit: FloatArray,
    near: FloatArray | None = None,
) -> FloatArray:
    """The least number found in `[low, high]` where `lower` reaches `limit`, else `high`; `low` where the limit is 0.

    `lower` must stay below a divergence that does not fall on `[low, high]`: then no point above the answer keeps
    the limit. The search runs on the integers behind the doubles, which are spread evenly over all magnitudes, until
    the bracket holds two neighbours; the upper one has been checked. It asks for several points at once where there
    are few roots to find: a call costs more than a point. `near` is a guess, around which it asks first.
    """
    left, right, limit = (np.array(each, dtype=np.float64) for each in np.broadcast_arrays(low, high, limit))
    start = left.copy()
    under, over = left.view(np.int64), right.view(np.int64)  # the same memory, read as integers
    parts = max(2, min(64, 1024 // max(1, limit.size)))
    cuts = np.arange(1, parts).reshape(-1, *(1 for _ in limit.shape))
    around = None if near is None else np.ascontiguousarray(near).view(np.int64)
    while (wide := over - under > 1).any():
        if around is not None:
            points, around = np.clip(around + LADDER.reshape(-1, *(1 for _ in limit.shape)), under, over), None
        else:
            share, rest = np.divmod(over - under, parts)
            points = under + cuts * share + cuts * rest // parts
        asked = wide & (points > under) & (points < over)
        enough = lower(points.view(np.float64)) >= limit
        # Brackets only ever shrink to points that have been asked: the least that is enough, the largest below that.
        over[...] = np.where(asked & enough, points, over).min(axis=0)
        under[...] = np.where(asked & (points < over), points, under).max(axis=0)
    return np.where(limit == 0, start, right)


def root_f(limit: FloatArray, prior: FloatArray, f: Callable[[FloatArray], npt.ArrayLike]) -> FloatArray:
    """The root above `prior` of `D_f(Bern(a) || Bern(prior)) = limit`, for a convex `f` with f(1) = 0, rounded up."""
    check_convex(f)

    def at(points: FloatArray) -> FloatArray:
        return np.asarray(f(points), dtype=np.float64)

    base = np.maximum(prior, TINY)
    rest = 1 - base

    def lower(a: FloatArray) -> FloatArray:
        inside, outside = a / base, (1 - a) / rest
        # Convexity bounds the slope, so the harm of rounding: |x f'(x)| <= max(|f(2x) - f(x)|, 2 |f(x) - f(x/2)|).
        size = sum(base * abs(at(inside * by)) + rest * abs(at(outside * by)) for by in (0.5, 1.0, 2.0))
        value = base * at(inside) + rest * at(outside) - SLACK * size
        return np.where(np.isfinite(value), value, -np.inf)  # an overflow proves nothing

    with np.errstate(all="ignore"):
        root = root_above(lower, base, 1.0, limit)
    return np.where(limit == 0, prior, root)


def check_convex(f: Callable[[FloatArray], npt.ArrayLike]) -> None:
    """Refuse what is clearly no generator of an f-divergence, on a grid from 2^-8 to 2^8."""
    grid = 2.0 ** np.linspace(-8, 8, 33)
    heights = np.asarray(f(grid), dtype=np.float64)
    if heights.shape != grid.shape or not np.isfinite(heights).all():
        raise InputError("f must turn an array of positive numbers into finite numbers, one for each")
    slopes = np.diff(heights) / np.diff(grid)
    if (np.diff(slopes) < -1e-9 * np.abs(slopes).max()).any():
        raise InputError("f must be convex: the data processing inequality needs it")
    if abs(heights[16]) > 1e-12 * np.abs(heights).max():
        raise InputError("f must be 0 at 1: subtract f(1)")


def log_comb(n: int, k: IntArray) -> FloatArray:
    """Logarithm of n choose k."""
    logs = special.gammaln(n + 1) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    return np.asarray(logs, dtype=np.float64)


def sum_up(n: int, log_terms: FloatArray) -> float:
    """A probability from the logarithms of its terms, built from `log_comb` of at most `n`; rounded up, never 0."""
    margin = 2.0**-47 * (special.gammaln(n + 1) + n + 1)  # nine logarithms of at most log n!, and their sum
    return float(min(1.0, max(TINY, np.exp(log_terms).sum() * (1 + margin))))


def ratio_up(part: int, whole: int) -> float:
    """The least double that is not below part/whole."""
    share = int(part) / int(whole)
    return share if Fraction(share) >= Fraction(int(part), int(whole)) else math.nextafter(share, 1.0)


def plain(value: FloatArray) -> Numbers:
    """Plain numbers in, a plain number out."""
    return float(value) if np.ndim(value) == 0 else value


def _numbers(
    value: dict[str, npt.ArrayLike], holds: Callable[[FloatArray], npt.NDArray[np.bool_]], rule: str
) -> FloatArray:
    ((name, given),) = value.items()
    array = np.asarray(given)
    exotic = array.dtype == object and all(isinstance(one, Real) for one in array.flat)  # fractions, huge integers
    if array.dtype.kind not in "iuf" and not exotic:
        raise InputError(f"{name} must be a number or an array of numbers")
    numbers: FloatArray = array.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    if not holds(numbers).all():  # comparisons with NaN are false
        raise InputError(f"{name} must be {rule}")
    return np.asarray(numbers)


def nonnegative(**value: npt.ArrayLike) -> FloatArray:
    return _numbers(value, lambda x: (x >= 0) & np.isfinite(x), "finite, 0 or above")


def probability(**value: npt.ArrayLike) -> FloatArray:
    return _numbers(value, lambda x: (x >= 0) & (x <= 1), "a probability from 0 to 1")


def prior(**value: npt.ArrayLike) -> FloatArray:
    # A prior of 0 is nearly always an underflow: refused, because it would be answered with "no success ever".
    return _numbers(value, lambda x: (x > 0) & (x <= 1), "a probability above 0 and at most 1")


def rate(**value: npt.ArrayLike) -> FloatArray:
    return _numbers(value, lambda x: (x >= TINY) & (x < 1), "strictly between 0 and 1")


def order(**value: npt.ArrayLike) -> FloatArray:
    return _numbers(value, lambda x: x > 1, "above 1")


def counts(least: int = 1, **value: npt.ArrayLike) -> IntArray:
    ((name, given),) = value.items()
    array = np.asarray(given)
    if array.dtype.kind not in "iu" or (array.astype(np.int64) < least).any():
        raise InputError(f"{name} must be a whole number of at least {least}")
    return array.astype(np.int64)
