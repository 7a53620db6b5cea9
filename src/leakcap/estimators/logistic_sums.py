"""Logistic regression where a coin decides about everybody: by how much a row moves the pool's own fit.

At the pool's fit the gradients of all rows and that of the penalty add up to 0, and the fit moves with a row by its
gradient through the inverse of the pool's curvature, to first order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from leakcap.errors import InputError
from leakcap.estimators.coordinates import Coordinates
from leakcap.estimators.sums import Moved
from leakcap.ground.arrays import Floats, Ints

__all__ = ["moved_scores"]

MAX_PARAMETERS = 4096  # beyond, the curvature alone takes minutes


@dataclass(frozen=True, eq=False)
class _ScoreMoves:
    """What a row moves: the gap between its class and its chances, times its place, through the curvature."""

    weights: Floats  # (lines, d + 1): of the pool's scores; the last column is the intercept
    through: Floats  # (lines * (d + 1), lines * (r + 1)): from gradients to coordinates
    mean: Floats  # (lines * (d + 1),): the mean gradient of a row of weight 1, which the penalty holds up

    def __call__(self, features: Floats, codes: Ints, weight: Floats) -> Floats:
        places = _places(features)
        gaps = _gaps(self.weights, places, codes)
        gradients = (gaps[:, :, None] * places[:, None]).reshape(len(places), -1) - self.mean
        return np.asarray((gradients * weight[:, None]) @ self.through)


def moved_scores(plain: Any, data: tuple[Floats, Ints, Floats], *, coordinates: Coordinates) -> Moved:
    """The scores of a plain estimator that was fitted to the whole pool, and by how much every row moves them."""
    features, codes, weight = data
    lines = np.column_stack([plain.coef_, np.broadcast_to(plain.intercept_, (len(plain.coef_),))])
    if lines.size > MAX_PARAMETERS:
        raise InputError(
            f"{lines.size:,} coefficients are too many for design='bits' (at most {MAX_PARAMETERS:,}): reduce the "
            "columns first, or use design='worlds'"
        )
    places = _places(features)
    penalty = np.full(lines.shape, 1 / plain.C)
    penalty[:, -1] = 0.0 if plain.fit_intercept else np.inf
    inverse = _inverse(_curvature(lines, places, weight), penalty.ravel())
    total = np.einsum("nl,nd->ld", _gaps(lines, places, codes) * weight[:, None], places).ravel()
    answer = coordinates.encode(lines[:, :-1], lines[:, -1])
    parts = inverse.reshape(-1, *lines.shape)
    through = coordinates.encode(parts[:, :, :-1], parts[:, :, -1]).reshape(len(inverse), -1)
    return Moved({"scores": answer}, _ScoreMoves(lines, through, total / weight.sum()))


def _places(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])


def _chances(lines: Floats, places: Floats) -> Floats:
    """Of the classes that have a line of their own: all, or the second of two."""
    scores = places @ lines.T
    if len(lines) > 1:
        return np.asarray(softmax(scores, axis=1))
    return np.asarray(softmax(np.hstack([np.zeros_like(scores), scores]), axis=1)[:, 1:])


def _gaps(lines: Floats, places: Floats, codes: Ints) -> Floats:
    own = codes[:, None] == (np.arange(len(lines)) if len(lines) > 1 else np.array([1]))
    return np.asarray(own - _chances(lines, places))


def _curvature(lines: Floats, places: Floats, weight: Floats) -> Floats:
    """Second derivatives of the loss of all rows together."""
    chances, width = _chances(lines, places), places.shape[1]
    whole = np.empty((len(lines), width, len(lines), width))
    for i in range(len(lines)):
        for j in range(i + 1):
            size = weight * chances[:, i] * ((i == j) - chances[:, j])
            whole[i, :, j] = (places.T * size) @ places
            whole[j, :, i] = whole[i, :, j].T
    return whole.reshape(lines.size, lines.size)


def _inverse(curvature: Floats, penalty: Floats) -> Floats:
    """What a gradient moves; nothing where the penalty is infinite."""
    free = np.flatnonzero(np.isfinite(penalty))
    inner = curvature[np.ix_(free, free)] + np.diag(penalty[free])
    whole = np.zeros_like(curvature)
    whole[np.ix_(free, free)] = np.linalg.pinv(inner, rcond=1e-12, hermitian=True)
    return whole
