"""Noise for functions whose swaps are sampled: its shape and its scale, from worlds that certify nothing.

What is chosen here promises nothing: it is certified afterwards, on worlds of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtr

from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.leakage.confidence import MeanEstimate, forecast, log_term
from leakcap.leakage.couplings import MOST, RandomSwaps, SwapSteps, lengths_of

__all__ = ["Aim", "SwapEffort", "aimed_scale", "coupling_shape"]

SHAPED_BY = 512  # units that a shape looks at: the most exposed
SHAPING = 32  # worlds for each of them
ROUNDS = 60
WORK = 2e10  # flops worth spending on a shape
MAX_NUMBERS = 2**24  # that are kept of the steps of these units
HALVINGS = 60
CROWDED = 0.25  # share of units near the cap above which all of them get as many draws
COSTLY = 4096  # worlds for those who decide, where every swap is a run of the function
SIGMAS = 2.5  # by which the few who decide may turn out more exposed than they seemed


@dataclass(frozen=True)
class SwapEffort:
    """Worlds for each step, and how many units are followed closely before the noise is certified."""

    spread: int = 8  # for everybody, to see where answers move
    look: int = 32  # for everybody, to find who is exposed
    few: int = 64  # units that decide about the scale, as far as was seen
    aim: int = 1024  # for these
    everybody: int = 512  # to certify
    again: int = 3072  # to certify those who decide

    @property
    def alike(self) -> int:
        """Worlds for everybody where most are near the cap: few of them tell nothing then."""
        return max(self.everybody, self.again // 2)

    @classmethod
    def of(cls, draws: int | None, *, costly: bool) -> SwapEffort:
        """For a number of certifying worlds; `costly` where every swap is a run of the function."""
        again = draws or (COSTLY if costly else cls.again)
        if not costly:
            return cls(everybody=min(cls.everybody, again), again=again, aim=min(cls.aim, again))
        everybody = min(160, again)
        return cls(spread=2, look=8, few=12, aim=min(256, again), everybody=everybody, again=again)


@dataclass(frozen=True, eq=False)
class Aim:
    """Noise that will likely be certified."""

    source: RandomSwaps
    scale: float
    seen: MeanEstimate  # what it leaves of everybody's success
    draws: tuple[int, int]  # worlds to certify with, for everybody and for those who are left


def coupling_shape(source: RandomSwaps, effort: SwapEffort, rng: np.random.Generator) -> Floats:
    """An `(r, r)` covariance that spends noise where single units move the answer most, by their swaps."""
    total = _second_moments(moved.steps for moved in source.steps(effort.spread, rng))
    if len(total) == 1:
        return total
    size, turn = np.linalg.eigh(total)
    scale = np.sqrt(np.maximum(size, 1e-12 * size[-1])) ** 0.5
    exposed = np.zeros(source.worlds.n)
    for moved in source.steps(effort.look, rng):
        exposed += (((moved.steps @ turn) / scale) ** 2).sum(axis=1)[moved.whose].sum(axis=0)
    number = min(SHAPED_BY, max(1, MAX_NUMBERS // (SHAPING * len(total))), source.worlds.n)
    chosen = np.sort(np.argsort(-exposed, kind="stable")[: min(number, 4 * effort.few)]).astype(np.intp)
    kept = [moved.steps[moved.whose[0]] for moved in source.steps(min(SHAPING, effort.aim), rng, chosen)]
    return _shape_of(np.stack(kept, axis=1), total)


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
) -> Aim:
    """A multiple of the deviations `shape` that will likely be certified, and with how many worlds.

    `room` says what success a multiple allows. Units are chosen on some worlds, the multiple on others.
    """
    look = max(8, min(effort.look, MAX_NUMBERS // (2 * source.worlds.n)))
    looked = list(source.steps(look, rng))
    everybody = _lengths(looked, shape)
    if source.several:
        source = source.ordered(_influence(looked, shape))
    rough = _scale(everybody[:, :8], lambda told: float(told.mean(axis=1).max()), room, within=0.05)
    exposed = _told(everybody, rough).mean(axis=1)
    worst = np.argsort(-exposed, kind="stable")[: effort.few].astype(np.intp)
    close = _lengths(source.steps(effort.aim, rng, worst), shape)
    # About as many units will be looked at again as come near: all of them, on the careful side.
    term, unmatched = log_term(gamma / 2, source.worlds.n), source.swaps.unmatched[worst]

    def expected(told: Floats, draws: int) -> float:
        found = np.minimum(forecast(_shrunk(told), draws, term, sigmas=SIGMAS), MOST)
        return float(((1 - unmatched) * found + unmatched * MOST).max())

    draws = effort.everybody, effort.again
    scale = _scale(close, partial(expected, draws=draws[1]), room)
    seen = _guessed(_told(everybody, scale))
    if (MOST + forecast(seen, draws[0], term, sigmas=0.0) > room(scale)).mean() > CROWDED:
        draws = effort.alike, effort.alike
        scale = _scale(close, partial(expected, draws=draws[0]), room)
        seen = _guessed(_told(everybody, scale))
    return Aim(source, scale, seen, draws)


def _mean_of(told: Floats) -> MeanEstimate:
    """Of some units, in some worlds each."""
    total, squares = told.sum(axis=1), (told**2).sum(axis=1)
    return MeanEstimate.from_sums(total, squares, draws=told.shape[1], span=MOST, rounding=0.0)


def _guessed(told: Floats) -> MeanEstimate:
    """The same with variances drawn towards what units of that mean usually have: some draws tell little about them."""
    seen = _mean_of(told)
    usual = float(seen.variance.mean() / max(float((seen.estimate**2).mean()), np.finfo(float).tiny))
    return replace(seen, variance=(seen.variance + usual * seen.estimate**2) / 2)


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
    estimate = middle + share * (seen.estimate - middle)
    # Wagers are about what is left between the mean and the most that a swap can tell.
    span = float(MOST - estimate.max())
    return replace(seen, estimate=estimate, draws=np.maximum(draws, seen.draws), span=span)


def _influence(looked: list[SwapSteps], shape: Floats) -> Floats:
    """`(units,)`: where everybody pulls the answer, along the coordinate that moves most."""
    most = int(np.argmax(sum(((moved.steps / shape) ** 2).mean(axis=0) for moved in looked)))
    found = np.zeros(len(looked[0].inside))
    for moved in looked:
        found += np.where(moved.inside, -1.0, 1.0) * moved.steps[:, most][moved.whose].sum(axis=0)
    return found


def _lengths(looked: Iterable[SwapSteps], shape: Floats) -> Floats:
    """`(units, draws, swaps)`."""
    return np.stack([lengths_of(moved, shape)[moved.whose] for moved in looked], axis=-1).transpose(1, 2, 0)


def _told(lengths: Floats, scale: float) -> Floats:
    """`(units, draws)`: the mean of what the swaps of one draw tell."""
    return np.asarray((ndtr(lengths / (2 * scale)) - 0.5).mean(axis=2))


def _scale(
    lengths: Floats, told_by: Callable[[Floats], float], room: Callable[[float], float], *, within: float = 1e-3
) -> float:
    """The least multiple at which what swaps tell is within the room, by bisection in its logarithm."""

    def kept(log_scale: float) -> bool:
        scale = math.exp(log_scale)
        return 0.5 + told_by(_told(lengths, scale)) <= room(scale)

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
        if high - low < within:
            break
    return math.exp(high)
