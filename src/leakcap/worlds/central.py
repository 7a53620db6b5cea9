"""Central halves (`design="central"`): of many random halves, those that resemble the pool, with their complements.

A half is central where the means of the units' rows are near to those of the pool. Random halves are drawn eight times
as often as worlds are needed, and of every block the eighth is kept that is nearest. A half and its complement are
equally near, so that pairs are kept whole. The choice looks at the pool, never at the secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.worlds.draw import RandomBits, complement, independent_worlds
from leakcap.worlds.matched import refuse_unbalanced
from leakcap.worlds.worldset import Worlds

__all__ = ["DRAWN", "Central", "central_halves"]

DRAWN = 8  # halves, for each that is kept
BLOCK = 64  # halves that are kept together: the nearest of those drawn with them
TILE = 2**22  # memberships that are unpacked at a time


@dataclass(frozen=True, eq=False)
class Central:
    """Which of the halves that a stream of random numbers gives are kept; custodian side."""

    kept: Ints  # their numbers, those of each block together
    units: int
    strata: Ints | None = None

    @proves("designed-worlds")
    def draw(self, m: int, rng: RandomBits) -> Worlds:
        """The halves that were kept, drawn again from the same stream, and their complements."""
        if m != 2 * len(self.kept):
            raise InputError(f"these halves were chosen for {2 * len(self.kept)} worlds")
        blocks = _drawn(self.units, m, rng, self.strata)
        found, start = [], 0
        for halves, keep in blocks:
            found.append(halves.packed[self.kept[start : start + keep]])
            start += keep
        first = np.concatenate(found)
        worlds = replace(
            halves,
            packed=np.concatenate([first, complement(first, self.units)]),
            paired=True,
            design="central halves" + (", stratified" if self.strata is not None else ""),
        )
        refuse_unbalanced(worlds)
        return worlds


def central_halves(likeness: Floats, m: int, rng: RandomBits, strata: Ints | None = None) -> Central:
    """The choice for `m` worlds.

    Args:
        likeness: a row for every unit, of directions that do not go together; each counts by its own spread.
        m: number of worlds.
        rng: the stream from which `Central.draw` will draw.
        strata: a number for every unit, of groups of which every half holds half.

    Returns:
        The choice: `draw` makes the worlds of it.
    """
    spread = likeness.std(axis=0)
    rows = (likeness - likeness.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    kept = [
        np.sort(np.argsort(_distances(halves, rows), kind="stable")[:keep])
        for halves, keep in _drawn(len(rows), m, rng, strata)
    ]
    return Central(np.concatenate(kept), len(rows), strata)


def _drawn(n: int, m: int, rng: RandomBits, strata: Ints | None) -> Iterator[tuple[Worlds, int]]:
    """Blocks of random halves, and how many of each are kept."""
    if checks.count(at_least=2, worlds=m) % 2:
        raise InputError(f"worlds must be a multiple of 2: use {m + 1}")
    for start in range(0, m // 2, BLOCK):
        keep = min(BLOCK, m // 2 - start)
        yield independent_worlds(n, DRAWN * keep, rng, strata=strata), keep


def _distances(halves: Worlds, rows: Floats) -> Floats:
    """Squared, of what each half adds up to from what its complement does; the same for both by construction."""
    sums = np.zeros((halves.m, rows.shape[1]))
    step = max(8, TILE // halves.m)
    for start in range(0, halves.n, step):
        part = slice(start, min(start + step, halves.n))
        sums += halves.columns(part).astype(np.float64) @ rows[part]
    return np.asarray((sums**2).sum(axis=1))
