"""What one swap can tell at most, but for rare mixings: less than everything, so fewer draws certify as much.

A swap changes the release through the column of the mixing at its place. Somebody may be in every released row of the
class, but hardly ever is. What such mixings could tell is added in full. Proof page: obfuscation-confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.obfuscation.chi_squares import pair_table
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.sampled import MixingLaw
from leakcap.obfuscation.several_blocks import by_affinity

__all__ = ["FullColumn", "full_column", "most_told"]

RARE = 1e-6  # how likely fuller columns are, at most
ANGLES = 24  # cells of the angle between the two directions of a swap


@dataclass(frozen=True)
class FullColumn:
    """A squared length that a column of the mixing exceeds with probability `rare` at most."""

    squared: float
    rare: float


def full_column(law: MixingLaw, rare: float = RARE) -> FullColumn:
    """For the class in which columns are fullest."""
    found = [_full_column(law, one, rare) for one in range(law.classes)]
    return FullColumn(max(one.squared for one in found), max(one.rare for one in found))


def _full_column(law: MixingLaw, one: int, rare: float) -> FullColumn:
    """In units of `1/(2 mix)^2` a row with the class on one side counts 1; on both sides 1, or 4 if drawn twice."""
    sides = (law.pairs == one).sum(axis=1)
    share = law.mix / law.sampled
    twice = np.array([(1 - share) ** 2, 2 * share * (1 - share), 0.0, 0.0, share**2])
    chance = _binomial(int((sides == 1).sum()), share)
    for _ in range(int((sides == 2).sum())):
        chance = np.convolve(chance, twice)
    beyond = np.append(np.cumsum(chance[::-1])[::-1][1:], 0.0)  # more than 0, 1, ...
    place = int(np.argmax(beyond <= rare))
    return FullColumn(place / (2 * law.mix) ** 2, float(beyond[place]) * (1 + 1e-9))


def _binomial(times: int, share: float) -> Floats:
    hits = np.arange(times + 1)
    if share == 1:
        return (hits == times).astype(np.float64)
    ways = gammaln(times + 1) - gammaln(hits + 1) - gammaln(times - hits + 1)
    return np.asarray(np.exp(ways + hits * np.log(share) + (times - hits) * np.log1p(-share)))


@proves("obfuscation-confidence")
def most_told(obfuscated: Obfuscated, column: FullColumn, weight: float, apart: Floats) -> Floats:
    """`(N,)`: what no swap of a unit tells whose place in the mixing is no fuller than `column`.

    `apart` is how far its swaps can move its row: with several blocks, in all of them together.
    """
    law = obfuscated.law
    size = apart * np.sqrt(column.squared / law.columns) / obfuscated.noise_std
    if obfuscated.blocks > 1:
        return by_affinity(-law.columns * _lost_at_most(size, obfuscated.blocks) * (1 + 1e-6), weight)
    ends = np.linspace(-1.0, 1.0, ANGLES + 1)
    low, high = ends[:-1], ends[1:]
    sine = 1 - np.where(low * high > 0, np.minimum(low**2, high**2), 0.0)
    half = high * size[:, None] + size[:, None] ** 2 / 2
    up = np.maximum(half + np.sqrt(half**2 + sine * size[:, None] ** 2), size[:, None] ** 2)
    down = (1 - low) * size[:, None]
    with np.errstate(divide="ignore"):
        narrower = np.where(down < 1, -np.log1p(-np.minimum(down, 1.0)), np.inf)
    told = pair_table(law.columns, weight)(np.log1p(up) * (1 + 1e-6), narrower * (1 + 1e-6))
    return np.asarray(told.max(axis=1))


def _lost_at_most(size: Floats, blocks: int) -> Floats:
    """What the logarithm of a squared affinity loses in a column, over all blocks, however a swap is cut into them."""
    known = blocks * np.log1p(size / np.sqrt(blocks)) ** 2
    below = 1 - 2 * size - size**2
    with np.errstate(divide="ignore"):
        near = size**2 / 2 * (1 + 1.5 * size + size**2 / 2) / below
    return np.asarray(np.where(below > 0, np.minimum(known, near), known))
