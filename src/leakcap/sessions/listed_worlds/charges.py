"""What an answer costs: for every unit the least charge after which its potential does not rise on average.

The inequality of docs/proofs/clock.md is checked at the very charge that is taken, for all units and cells; how the
charge was found does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, xlogy

from leakcap.custody.ledger.accounts import TICKS
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.listed_worlds.potentials import (
    InformationClock,
    MembershipClock,
    RecognitionClock,
    WeighedClock,
    mistakes,
)
from leakcap.sessions.listed_worlds.prospects import Prospect

__all__ = [
    "REFUSED",
    "TICKS",
    "Clocks",
    "Ticks",
    "charges",
    "information_charges",
    "leaned",
    "raised",
    "whole_ticks",
]

Ticks = npt.NDArray[np.int64]
REFUSED = np.iinfo(np.int64).max  # more than any clock shows: the answer cannot be paid for
STEPS, PATIENT = 200, 8  # of a search in whole ticks: far more than halving needs; before it is halved at all


@dataclass(frozen=True)
class Clocks:
    """The rule of a session: one row of clocks for every potential."""

    potentials: Sequence[WeighedClock | InformationClock]

    @property
    def rows(self) -> int:
        return len(self.potentials)

    @property
    def leaning(self) -> bool:
        """Whether clocks may lean: nats only add up."""
        return not any(isinstance(potential, InformationClock) for potential in self.potentials)

    def price(self, prospect: Prospect, left: Ticks) -> Ticks:
        """Charges in ticks, `(potentials, units)`; `REFUSED` where what is left does not pay for the answer."""
        found = np.empty_like(left)
        for row, potential in enumerate(self.potentials):
            if isinstance(potential, InformationClock):
                found[row] = information_charges(potential, prospect, left[row])
            else:
                found[row] = charges(potential, prospect, left[row])
        return found


@proves("clock")
def charges(potential: WeighedClock, prospect: Prospect, left: Ticks) -> Ticks:
    """The least number of ticks for every unit, at least 1; `REFUSED` for all if one of them cannot pay.

    Guarantee: with the charge taken, and what is left leaned, the mean over the answer's cells of the weighed mistakes
    is at least what it is now, less three times the rounding error of the sums. So no answer raises the mean of the
    potential by more.
    """
    missing, accusing = potential.weights
    pay = _Pay(missing * prospect.inside, accusing * prospect.outside, potential, prospect.lean)
    # Equal up to rounding is equal: where a unit is as good as known, what is left of its clock changes no digit.
    now = mistakes(missing * prospect.members, accusing * prospect.others, _shown(potential, left))
    target = now * (1 - prospect.rounding)
    found = np.full(len(left), REFUSED, dtype=np.int64)
    if not ((left > 0) & (pay.floor() >= target)).all():
        return found
    mean, _ = pay.at(np.arange(len(left)), left - 1)
    cheap = mean >= target
    found[cheap] = 1
    units = np.flatnonzero(~cheap)
    low, high = np.ones(len(units), dtype=np.int64), left[units].copy()  # low does not pay, high does
    trial = _first(prospect, units, potential.start)
    for step in range(STEPS):
        busy = np.flatnonzero(high - low > 1)
        if not len(busy):
            break
        trial[busy] = np.clip(trial[busy], low[busy] + 1, high[busy] - 1)
        some, tried = units[busy], trial[busy].astype(np.int64)
        mean, slope = pay.at(some, left[some] - tried)
        lacking = target[some] - mean
        pays = lacking <= 0
        high[busy[pays]] = tried[pays]
        low[busy[~pays]] = tried[~pays]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apart = np.maximum(np.sqrt(_shown(potential, left[some] - tried)) - lacking / slope, 0.0)
            newton = left[some] - apart**2 / potential.start * TICKS
        middle = (low[busy] + high[busy]) // 2
        if step < PATIENT or step % 2:  # usually it ends in six steps; where all is flat, halving does
            middle = np.where(_inside(newton, low[busy], high[busy]), np.ceil(newton), middle)
        trial[busy] = middle
    found[units] = high
    return found


def _inside(newton: Floats, low: Ticks, high: Ticks) -> npt.NDArray[np.bool_]:
    """Where Newton's method is of use: between the ends, or just beside one that it agrees with."""
    return np.isfinite(newton) & (newton >= low) & (newton <= high)


def _shown(potential: WeighedClock, ticks: Ticks) -> Floats:
    """What a clock shows: the number that charges before and after an answer agree on."""
    return potential.start * (ticks / TICKS)


