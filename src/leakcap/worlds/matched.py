"""Worlds of matched pairs (`design="matched"`): of every two units that are alike, each world holds exactly one.

Partners are found by recursive bisection: units are cut into an upper and a lower half along the direction in which
they differ most, and again, until two are left. All parts of one level are cut at once, so that the work grows like
N log N, but for sorting. What is known of the units is pool-public: partners depend on the data, never on the secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bits, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.worlds.draw import RandomBits, complement
from leakcap.worlds.worldset import Worlds

__all__ = ["Matched", "partners", "refuse_unbalanced"]

BLOCK = 2**24  # memberships that are unpacked at a time
PAIRINGS = np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]])  # of four


@dataclass(frozen=True, eq=False)
class Matched:
    """Who is whose partner; custodian side. It gives worlds as often as it is asked."""

    order: Ints  # units, partners side by side; of an odd number the last one is alone
    stratified: bool = False

    @proves("designed-worlds")
    def draw(self, m: int, rng: RandomBits) -> Worlds:
        """`m` worlds: a fair coin for every pair says which of the two takes part, and its complement has the other."""
        n = len(self.order)
        if n < 4:
            raise InputError("too few units: design='matched' needs at least 4")
        if checks.count(at_least=2, worlds=m) % 2:
            raise InputError(f"worlds must be a multiple of 2: use {m + 1}")
        first = np.concatenate([self._halves(some, rng) for some in _blocks(m // 2, n)])
        design = "matched pairs" + (", stratified" if self.stratified else "")
        packed = np.concatenate([first, complement(first, n)])
        worlds = Worlds(packed, n, Fraction(1, 2), paired=True, design=design)
        refuse_unbalanced(worlds)
        return worlds

    def _halves(self, count: int, rng: RandomBits) -> Bits:
        """Worlds that hold one of each pair."""
        n, pairs = len(self.order), -(-len(self.order) // 2)  # whoever is alone has a coin, too
        coins = np.unpackbits(rng.integers(0, 256, size=(count, -(-pairs // 8)), dtype=np.uint8), axis=1, count=pairs)
        mask = np.empty((count, n), dtype=np.uint8)
        mask[:, self.order[::2]] = coins
        mask[:, self.order[1::2]] = 1 - coins[:, : n // 2]
        return np.packbits(mask, axis=1)


def _blocks(count: int, n: int) -> list[int]:
    """How many worlds at a time."""
    size = max(1, BLOCK // n)
    return [min(size, count - start) for start in range(0, count, size)]


@proves("designed-worlds")
def refuse_unbalanced(worlds: Worlds) -> None:
    """Raise unless every unit is in exactly one of a world of the first half and its counterpart in the second."""
    first, second = worlds.packed[: worlds.m // 2], worlds.packed[worlds.m // 2 :]
    # Looked at bit by bit: this must not trust what has made the complements.
    if len(first) != len(second) or not all(np.unpackbits(row, count=worlds.n).all() for row in first ^ second):
        raise InputError("these worlds are not balanced: every one of them needs its complement. Report this as a bug")


def partners(likeness: Floats, strata: Ints | None = None) -> Ints:
    """Units in an order in which partners stand side by side, those of one stratum as far as their number allows.

    Args:
        likeness: a row for every unit; units with similar rows become partners.
        strata: a number for every unit. What odd strata leave over is matched with each other.

    Returns:
        Numbers of the units. Of an odd number the last one is alone: the unit nearest to the middle of all.
    """
    if strata is None:
        return _paired(likeness, np.arange(len(likeness)))
    by_stratum = np.split(np.argsort(strata, kind="stable"), np.cumsum(np.bincount(strata))[:-1])
    orders = [_paired(likeness, units) for units in by_stratum if len(units)]
    even = [order[: len(order) // 2 * 2] for order in orders]
    alone = np.concatenate([order[len(order) // 2 * 2 :] for order in orders])
    return np.concatenate([*even, _paired(likeness, alone)])


def _paired(likeness: Floats, units: Ints) -> Ints:
    """Some of the units, partners side by side."""
    if len(units) < 3:
        return units
    rows = likeness[units]
    alone = np.empty(0, dtype=np.intp)
    if len(units) % 2:
        middle = int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmin())
        alone, rows, units = units[[middle]], np.delete(rows, middle, axis=0), np.delete(units, middle)
    order = _in_better_fours(rows, _bisected(rows))
    order = np.concatenate([order[:2], _in_better_fours(rows, order[2:])])
    return np.concatenate([units[order], alone])


def _bisected(rows: Floats) -> Ints:
    """An even number of rows, cut again and again across the direction in which they vary most, until two are left."""
    order, edges = np.arange(len(rows)), np.array([0, len(rows)])
    while (sizes := np.diff(edges)).max() > 2:
        part, sorted_rows = np.repeat(np.arange(len(sizes)), sizes), rows[order]
        sums = np.add.reduceat(sorted_rows, edges[:-1])
        squares = np.add.reduceat(sorted_rows**2, edges[:-1])
        widest = (squares - sums**2 / sizes[:, None]).argmax(axis=1)
        order = order[np.lexsort((sorted_rows[np.arange(len(rows)), widest[part]], part))]
        lower = np.where(sizes > 2, (sizes // 2 + 1) // 2 * 2, 0)  # even: partners stay together
        edges = np.unique(np.concatenate([edges, edges[:-1] + lower]))
    return order


def _in_better_fours(rows: Floats, order: Ints) -> Ints:
    """Every four that stand side by side, paired in the best of the three ways."""
    fours = order[: len(order) // 4 * 4].reshape(-1, 4)
    some = rows[fours]
    cost = [sum(((some[:, a] - some[:, b]) ** 2).sum(axis=1) for a, b in (way[:2], way[2:])) for way in PAIRINGS]
    better = np.take_along_axis(fours, PAIRINGS[np.argmin(cost, axis=0)], axis=1)
    return np.concatenate([better.ravel(), order[fours.size :]])
