"""What an obfuscation tells about one unit of the pool, for every unit at once and with confidence.

The default is balanced success: the attacker guesses whether a unit named in advance was sampled, and both answers
count alike, at every sampling rate. Beside it: true positives at few false alarms, and information in nats. Every draw
of sample and mixing says something about every unit (proof page: obfuscation-confidence).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate, Wagers, log_term, upper
from leakcap.obfuscation.chi_squares import pair_table
from leakcap.obfuscation.information import log_det_nats, trace_most, trace_nats
from leakcap.obfuscation.limits import FullColumn, full_column, most_told
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.pairs import SwapFactors
from leakcap.obfuscation.several_blocks import blocks_told_apart_quickly, sticks_of_blocks

__all__ = ["ALARMS", "Looked", "Statements", "UnitBounds", "UnitEffort", "certify_units", "look_at_units"]

ALARMS = (0.01, 0.001)  # false positive rates at which true positives are bounded
SLIP = 1e-13  # relative rounding of one factor of a wager's capital, f64
LOOK_EVERY = 16  # draws between looks at the bounds
CONVOLVED = 256  # pairs of laws in several blocks, in a draw: those that tell most


@dataclass(frozen=True)
class UnitEffort:
    """How many draws are made for what, at most; all of a stage are independent and fresh.

    Attributes:
        pilot: draws that place the wagers and certify nothing.
        draws: for everybody.
        again: for those who are above the cap after that; 0: no second stage.
        swaps: partners of each unit in one draw; their mean counts once.
    """

    pilot: int = 8
    draws: int = 1024
    again: int = 0
    swaps: int = 1

    def __post_init__(self) -> None:
        checks.count(2, pilot=self.pilot)
        checks.count(draws=self.draws)
        checks.count(0, again=self.again)
        checks.count(swaps=self.swaps)


@dataclass(frozen=True, eq=False)
class Statements:
    """What is bounded for each unit: hockey sticks of its swaps, then nats by log-determinants and by traces.

    Attributes:
        obfuscated: what is released.
        weights: of the hockey sticks: 1 for balanced success, then one for each of `ALARMS`.
    """

    obfuscated: Obfuscated
    weights: tuple[float, ...] = (1.0,)
    nats: bool = False

    @cached_property
    def column(self) -> FullColumn:
        """How full a column of the mixing is, but for rare ones: those are added in full at the end."""
        return full_column(self.obfuscated.law)

    @cached_property
    def most(self) -> Floats:
        """`(statements, N)`: what no draw exceeds, but for rare columns."""
        law = self.obfuscated.law
        reach = self.obfuscated.reach
        found = [most_told(self.obfuscated, self.column, weight, reach) for weight in self.weights]
        if self.nats:
            rates = law.rates
            found += [_entropy(rates), trace_most(self.obfuscated, rates)]
        return np.array(found)

    def of_draw(self, rng: np.random.Generator, *, swaps: int, units: Ints | None = None) -> Floats:
        """`(statements, units)` of one draw: the mean over the unit's swaps, each cut at `most`."""
        found = self.obfuscated.draw_factors(rng, swaps=swaps, units=units)
        rates = self.obfuscated.law.rates if units is None else self.obfuscated.law.rates[units]
        rows = list(self._told(found))
        if self.nats:
            rows += [log_det_nats(found, rates, self.obfuscated.law.columns)]
            rows += [trace_nats(found, rates, self.obfuscated.law.columns)]
        most = self.most if units is None else self.most[:, units]
        return np.array([np.minimum(values, limit).mean(axis=0) for values, limit in zip(rows, most, strict=True)])

    def _told(self, found: SwapFactors) -> Floats:
        """`(weights, swaps, units)`. With several blocks, who tells most by a quick bound is looked at closely."""
        columns = self.obfuscated.law.columns
        if self.obfuscated.blocks == 1:
            tables = (pair_table(columns, weight) for weight in self.weights)
            return np.array([table(found.wider[..., 0], found.narrower[..., 0]) for table in tables])
        wider, narrower = (logs.reshape(-1, logs.shape[-1]) for logs in (found.wider, found.narrower))
        told = np.array([blocks_told_apart_quickly(wider, narrower, columns, weight=weight) for weight in self.weights])
        close = np.argsort(-told[0], kind="stable")[:CONVOLVED]
        exact = sticks_of_blocks(wider[close], narrower[close], columns, weights=self.weights)
        told[:, close] = np.minimum(told[:, close], exact)
        return told.reshape(len(told), *found.wider.shape[:-1])


