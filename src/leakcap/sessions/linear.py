"""One answer of a session: a noised sum over those who can still pay for it.

Everybody has a charge: the square of how far they move the sums, in deviations of the noise. Whoever cannot pay is
left out. What the others bring is cut to a fine grid, so that their sum is exact whichever of them are in it, and
leaves with noise on a coarser grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.noise import Randomness
from leakcap.noise.entropy import sampler_distance
from leakcap.sessions.clock import Clock

__all__ = [
    "FINE",
    "FURTHEST",
    "GRAINS",
    "STEP",
    "Payment",
    "charges",
    "checked_norm",
    "cut_to_length",
    "exact_sums",
    "off_by",
    "paying",
    "with_noise",
]

STEP = 2.0**-4  # of the grid on which answers leave, in deviations: it adds 3e-4 of the noise's variance
FINE = 2.0**-32  # to multiples of which, in deviations, everything that is added up is cut
GRAINS = round(STEP / FINE)  # in a step
BLOCK = 2**22  # numbers at a time
PEOPLE = 2**16  # the same: of many millions, fresh memory would cost more than what is done in it
FURTHEST = 2.0**20  # deviations that one person may move a sum by: more than any clock allows


def checked_norm(norm: float) -> float:
    """A declared length, refused by itself alone where dividing by it leaves the range of numbers."""
    if not 1e-100 <= checks.positive(norm=norm) <= 1e100:
        raise InputError("norm must lie between 1e-100 and 1e100: give the data in other units")
    return float(norm)


def cut_to_length(rows: Floats, most: float) -> Floats:
    """Rows, scaled down where they are longer; without a word about one that is too long to be squared."""
    with np.errstate(over="ignore"):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * (most / np.maximum(length, most)))


@dataclass(frozen=True, eq=False)
class Payment:
    """Who pays for a question, and how much is spent after it; custodian side."""

    pays: Bools  # (units,): who is in the sum if their coin says so
    spent: Ints  # (units,): ticks, after the question


@proves("linear-sessions")
def charges(values: Floats, deviations: Floats, clock: Clock) -> Ints:
    """What a question costs everybody, in ticks; `values` is by how much each coin moves the sums."""
    squares = np.empty(len(values))
    step = max(1, BLOCK // max(1, len(deviations)))
    for start in range(0, len(values), step):
        whitened = values[start : start + step] / deviations
        own = np.einsum("ud,ud->u", whitened, whitened)
        # Whose numbers are tiny would have a charge of 0 by underflow, and yet be in the sum.
        own[(own == 0) & whitened.any(axis=1)] = np.finfo(float).tiny
        squares[start : start + step] = own
    return clock.ticks(squares)


@proves("retire")
def paying(cost: Ints, spent: Ints, allowance: int) -> Payment:
    """Everybody who can pay pays; whoever cannot is left out and keeps what is left of the clock.

    Guarantee: nobody's spent ticks exceed the allowance, on any path of questions and answers.
    """
    pays, after = np.empty(len(cost), dtype=bool), np.empty(len(cost), dtype=np.int64)
    for start in range(0, len(cost), PEOPLE):
        some = slice(start, start + PEOPLE)
        pays[some] = cost[some] <= allowance - spent[some]
        after[some] = np.where(pays[some], spent[some] + cost[some], spent[some])
    return Payment(pays, after)


@proves("linear-sessions")
def exact_sums(values: Floats, deviations: Floats, pays: Bools, coins: Bools) -> Ints:
    """Sums over payers whose coin says so, in multiples of FINE of the deviations, of values cut towards 0.

    They are exact, so that neither their order nor their rounding tells of anybody; and the same work is done whatever
    the coins say.
    """
    total = np.zeros(len(deviations), dtype=np.int64)
    places = np.flatnonzero(pays)
    step = max(1, BLOCK // max(1, len(deviations)))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        whitened = values[some] / deviations
        if np.abs(whitened).max(initial=0.0) > FURTHEST:
            raise InputError("the noise is too small for what people bring: give a larger one")
        total += (np.trunc(whitened / FINE).astype(np.int64) * coins[some, None]).sum(axis=0)
    return total


@proves("sampler")
def off_by(numbers: int) -> float:
    """By how much the law of so many noised sums may be off, in total variation."""
    return sampler_distance(numbers, 1.0, STEP)


@proves("sampler")
def with_noise(total: Ints, grains: Ints, deviations: Floats, randomness: Randomness) -> Floats:
    """Noised sums, on the grid. `total` counts grains, of which so many make a step of the grid."""
    whole, rest = np.divmod(total, grains)
    point = np.rint(rest / grains + randomness.normals(len(deviations)) / STEP) + whole
    return np.asarray(point * STEP * deviations)
