"""What swaps of two people do to ridge regression: the equations change by rank two, and are not solved again.

Equations are those of `least_squares`, with the intercept as a column of its own, in coordinates in which the pool has
covariance one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.kernels.linear.least_squares import basis_of, fit_alone
from leakcap.kernels.swapping import swapped_masks

__all__ = ["SwappedRidge"]

SAFE = 1e-6  # determinant of the two by two equations below which too many digits are lost


@dataclass(frozen=True, eq=False)
class SwappedRidge:
    """Coefficients, then the intercept, for each target; zeros for a world without rows."""

    features: Floats  # (n, d)
    targets: Floats  # (n, k)
    alpha: float
    basis: Floats  # (d, rank)
    rows: Floats  # (n, 1 + rank): a one, then the features in the basis, around the pool's mean

    @classmethod
    def of(cls, features: Floats, targets: Floats, alpha: float) -> SwappedRidge:
        apart = features - features.mean(axis=0)
        basis = basis_of(apart)
        return cls(features, targets, alpha, basis, np.hstack([np.ones((len(features), 1)), apart @ basis]))

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        """`(1 + p, k (d + 1))`."""
        inside, wanted = self.rows[mask], self.targets - self.targets.mean(axis=0)
        left = inside.T @ inside
        left[1:, 1:] += self.alpha * (self.basis.T @ self.basis)
        right = inside.T @ wanted[mask]
        try:
            factor = cho_factor(left)
        except np.linalg.LinAlgError:
            return self._one_by_one(mask, out, into)
        if np.abs(np.diag(factor[0])).min() ** 2 < SAFE * np.abs(np.diag(factor[0])).max() ** 2:
            return self._one_by_one(mask, out, into)
        inverse = cho_solve(factor, np.eye(len(left)))
        weights = inverse @ right  # (1 + rank, k)
        # The new equations are left + U diag(-1, 1) U' for the two rows U that go and come (Woodbury).
        gone, come = self.rows[out], self.rows[into]
        by_gone, by_come = gone @ inverse, come @ inverse
        a = np.einsum("pr,pr->p", by_gone, gone) - 1
        b = np.einsum("pr,pr->p", by_gone, come)
        c = np.einsum("pr,pr->p", by_come, come) + 1
        # New weights less old ones: inverse U (diag(-1, 1) + U' inverse U)^-1 of what the old ones miss on both rows.
        miss_gone, miss_come = wanted[out] - gone @ weights, wanted[into] - come @ weights
        determinant = a * c - b * b
        safe = np.abs(determinant) > SAFE
        scale = np.where(safe, determinant, 1.0)[:, None]
        of_gone = (c[:, None] * miss_gone - b[:, None] * miss_come) / scale
        of_come = (a[:, None] * miss_come - b[:, None] * miss_gone) / scale
        moved = by_gone[:, :, None] * of_gone[:, None, :] + by_come[:, :, None] * of_come[:, None, :]
        found = self._as_answers(np.concatenate([weights[None], weights + moved]))
        for pair in np.flatnonzero(~safe).tolist():
            found[1 + pair] = self._one_by_one(mask, out[[pair]], into[[pair]])[1]
        return found

    def _as_answers(self, weights: Floats) -> Floats:
        """From `(p, 1 + rank, k)` in the basis to coefficients and intercepts of the columns."""
        coefficients = np.einsum("dr,prk->pkd", self.basis, weights[:, 1:])
        intercept = self.targets.mean(axis=0) + weights[:, 0] - coefficients @ self.features.mean(axis=0)
        return np.concatenate([coefficients, intercept[:, :, None]], axis=2).reshape(len(weights), -1)

    def _one_by_one(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        """The same without normal equations, for those that lose too many digits."""
        found = []
        for world in (mask, *swapped_masks(mask, out, into)):
            weights, intercept = fit_alone(self.features[world], self.targets[world], self.alpha)
            found.append(np.concatenate([weights.T, intercept[:, None]], axis=1).ravel())
        return np.stack(found)