@dataclass(frozen=True, eq=False)
class Looked:
    """Means of the statements over some draws, which certify nothing."""

    mean: Floats
    variance: Floats
    draws: int


def look_at_units(statements: Statements, draws: int, rng: np.random.Generator, *, swaps: int = 1) -> Looked:
    """Estimates for every unit."""
    total, squares = _sums(statements.of_draw(rng, swaps=swaps) for _ in range(draws))
    mean = total / draws
    variance = np.maximum(squares / draws - mean**2, 0.0) * draws / max(draws - 1, 1)
    # Few draws tell little about one unit's variance: drawn towards what units of that mean usually have.
    usual = variance.mean(axis=1) / np.maximum((mean**2).mean(axis=1), np.finfo(float).tiny)
    return Looked(mean, (variance + usual[:, None] * mean**2) / 2, draws)


def _sums(values: Iterator[Floats]) -> tuple[Floats, Floats]:
    first = next(values)
    total, squares = first.copy(), first**2
    for value in values:
        total += value
        squares += value**2
    return total, squares


@dataclass(frozen=True, eq=False)
class UnitBounds:
    """Bounds that hold together for every unit of the pool, with probability `1 - gamma` over the draws.

    Attributes:
        success: `(N,)` balanced success at guessing whether the unit was sampled.
        recognised: `(alarms, N)` true positives at the false positive rates `alarms`.
        nats: `(2, N)` information about the unit's membership, by log-determinants and by traces, or None.
        mean_success: of the pool's units, on average.
        alarms: false positive rates.
        draws: made for everybody.
        again: made for those who were looked at again.
        gamma: the probability that a draw was so unlucky that some bound is wrong.
    """

    success: Floats
    recognised: Floats
    nats: Floats | None
    mean_success: float
    alarms: tuple[float, ...]
    draws: int
    again: int
    gamma: float

    @property
    def worst(self) -> float:
        """The largest bound on balanced success of any unit of the pool."""
        return float(self.success.max())


@proves("obfuscation-confidence", "wagers")
def certify_units(
    obfuscated: Obfuscated,
    *,
    effort: UnitEffort,
    gamma: float,
    rng: np.random.Generator,
    cap: float | None = None,
    width: float | None = None,
    alarms: tuple[float, ...] = ALARMS,
    nats: bool = False,
    tick: Callable[[int, int], None] | None = None,
) -> UnitBounds:
    """Bounds for every unit of the pool.

    Guarantee: against an attacker who knows the pool, all rules and the release, but not the sample, the mixing, the
    mask and the noise: for every unit named in advance balanced success is at most `success`, and a test with a false
    positive rate of `alarms` finds it with probability at most `recognised`. All of them hold together, with
    probability `1 - gamma` over the draws made here.

    Args:
        obfuscated: what is released.
        effort: how many draws.
        gamma: failure probability of everything that is returned, together.
        rng: where the draws come from; independent of the release's own randomness.
        cap: stop as soon as everybody's success is at most this. Units above it are looked at again.
        width: stop as soon as everybody's bound on success is this close to the mean of what was seen.
        alarms: false positive rates.
        nats: also bound information, by log-determinants and by traces.
        tick: called with draws made and draws at most.
    """
    checks.fraction(gamma=gamma)
    rough = look_at_units(Statements(obfuscated), effort.pilot, rng, swaps=effort.swaps)
    weights = (1.0, *_weights(float(rough.mean.max()), alarms))
    statements = Statements(obfuscated, weights, nats)
    pilot = look_at_units(statements, effort.pilot, rng, swaps=effort.swaps)
    share = gamma / 2 if effort.again else gamma
    stop = _Stop(cap, width)
    first = _certified(
        statements,
        pilot,
        draws=effort.draws,
        gamma=share,
        rng=rng,
        swaps=effort.swaps,
        stop=stop,
        units=None,
        tick=tick,
    )
    bounds, again = first.bounds, 0
    if effort.again and cap is not None and (0.5 + 0.5 * bounds[0] > cap).any():
        chosen = np.flatnonzero(0.5 + 0.5 * bounds[0] > cap)
        some = Looked(pilot.mean[:, chosen], pilot.variance[:, chosen], pilot.draws)
        second = _certified(
            statements,
            some,
            draws=effort.again,
            gamma=share,
            rng=rng,
            swaps=4 * effort.swaps,
            stop=stop,
            units=chosen,
            tick=tick,
        )
        bounds = bounds.copy()
        bounds[:, chosen], again = np.minimum(bounds[:, chosen], second.bounds), second.draws
    levels = np.array(weights[1:])[:, None] * np.array(alarms)[:, None]
    recognised = np.minimum(1.0, levels + bounds[1 : 1 + len(alarms)])
    return UnitBounds(
        success=np.minimum(0.5 + 0.5 * bounds[0], 1.0),
        recognised=recognised,
        nats=bounds[1 + len(alarms) :] if nats else None,
        mean_success=min(0.5 + 0.5 * first.mean, float((0.5 + 0.5 * bounds[0]).mean())),
        alarms=alarms,
        draws=first.draws,
        again=again,
        gamma=gamma,
    )


