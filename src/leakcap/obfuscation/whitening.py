"""Rows centred and whitened by what the whole pool has in common, so that noise hides less of what classes differ in.

Mean and covariance are those of all rows of the pool, drawn or not: they are the same whatever is sampled, and the
attacker, who knows the pool, knows them. A mean of many rows teaches little more than the means of the classes; among
whitened rows these tell the classes apart as well as a linear model does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats

__all__ = ["Whitening"]

SMALLEST = 1e-10  # of the largest variance: components with less are none


@dataclass(frozen=True, eq=False)
class Whitening:
    """A row less the pool's mean, in its first principal components, each divided by its deviation.

    Attributes:
        centre: `(D,)` mean of the pool's rows.
        turn: `(D, r)` principal components over their deviations.
    """

    centre: Floats = field(repr=False)
    turn: Floats = field(repr=False)

    @classmethod
    def of(cls, rows: Floats, components: int) -> Whitening:
        """By all rows of a pool. Components without variance are left out."""
        if components > rows.shape[1]:
            raise InputError(
                f"whiten is {components} and rows have {rows.shape[1]} columns: choose so many components or fewer"
            )
        # In units of the largest cell: squares neither overflow nor vanish.
        unit = float(np.abs(rows).max()) or 1.0
        scaled = rows / unit
        centre = scaled.mean(axis=0)
        scaled -= centre
        variances, turn = np.linalg.eigh(scaled.T @ scaled / len(rows))
        variances, turn = variances[::-1][:components], turn[:, ::-1][:, :components]
        kept = variances > SMALLEST * max(float(variances[0]), np.finfo(float).tiny)
        if not kept.any():
            raise InputError("all rows are the same: there is nothing to learn from them")
        return cls(centre * unit, turn[:, kept] / (np.sqrt(variances[kept]) * unit))

    def __call__(self, rows: Floats) -> Floats:
        return np.asarray((rows - self.centre) @ self.turn)

    def words(self) -> str:
        return f"every row is centred and whitened by all rows of the pool, to {self.turn.shape[1]:,} components, and"
