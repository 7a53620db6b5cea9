"""Chances of counts, and what inverts them: binomial tails, ends of intervals, two counts judged together.

Everything is rounded to the careful side: chances up, intervals outwards, a search to the end that was checked.
Proof page: audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from leakcap.errors import InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = [
    "SMALLEST",
    "Counts",
    "Curve",
    "at_least",
    "at_most",
    "check_part",
    "checked_counts",
    "first",
    "high_end",
    "joint",
    "largest",
    "low_end",
    "together",
]

Counts = tuple[int, int, int, int]  # found, members, accused, others
Curve = Callable[[Floats], Floats]
SMALLEST = float(np.finfo(np.float64).smallest_normal)  # chances below it are rounded up to it
HARDLY = 1e-12  # relative: by how much ends are moved outwards, more than the error of the incomplete beta function
CLOSE = 0.01  # the search over hypotheses ends this near above the true maximum, in the logarithm
MAX_TRIALS = 2**50


@proves("audit")
def joint(counts: Counts, curve: Curve, start: float = 0.0, level: float = 0.0) -> float:
    """P-value against "TPR <= curve(FPR)": the largest over all FPR of what the two counts say together.

    Never below that maximum. Cells of FPR take the upper chance from their right end and the lower one from their
    left end, and are split until that costs 1 % at most; with a `level`, until it is clear whether it is reached.
    """
    found, members, accused, others = counts
    settled, reached, floor = -math.inf, -math.inf, math.log(level) if level else -math.inf
    nodes = np.linspace(start, 1.0, 33)
    cells = np.stack([nodes[:-1], nodes[1:]])
    for _ in range(64):
        left, right = cells
        found_so_many = _log(at_least(found, members, np.clip(curve(right), 0.0, 1.0)))
        accused_so_few = _log(at_most(accused, others, cells))
        above = together(found_so_many, accused_so_few[0])
        reached = max(reached, float(together(found_so_many, accused_so_few[1]).max()))
        if reached > floor > -math.inf:
            return math.exp(reached)
        still = above > max(reached + CLOSE, settled, floor)
        settled = max(settled, float(above[~still].max(initial=-math.inf)))
        if not still.any():
            return max(math.exp(settled), SMALLEST)
        nodes = left[still] + np.linspace(0.0, 1.0, 9)[:, None] * (right - left)[still]
        nodes[-1] = right[still]
        cells = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()])
    return max(math.exp(max(settled, float(above.max()))), SMALLEST)


def together(one: Floats, other: Floats) -> Floats:
    """Logarithm of one p-value from the logarithms of two independent ones.

    Half of the error goes to their product (Fisher 1925), a quarter to each alone: that the verdict never contradicts
    the ends that are printed.
    """
    both = one + other
    product = math.log(2) + both + np.log1p(-both)
    return np.minimum(0.0, np.minimum(product, math.log(4) + np.minimum(one, other)))


def _log(chance: Floats) -> Floats:
    return np.log(np.maximum(chance, SMALLEST))


def at_least(wins: Any, trials: Any, rate: Any) -> Any:
    """Chance of at least so many wins; rounded up where it is too small for a double."""
    tail = special.betainc(np.maximum(wins, 1), trials - np.maximum(wins, 1) + 1, rate)
    return np.where(wins == 0, 1.0, np.where(np.equal(rate, 0), 0.0, np.maximum(tail, SMALLEST)))


def at_most(wins: Any, trials: Any, rate: Any) -> Any:
    """Chance of at most so many wins; rounded up likewise."""
    if wins == trials:
        return np.ones_like(rate)
    return np.where(np.equal(rate, 1), 0.0, np.maximum(special.betainc(trials - wins, wins + 1, 1 - rate), SMALLEST))


def low_end(wins: Any, trials: Any, side: float) -> Any:
    """Largest rate at which so many wins have chance `side` at most."""
    some = np.where(np.equal(wins, 0), 1.0, wins)
    return np.where(np.equal(wins, 0), 0.0, _rate_at(some, trials - some + 1, side))


def high_end(wins: Any, trials: Any, side: float) -> Any:
    """Smallest rate at which so few wins have chance `side` at most."""
    lost = np.where(np.equal(wins, trials), 1.0, trials - wins)
    # Through the chance of losing, which may be far smaller than the distance of doubles near 1.
    high = np.nextafter(1 - _rate_at(lost, trials - lost + 1, side), 2.0)
    return np.where(np.equal(wins, trials), 1.0, np.minimum(1.0, high))


def _rate_at(a: Any, b: Any, side: float) -> Any:
    """Where the incomplete beta function reaches `side`, or hardly below: seen not to be above.

    0 where that is too small for a double: for less than one win, as forecasts ask for, it is about `side^(1 / a)`.
    """
    rate = special.betaincinv(a, b, side)
    rate = np.where(rate <= SMALLEST, 0.0, rate)
    step = np.full_like(rate, HARDLY)
    for _ in range(12):  # the inverse is less exact for millions of trials
        lower = rate * (1 - step)
        above = ~(special.betainc(a, b, lower) <= side)
        if not above.any():
            return lower
        step = np.where(above, 8 * step, step)
    raise NumericalError("an interval could not be computed; nothing is said about these counts")


def largest(true_at: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """A point where it was seen to be true, within `precision` below the end of that; `low` where it never is."""
    if true_at(high):
        return high
    while high - low > precision:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if true_at(middle) else (low, middle)
    return low


def first(enough: Callable[[float], bool]) -> int | None:
    """Smallest number of trials that is enough, or None."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MAX_TRIALS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def check_part(part: str, some: int, whole: str, every: int) -> None:
    """Refuse a part that is larger than its whole, and a whole of nothing."""
    if checks.count(at_least=0, **{whole: every}) == 0:
        raise InputError(f"there are no {whole} among the judged trials: judge more trials, or a unit that has both")
    if checks.count(at_least=0, **{part: some}) > every:
        raise InputError(f"{part} must not exceed {whole}")


def checked_counts(found: int, members: int, accused: int, others: int) -> Counts:
    """The four counts of an attack at a threshold, each part within its whole."""
    check_part("found", found, "members", members)
    check_part("accused", accused, "others", others)
    return found, members, accused, others
