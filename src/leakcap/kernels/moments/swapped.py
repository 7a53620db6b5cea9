"""What swaps of two people do to variances, covariances, products and quantiles, for all pairs of a world at once.

A swap changes sums of products by a matrix of rank two, and the values near a quantile by one that leaves and one that
comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints

__all__ = ["SwappedCovariances", "SwappedGrams", "SwappedQuantiles", "SwappedVariances"]


@dataclass(frozen=True, eq=False)
class _SwappedMoments:
    """`apart` holds the rows around the pool's mean: differences of large numbers would lose digits."""

    apart: Floats  # (n, d)

    @classmethod
    def of(cls, table: Floats) -> Self:
        return cls(table - table.mean(axis=0))

    def _sums(self, mask: Bools, out: Ints, into: Ints) -> tuple[Floats, Floats, int]:
        """Sums over a world, `(1 + p, d)`: as it is, then after each swap; the number of its units."""
        inside = self.apart[mask]
        total = inside.sum(axis=0)
        moved = total + (self.apart[into] - self.apart[out])
        return inside, np.concatenate([total[None], moved]), len(inside)


class SwappedCovariances(_SwappedMoments):
    """Of covariances, divided by the number of rows less one; 0 for fewer than two rows."""

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        inside, sums, k = self._sums(mask, out, into)
        d = inside.shape[1]
        if k < 2:
            return np.zeros((1 + len(out), d * d))
        gone, come = self.apart[out], self.apart[into]
        found = np.empty((1 + len(out), d, d))
        found[0] = 0.0
        np.einsum("pi,pj->pij", come, come, out=found[1:])
        found[1:] -= gone[:, :, None] * gone[:, None, :]
        found += inside.T @ inside
        found -= sums[:, :, None] * (sums[:, None, :] / k)
        return np.asarray(found.reshape(len(found), -1) / (k - 1))


class SwappedVariances(_SwappedMoments):
    """Of variances, divided by the number of rows less one; 0 for fewer than two rows."""

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        inside, sums, k = self._sums(mask, out, into)
        if k < 2:
            return np.zeros_like(sums)
        squares = np.einsum("nd,nd->d", inside, inside)
        moved = squares + self.apart[into] ** 2 - self.apart[out] ** 2
        return np.asarray((np.concatenate([squares[None], moved]) - sums**2 / k) / (k - 1))


@dataclass(frozen=True, eq=False)
class SwappedGrams:
    """Of sums of products of columns with each other, then of columns with targets."""

    columns: Floats  # (n, d)
    targets: Floats  # (n, t)

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        parts = []
        for other in (self.columns, self.targets):
            moved = np.einsum("pi,pj->pij", self.columns[into], other[into])
            moved -= self.columns[out][:, :, None] * other[out][:, None, :]
            found = np.concatenate([np.zeros((1, *moved.shape[1:])), moved])
            found += self.columns[mask].T @ other[mask]
            parts.append(found.reshape(len(found), -1))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class SwappedQuantiles:
    """Of quantiles, linear between neighbouring values; 0 for a world without rows."""

    values: Floats  # (d, n)
    order: Ints  # (d, n): rows by size, for each column
    levels: Floats  # (q,), rising
    place: Ints  # (q,): where each level that was asked for is among these

    @classmethod
    def of(cls, table: Floats, levels: Floats) -> SwappedQuantiles:
        values, rising = np.ascontiguousarray(table.T), np.argsort(levels, kind="stable")
        order = np.argsort(values, axis=1, kind="stable")
        return cls(values, order, levels[rising], np.argsort(rising, kind="stable"))

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        from leakcap.kernels.moments._swap_loops import swap_quantiles

        k = int(np.count_nonzero(mask))
        found = np.empty((len(self.levels), len(self.values), 1 + len(out)))
        if k:
            place = (k - 1) * self.levels
            below = np.minimum(np.floor(place), max(k - 2, 0)).astype(np.intp)
            swap_quantiles(self.values, self.order, mask, below, place - below, (out, into), found)
        else:
            found[:] = 0.0
        if len(self.levels) > 1:
            found = found[self.place]
        return found.reshape(-1, 1 + len(out)).T
