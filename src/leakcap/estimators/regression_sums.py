"""Least squares from sums over people: by how much a row moves the pool's fit, and a fit of released products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.estimators.coordinates import Coordinates
from leakcap.estimators.sums import Moved, Products
from leakcap.ground.arrays import Floats

__all__ = ["moved_coefficients", "solved"]


@dataclass(frozen=True, eq=False)
class _CoefficientMoves:
    """What a row moves: its residual times its place, through the inverse of the pool's normal equations.

    With `r` the residual of a row and `x` its place, the pool's coefficients b solve sum of w r x = alpha b. So to
    first order a row of weight w moves them by A^-1 (w r x - (w / W) alpha b), which adds up to 0.
    """

    coefficients: Floats  # (t, d): of the pool
    intercept: Floats  # (t,)
    about: Floats  # (d,): the pool's mean, 0 without an intercept
    through: Floats  # (d, r + 1): from right sides of the normal equations to coordinates
    penalty: Floats  # (t, r + 1)
    level: float  # by how much a residual moves the score at the mean
    total: float  # weight
    scale: Floats  # (t, 1)

    def __call__(self, features: Floats, target: Floats, weight: Floats) -> Floats:
        residual = target - features @ self.coefficients.T - self.intercept
        places = (features - self.about) @ self.through
        moves = residual[:, :, None] * places[:, None] - self.penalty / self.total
        moves[:, :, -1] += self.level * residual / self.total
        return np.asarray((moves * weight[:, None, None] / self.scale).reshape(len(features), -1))


def moved_coefficients(
    plain: Any, data: tuple[Floats, Floats, Floats], *, alpha: float, coordinates: Coordinates, scale: Floats
) -> Moved:
    """The coefficients of a plain estimator that was fitted to the whole pool, and by how much every row moves them."""
    features, target, weight = data
    coefficients = np.atleast_2d(plain.coef_)
    intercept = np.broadcast_to(np.asarray(plain.intercept_, dtype=np.float64), (target.shape[1],))
    mean = weight @ features / weight.sum()
    about = mean if plain.fit_intercept else np.zeros(len(mean))
    apart = features - about
    normal = (apart.T * weight) @ apart + alpha * np.eye(len(mean))
    inverse = np.linalg.pinv(normal, rcond=1e-12, hermitian=True)
    beyond = coordinates.centre - about
    through = inverse @ np.column_stack([coordinates.directions.T * coordinates.spread, beyond])
    moves = _CoefficientMoves(
        coefficients=coefficients,
        intercept=intercept,
        about=about,
        through=through,
        penalty=alpha * coefficients @ through,
        level=1.0 if plain.fit_intercept else 0.0,
        total=float(weight.sum()),
        scale=scale,
    )
    return Moved({"scores": coordinates.encode(coefficients, intercept) / scale}, moves)


def solved(released: Products, *, alpha: float, intercept: bool) -> dict[str, Floats]:
    """Coefficients and intercepts from released products.

    Directions whose variance is below what noise does to one are held back by a ridge: an eigenvalue of the normal
    equations is at least the noise's largest.
    """
    d, t = released.cross.shape
    half, wide = released.half[:d], released.half[d:]
    normal, right = released.covariance, released.cross
    level = released.level
    if not intercept:
        place, aim = released.middle[:d] / half, released.middle[d:] / wide
        mean, other = released.mean + place, released.target_mean + aim
        normal, right = normal + np.outer(mean, mean), right + np.outer(mean, other)
        level *= 1 + 2 * float(np.abs(place).max()) ** 2
    normal = normal + np.diag(alpha / released.count / half**2)
    values, vectors = np.linalg.eigh((normal + normal.T) / 2)
    least = max(level, 1e-12 * float(np.abs(values).max()), np.finfo(float).tiny)
    ridge = max(0.0, least - float(values[0])) if level > 0 else 0.0
    scaled = vectors @ ((vectors.T @ right) / np.maximum(values + ridge, least)[:, None])
    coefficients = (scaled / half[:, None] * wide).T
    if not intercept:
        return {"coefficients": coefficients, "intercept": np.zeros(t)}
    centre = released.middle + released.half * np.append(released.mean, released.target_mean)
    return {"coefficients": coefficients, "intercept": centre[d:] - coefficients @ centre[:d]}