@dataclass(frozen=True)
class _Stop:
    """When to stop before all draws are made: allowed at any time, the bounds hold at all of them."""

    cap: float | None
    width: float | None

    @property
    def asked(self) -> bool:
        return self.cap is not None or self.width is not None

    def reached(self, bounds: Floats, means: Floats) -> bool:
        kept = self.cap is not None and bool((bounds <= self.cap).all())
        return kept or (self.width is not None and bool((bounds - means <= self.width).all()))


@dataclass(frozen=True, eq=False)
class _Stage:
    bounds: Floats
    mean: float
    draws: int


def _certified(
    statements: Statements,
    pilot: Looked,
    *,
    draws: int,
    gamma: float,
    rng: np.random.Generator,
    swaps: int,
    stop: _Stop,
    units: Ints | None,
    tick: Callable[[int, int], None] | None,
) -> _Stage:
    """One stage: wagers were placed by other draws, so the bounds hold at whatever draw one stops."""
    most = statements.most if units is None else statements.most[:, units]
    mean, variance, limit = (_with_mean(values) for values in (pilot.mean, pilot.variance, most))
    term = log_term(gamma, len(mean))
    wagers = Wagers.placed(mean, variance, limit, draws, log_term=term)
    base, stake = wagers.base.astype(np.float64), wagers.stake.astype(np.float64)
    capital, total, made = np.zeros(len(base)), np.zeros(most.shape[1]), 0
    while made < draws:
        told = statements.of_draw(rng, swaps=swaps, units=units)
        capital += np.log(base - stake * _with_mean(told))
        made += 1
        if tick is not None:
            tick(made, draws)
        total += told[0]
        if stop.asked and made % LOOK_EVERY == 0:
            bounds = _bounds(capital, wagers, variance, made, term=term)[: most.shape[1]] + statements.column.rare
            if stop.reached(0.5 + 0.5 * bounds, 0.5 + 0.5 * total / made):
                break
    bounds = np.minimum(_bounds(capital, wagers, variance, made, term=term), limit)
    # What rare columns may tell: everything about membership, and no nats beyond those that were not cut.
    rare = np.repeat([statements.column.rare, 0.0], [len(statements.weights), len(most) - len(statements.weights)])
    return _Stage(
        bounds[:-1].reshape(most.shape) + rare[:, None],
        min(1.0, float(bounds[-1]) + statements.column.rare),
        made,
    )


def _with_mean(values: Floats) -> Floats:
    """All statements in a row, and that about the mean over units."""
    return np.append(values.ravel(), values[0].mean())


def _bounds(capital: Floats, wagers: Wagers, variance: Floats, made: int, *, term: float) -> Floats:
    estimate = MeanEstimate.from_wagers(capital, wagers, variance=variance, draws=made, rounding=0.0, slip=SLIP)
    return upper(estimate, term)


def _weights(told: float, alarms: tuple[float, ...]) -> tuple[float, ...]:
    """Slopes of the tradeoff of two normal laws that are told apart as well: all are valid, these near best."""
    if not all(0 < alarm < 1 for alarm in alarms):
        raise InputError("false positive rates must lie strictly between 0 and 1")
    apart = 2 * float(ndtri(0.5 + 0.5 * min(max(told, 1e-6), 0.999)))
    # To quarters of the logarithm, so that tables serve again.
    return tuple(math.exp(min(round(4 * (-apart * float(ndtri(alarm)) - apart**2 / 2)) / 4, 30.0)) for alarm in alarms)


def _entropy(rates: Floats) -> Floats:
    return np.asarray(-rates * np.log(rates) - (1 - rates) * np.log1p(-rates))
