"""Noise for functions whose swaps are sampled: its shape and its scale, from worlds that certify nothing.

What is chosen here promises nothing: it is certified afterwards, on worlds of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.leakage.confidence import MeanEstimate, forecast, log_term
from leakcap.leakage.couplings import MOST, RandomSwaps

__all__ = ["SwapEffort", "aimed_scale", "coupling_shape"]

SHAPED_BY = 512  # units that a shape looks at: the most exposed
SHAPING = 32  # worlds for each of them
ROUNDS = 60
WORK = 2e10  # flops worth spending on a shape
MAX_NUMBERS = 2**24  # that are kept of the steps of these units
HALVINGS = 60
SIGMAS = 2.0  # by which the few who decide may turn out more exposed than they seemed


@dataclass(frozen=True)
class SwapEffort:
    """Worlds for each step, and how many units are followed closely before the noise is certified."""

    spread: int = 16  # for everybody, to see where answers move
    look: int = 48  # for everybody, to find who is exposed
    few: int = 128  # units that decide about the scale, as far as was seen
    aim: int = 512  # for these
    everybody: int = 512  # to certify
    again: int = 4096  # to certify those who decide

    def draws(self, guess: MeanEstimate, room: float) -> tuple[int, int]:
        """Worlds for everybody and for those who are left: where most are near the cap, few draws tell nothing."""
        few = forecast(guess, self.everybody, log_term(1e-6, len(guess.estimate)), sigmas=0.0)
        return (self.again, self.again) if (MOST + few > room).mean() > 0.5 else (self.everybody, self.again)

    @classmethod
    def of(cls, draws: int | None, *, costly: bool) -> SwapEffort:
        """For a number of certifying worlds; `costly` where every swap is a run of the function."""
        again = cls.again if draws is None else draws
        if not costly:
            return cls(everybody=min(cls.everybody, again), again=again, aim=min(cls.aim, again))
        everybody = min(160, again)
        return cls(spread=2, look=8, few=12, aim=min(256, again), everybody=everybody, again=again)


def coupling_shape(source: RandomSwaps, effort: SwapEffort, rng: np.random.Generator) -> Floats:
    """An `(r, r)` covariance that spends noise where single units move the answer most, by their swaps."""
    total = _second_moments(steps for steps, _ in source.steps(effort.spread, rng))
    if len(total) == 1:
        return total
    size, turn = np.linalg.eigh(total)
    scale = np.sqrt(np.maximum(size, 1e-12 * size[-1])) ** 0.5
    exposed = np.zeros(source.worlds.n)
    for steps, whose in source.steps(effort.look, rng):
        exposed += (((steps @ turn) / scale) ** 2).sum(axis=1)[whose]
    number = min(SHAPED_BY, max(1, MAX_NUMBERS // (SHAPING * len(total))), source.worlds.n)
    chosen = np.sort(np.argsort(-exposed, kind="stable")[: min(number, 4 * effort.few)]).astype(np.intp)
    kept = np.stack([steps[whose] for steps, whose in source.steps(min(SHAPING, effort.aim), rng, chosen)], axis=1)
    return _shape_of(kept, total)


def _second_moments(steps: Iterator[Floats]) -> Floats:
    found = [table.T @ table / len(table) for table in steps]
    return np.asarray(np.mean(found, axis=0))


def _shape_of(steps: Floats, start: Floats) -> Floats:
    """`S ~ (sum_u mu_u A_u)^(1/2)`, `A_u` the mean square of unit `u`'s steps, `(u, worlds, r)`; as in `swap_shape`."""
    units, worlds, r = steps.shape
    weight = np.full(units, 1 / units)
    rounds = int(min(ROUNDS, WORK / (4.0 * units * worlds * r**2 + 20.0 * r**3)))
    flat, moved = steps.reshape(-1, r), start
    for _ in range(max(rounds, 1)):
        moved = (flat * np.repeat(weight / worlds, worlds)[:, None]).T @ flat
        size, turn = np.linalg.eigh(moved)
        scale = np.sqrt(np.maximum(size, 1e-12 * size[-1]))
        weight *= ((flat @ turn) ** 2 / scale).sum(axis=1).reshape(units, worlds).mean(axis=1)
        weight /= weight.sum()
    size, turn = np.linalg.eigh(moved)
    return np.asarray((turn * np.sqrt(np.maximum(size, 1e-12 * size[-1]))) @ turn.T)


