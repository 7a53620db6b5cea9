"""One person, any subset: what a swap with somebody who stayed out can tell, in closed form.

The secret is a fresh random part of the pool, and the answer adds up what its units bring (a sum), or averages it (a
mean). Whoever guesses whether unit `u` took part tells two laws apart that differ by a swap of `u` with an outsider.
Nothing is sampled: the bound is a mean over all who may take `u`'s place. It says nothing about finite sets of worlds,
in which swaps do not exist (docs/proofs/adjacent.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = [
    "EVERY_PAIR",
    "Swaps",
    "Told",
    "possible_swaps",
    "quick_success",
    "swap_success",
    "told_by_normal",
    "worst_success",
]

# Success at telling two answers apart, from their distance in noise deviations: concave in the distance.
Told = Callable[[Floats], Floats]

EVERY_PAIR = 20_000  # units up to which every pair of them is looked at
PANEL = 2**18  # pairs at a time
ROUNDING = 1e-12  # what sums of up to a million terms and the normal integral lose, with room to spare


@dataclass(frozen=True, eq=False)
class Swaps:
    """Who may take whose place in a world, and how often nobody of the same stratum can."""

    members: tuple[npt.NDArray[np.intp], ...]  # the units of each stratum; without strata, all
    unmatched: Floats  # for each unit, the probability that its stratum differs in size, with and without it
    smallest: int  # units in the smallest world


@proves("adjacent")
def possible_swaps(n: int, share: Fraction, strata: npt.NDArray[np.intp] | None = None) -> Swaps:
    """What the law of a fresh world says about swaps: `n` units, of which a `share` is drawn."""
    smallest = int(n * share)
    if strata is None:
        members: tuple[npt.NDArray[np.intp], ...] = (np.arange(n, dtype=np.intp),)
    else:
        order = np.argsort(strata, kind="stable").astype(np.intp)
        members = tuple(np.split(order, np.cumsum(np.bincount(strata))[:-1]))
    unmatched = np.zeros(n)
    for units in members:
        over = len(units) * share - int(len(units) * share)
        if over and len(members) > 1 and share != Fraction(1, 2):
            raise InputError(
                f"mode='individual' at rate {share} needs strata whose sizes are multiples of {share.denominator}, or "
                "no strata: what does not divide evenly is dealt out over several strata at once. Use rate=1/2, or "
                "leave units out"
            )
        unmatched[units] = float(over * (1 - over) / (share * (1 - share) * len(units)))
    return Swaps(members, unmatched, smallest)


def told_by_normal(distances: Floats) -> Floats:
    """Under normal noise."""
    return np.asarray(ndtr(distances / 2))


@proves("adjacent")
def swap_success(
    steps: Floats,
    swaps: Swaps,
    beside: Floats,
    units: npt.NDArray[np.intp] | None = None,
    *,
    told: Told = told_by_normal,
) -> Floats:
    """Balanced membership success of the best attacker against each unit (or some `units`), at most.

    Args:
        steps: `(n, r)`, what each unit adds to the answer, in noise standard deviations.
        swaps: who may take whose place.
        beside: how far the answer moves, at most, where no swap is possible.
        units: positions; None for all.
        told: how well two answers are told apart; by default under Gaussian noise.

    Guarantee: for a world drawn by the law of `swaps` and noise of covariance 1 under which answers are told apart no
    better than `told` says, no attacker who knows the pool has a larger balanced success against the unit than this,
    for any rate. Rounded up.
    """
    asked = np.arange(len(steps), dtype=np.intp) if units is None else units
    found = np.full(len(steps), np.nan)
    for members in swaps.members:
        chosen = asked if len(swaps.members) == 1 else np.intersect1d(asked, members)
        others = steps[members]
        middle = others.mean(axis=0)  # distances do not change, and lose fewer digits
        for some, distances in _distances(steps[chosen] - middle, others - middle):
            # The pair of a unit with itself is among them, at a distance that rounding makes 0 or more: told >= 1/2.
            total = told(distances).sum(axis=1) - 0.5
            found[chosen[some]] = total / (len(members) - 1)
    return np.asarray(_with_unmatched(found[asked], swaps.unmatched[asked], told(beside[asked])))


@proves("adjacent")
def quick_success(steps: Floats, swaps: Swaps, beside: Floats, *, told: Told = told_by_normal) -> Floats:
    """A larger bound for all units that looks at no pair: `E Phi(D/2) <= Phi(sqrt(E D^2)/2)`, or as `told` says."""
    found = np.empty(len(steps))
    for members in swaps.members:
        others = steps[members] - steps[members].mean(axis=0)
        squares = np.einsum("ur,ur->u", others, others)
        n = len(members)
        mean_square = (squares + squares.mean()) * (n / (n - 1)) * (1 + ROUNDING)
        found[members] = told(np.sqrt(mean_square))
    return _with_unmatched(found, swaps.unmatched, told(beside))


def worst_success(
    steps: Floats, swaps: Swaps, beside: Floats, enough: float = 1.0, *, told: Told = told_by_normal
) -> float:
    """The largest success over all units, or some value above `enough` as soon as one is found.

    Units are looked at in the order of their quick bound, until it falls below what was found.
    """
    quick = quick_success(steps, swaps, beside, told=told)
    order = np.argsort(-quick, kind="stable").astype(np.intp)
    worst, size, start = 0.0, 16, 0
    while start < len(order) and quick[order[start]] > worst and worst <= enough:
        some = order[start : start + size]
        worst = max(worst, float(swap_success(steps, swaps, beside, some, told=told).max()))
        start, size = start + size, min(2 * size, 1024)
    return worst


def _with_unmatched(swapped: Floats, unmatched: Floats, beside: Floats) -> Floats:
    return np.minimum(1.0, ((1 - unmatched) * swapped + unmatched * beside) * (1 + ROUNDING))


def _distances(some: Floats, others: Floats) -> Iterator[tuple[slice, Floats]]:
    """Distances of some points to all others, a panel at a time, rounded up."""
    squares = np.einsum("ur,ur->u", others, others)
    own = np.einsum("ur,ur->u", some, some)
    # An inner product of r terms errs by less than r + 2 units in the last place of the two norms' product.
    slack = 1 + 4 * (some.shape[1] + 8) * np.finfo(float).eps
    size = max(1, PANEL // len(others))
    for start in range(0, len(some), size):
        rows = slice(start, start + size)
        panel = some[rows] @ others.T
        panel *= -2
        panel += slack * own[rows, None]
        panel += slack * squares
        np.maximum(panel, 0, out=panel)
        yield rows, np.sqrt(panel, out=panel)
