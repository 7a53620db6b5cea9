"""The least noise under which no swap of two people tells more than a cap allows.

The bound of `leakage/adjacent.py` is exact and falls as noise grows, so the scale is a plain bisection. The shape looks
at people: `E D^2` over the swaps of one unit is `tr(S^-1 A_u)`, and the cheapest covariance that keeps it equal for the
most exposed units is `S ~ (sum_u mu_u A_u)^(1/2)`, by multiplicative updates of the weights `mu`. A shape promises
nothing: the bound is computed for whatever noise is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.swaps import EVERY_PAIR, Swaps, Told, quick_success, swap_success, worst_success
from leakcap.noise.laws import NORMAL, Law

__all__ = ["LeastNoise", "least_noise", "swap_shape"]

ROUNDS, FEWEST = 100, 10
WORK = 3e10  # flops worth spending on a shape
SHAPED_BY = 4096  # units that a shape looks at: the most exposed
HALVINGS = 48
REACH = 1e6  # noise standard deviations that an answer may be long


@dataclass(frozen=True, eq=False)
class LeastNoise:
    """Noise deviations along each coordinate, and what was proven for them."""

    deviations: Floats
    exposure: Floats  # for every unit
    distance: float  # of the sampler from the ideal one; it is in `exposure` already


@proves("adjacent")
def least_noise(
    steps: Floats,
    apart: Floats,
    swaps: Swaps,
    reach: Floats,
    cap: float,
    shape: Floats,
    floor: float = 0.0,
    law: Law = NORMAL,
) -> LeastNoise:
    """The least multiple of `shape` that keeps the membership success of every unit at or below `cap`.

    Args:
        steps: `(n, r)`, what each unit adds to the answer, around the mean of all.
        apart: `(r,)`, that mean where an answer moves by it when a unit is left out (sums), otherwise zeros.
        swaps: who may take whose place.
        reach: `(r,)`, how long the coordinates of an answer may be.
        cap: the largest success allowed.
        shape: `(r,)` deviations, up to a factor.
        floor: least deviation in every direction.
        law: of the noise.
    """
    alone = steps + apart

    def deviations(log_scale: float) -> Floats:
        return np.maximum(math.exp(log_scale) * shape, floor)

    def beside(deviation: Floats) -> Floats:
        """How far an answer moves where nobody can take a unit's place: to the farthest, or by the unit itself."""
        length = np.linalg.norm(steps / deviation, axis=1)
        return np.asarray(np.maximum(length + length.max(), np.linalg.norm(alone / deviation, axis=1)))

    def distance(deviation: Floats) -> float:
        # An answer is rounded when it is added up, divided and scaled, which the distance allows for once.
        return law.sampler_distance(len(shape), 4 * float((reach / deviation).max()))

    def kept(log_scale: float) -> bool:
        deviation = deviations(log_scale)
        room = cap - distance(deviation)
        return worst_success(steps / deviation, swaps, beside(deviation), room, told=law.success) <= room

    # The grid on which answers leave is fine enough for answers of this length; less noise would need a finer one.
    low = math.log((reach / shape).max() / REACH)
    found = low if kept(low) else _first(kept, low)
    chosen = deviations(found)
    points, far = steps / chosen, beside(chosen)
    every = swap_success if len(steps) <= EVERY_PAIR else _sharp_where_needed
    exposure = np.minimum(1.0, every(points, swaps, far, told=law.success) + distance(chosen))
    return LeastNoise(chosen, exposure, distance(chosen))


def swap_shape(steps: Floats, swaps: Swaps) -> Floats:
    """An `(r, r)` covariance that spends noise where single units move the answer most.

    Where finding it would cost too much, the shape that the spread of all units gives.
    """
    spreads = np.empty((len(swaps.members), steps.shape[1], steps.shape[1]))
    stratum = np.empty(len(steps), dtype=np.intp)
    centred = np.empty_like(steps)
    for s, members in enumerate(swaps.members):
        centred[members] = steps[members] - steps[members].mean(axis=0)
        spreads[s] = centred[members].T @ centred[members] / len(members)
        stratum[members] = s
    exposed = _exposed(centred, stratum, spreads, spreads.mean(axis=0))
    chosen = np.argsort(-exposed, kind="stable")[:SHAPED_BY]
    some, where = centred[chosen], stratum[chosen]
    weight = np.full(len(some), 1 / len(some))
    r = steps.shape[1]
    rounds = int(min(ROUNDS, WORK / (4.0 * len(some) * r**2 + 20.0 * (1 + len(spreads)) * r**3)))
    for _ in range(rounds if rounds >= FEWEST else 1):
        shares = np.bincount(where, weight, len(spreads))
        moved = (some * weight[:, None]).T @ some + np.tensordot(shares, spreads, 1)
        weight *= _exposed(some, where, spreads, moved)
        weight /= weight.sum()
    size, turn = np.linalg.eigh(moved)
    return np.asarray((turn * np.sqrt(np.maximum(size, 1e-14 * size[-1]))) @ turn.T)


def _exposed(centred: Floats, stratum: npt.NDArray[np.intp], spreads: Floats, moved: Floats) -> Floats:
    """`tr(S^-1 A_u)` for `S = moved^(1/2)`: the mean square distance of a unit's swaps."""
    size, turn = np.linalg.eigh(moved)
    size = np.sqrt(np.maximum(size, 1e-14 * size[-1]))
    others = np.array([((spread @ turn * turn).sum(axis=0) / size).sum() for spread in spreads])
    return np.asarray(((centred @ turn) ** 2 / size).sum(axis=1) + others[stratum])


def _first(kept: Callable[[float], bool], low: float) -> float:
    """Where `kept` begins to be true, by bisection, on the true side."""
    step = 1.0
    while not kept(low + step):
        low, step = low + step, 2 * step
        if step > 600:
            raise CapError("this cap is too close to a coin flip: choose a larger one")
    high = low + step
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if high - low < 1e-9:
            break
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def _sharp_where_needed(points: Floats, swaps: Swaps, far: Floats, *, told: Told) -> Floats:
    """The quick bound for all units of a large pool, and the sharp one for those that might be the most exposed."""
    found = quick_success(points, swaps, far, told=told)
    worst = worst_success(points, swaps, far, told=told)
    sharp = np.flatnonzero(found > worst).astype(np.intp)
    found[sharp] = swap_success(points, swaps, far, sharp, told=told)
    return np.asarray(np.minimum(found, worst))