def leaned(ticks: Ticks, lean: Floats | None) -> Ticks:
    """What clocks show after an answer that leaves them with so many ticks upright."""
    return ticks if lean is None else np.floor(ticks * lean).astype(np.int64)


def _first(prospect: Prospect, units: Ints, start: float) -> Floats:
    """The charge of small steps: the variance of the posterior over the square of that of the bit."""
    cells = (prospect.inside + prospect.outside)[:, units]
    moved = prospect.inside[:, units] - cells * prospect.members[units]
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(cells > 0, moved**2 / cells, 0.0).sum(axis=0)
        share = step / (prospect.members[units] * prospect.others[units]) ** 2 / start
    return np.ceil(np.nan_to_num(share, nan=0.5, posinf=1.0) * TICKS)


class _Pay:
    """The weighed mistakes after an answer, on average over its cells, as a function of what clocks show then."""

    def __init__(self, inside: Floats, outside: Floats, potential: WeighedClock, lean: Floats | None) -> None:
        self.inside, self.outside, self.potential, self.lean = inside, outside, potential, lean
        with np.errstate(divide="ignore", invalid="ignore"):
            self.turn = np.log(inside) - np.log(outside)
        self.known = ~((inside > 0) & (outside > 0))
        self.turn[self.known] = 0.0

    def floor(self) -> Floats:
        """With nothing left."""
        return np.asarray(np.minimum(self.inside, self.outside).sum(axis=0))

    def at(self, units: Ints, ticks: Ticks) -> tuple[Floats, Floats]:
        """The mean for some units, and how much it falls with the square root of what clocks show upright."""
        everybody = len(units) == self.inside.shape[1]
        columns = slice(None) if everybody else units
        inside, outside, turn = self.inside[:, columns], self.outside[:, columns], self.turn[:, columns]
        known = self.known[:, columns]
        lean = None if self.lean is None else self.lean[:, columns]
        left = _shown(self.potential, leaned(ticks, lean))
        apart = np.sqrt(left)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            turned = turn / apart
            found = inside * ndtr(-apart / 2 - turned) + outside * ndtr(turned - apart / 2)
            slope = inside * np.exp(-((apart / 2 + turned) ** 2) / 2) * (1.0 if lean is None else np.sqrt(lean))
        least = np.minimum(inside, outside)
        found = np.where(known | (left <= 0), least, np.minimum(found, least))
        slope[known] = 0.0
        return np.asarray(found.sum(axis=0)), np.asarray(slope.sum(axis=0) / np.sqrt(2 * np.pi))


@proves("clock")
def information_charges(potential: InformationClock, prospect: Prospect, left: Ticks) -> Ticks:
    """What an answer tells about each unit on average, in ticks, rounded up; `REFUSED` where more than is left."""
    nats = np.zeros(len(left))
    cells = prospect.inside + prospect.outside
    for joint, before in ((prospect.inside, prospect.members), (prospect.outside, prospect.others)):
        with np.errstate(divide="ignore", invalid="ignore"):
            nats += xlogy(joint, np.where(joint > 0, joint / (cells * before), 1.0)).sum(axis=0)
    nats = np.maximum(nats, 0.0) + 8 * prospect.rounding
    return whole_ticks(nats / potential.start, left)


def whole_ticks(share: Floats, left: Ticks) -> Ticks:
    """A share of a clock in ticks, rounded up, at least 1; `REFUSED` where it is more than is left, or no number."""
    ticks = np.maximum(np.ceil(share * TICKS), 1.0)
    pays = ticks <= left
    return np.where(pays, np.where(pays, ticks, 0.0).astype(np.int64), REFUSED)


@proves("clock")
def raised(potential: MembershipClock | RecognitionClock, shares: Floats, left: Ticks, gain: float) -> Ticks:
    """What clocks show after the cap was raised by `gain`, in ticks of the same clock: at least what they show now.

    Guarantee: no unit's potential rises by more than `gain`, so that the larger cap is kept. Clocks of units about
    which something is known gain more or less than a fresh one would: to add the difference of two starts is wrong.
    """
    missing, accusing = potential.weights
    inside, outside = missing * shares, accusing * (1 - shares)
    allowed = mistakes(inside, outside, _shown(potential, left)) - gain * (1 - 1e-9)
    low, high = left.copy(), np.full(len(left), 64 * TICKS, dtype=np.int64)
    fits = mistakes(inside, outside, _shown(potential, high)) >= allowed
    low[fits] = high[fits]
    while (high - low > 1).any():
        middle = (low + high) // 2
        fits = mistakes(inside, outside, _shown(potential, middle)) >= allowed
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.maximum(low, left)