def aimed_scale(
    source: RandomSwaps,
    shape: Floats,
    *,
    room: Callable[[float], float],
    gamma: float,
    effort: SwapEffort,
    rng: np.random.Generator,
) -> tuple[float, MeanEstimate]:
    """A multiple of the deviations `shape` that will likely be certified, and what it leaves of everybody's success.

    `room` says what success a multiple allows. Units are chosen on some worlds, the multiple on others.
    """
    kept = [_lengths(steps, shape)[whose] for steps, whose in source.steps(effort.look, rng)]
    everybody = np.stack(kept, axis=1)
    rough = _scale(everybody, lambda told: float(told.mean(axis=1).max()), room)
    worst = np.argsort(-(ndtr(everybody / (2 * rough)) - 0.5).mean(axis=1), kind="stable")[: effort.few].astype(np.intp)
    close = np.stack([_lengths(s, shape)[w] for s, w in source.steps(effort.aim, rng, worst)], axis=1)
    # About as many units will be looked at again as come near: all of them, on the careful side.
    term = log_term(gamma / 2, source.worlds.n)
    unmatched = source.swaps.unmatched[worst]

    def expected(told: Floats) -> float:
        found = np.minimum(forecast(_shrunk(told), effort.again, term, sigmas=SIGMAS), MOST)
        return float(((1 - unmatched) * found + unmatched * MOST).max())

    scale = _scale(close, expected, room)
    told = ndtr(everybody / (2 * scale)) - 0.5
    return scale, _mean_of(told)


def _mean_of(told: Floats) -> MeanEstimate:
    """Of some units, in some worlds each."""
    total, squares = told.sum(axis=1), (told**2).sum(axis=1)
    return MeanEstimate.from_sums(total, squares, draws=told.shape[1], span=MOST, rounding=0.0)


def _shrunk(told: Floats) -> MeanEstimate:
    """Means of some units, each drawn towards that of all as far as chance explains how they differ.

    The largest of many estimates is too large: units that are alike would cost noise for nothing.
    """
    seen = _mean_of(told)
    middle, chance = seen.estimate.mean(), seen.variance / seen.draws
    apart = max(float(seen.estimate.var() - chance.mean()), 0.0)
    share = apart / np.maximum(apart + chance, np.finfo(float).tiny)
    # What is left open about a unit, as a number of draws.
    draws = np.minimum(seen.variance / np.maximum(share * chance, np.finfo(float).tiny), 1e9)
    return replace(seen, estimate=middle + share * (seen.estimate - middle), draws=np.maximum(draws, seen.draws))


def _lengths(steps: Floats, shape: Floats) -> Floats:
    return np.asarray(np.linalg.norm(steps / shape, axis=1))


def _scale(lengths: Floats, told_by: Callable[[Floats], float], room: Callable[[float], float]) -> float:
    """The least multiple at which what swaps tell is within the room, by bisection in its logarithm."""

    def kept(log_scale: float) -> bool:
        scale = math.exp(log_scale)
        return 0.5 + told_by(ndtr(lengths / (2 * scale)) - 0.5) <= room(scale)

    low = high = math.log(max(float(lengths.max()), 1e-300))
    step = 1.0
    while not kept(high):
        low, high, step = high, high + step, 2 * step
        if step > 600:
            raise CapError("this cap is too close to a coin flip for so few draws: choose a larger one, or more draws=")
    while kept(low) and low > high - 60:
        low -= 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
        if high - low < 1e-6:
            break
    return math.exp(high)
