"""Vectors, one coordinate after the other: along which direction to ask next.

Each coordinate is an answer of its own, priced, drawn and charged before the next is looked at. The directions are free
to choose: they follow from the pool and the public history.
"""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats

__all__ = ["hidden_by", "next_direction"]

ROUNDING = 1e-10  # relative: directions in which worlds differ by less are not asked for


def next_direction(whitened: Floats, weights: Floats, asked: Floats) -> Floats | None:
    """The direction in which worlds differ most under the current posterior, among those not asked for.

    Args:
        whitened: `(worlds, d)`, the vector in every world, in deviations of its noise.
        weights: `(worlds,)`, the posterior (`Posterior.weights()`).
        asked: `(k, d)`, orthonormal directions that were asked for.

    Returns:
        A unit vector orthogonal to those asked; None where worlds no longer differ in what is left. The answer to ask
        for is `whitened @ direction` with noise of deviation 1.
    """
    if whitened.ndim != 2 or asked.ndim != 2 or asked.shape[1] != whitened.shape[1]:
        raise InputError("whitened and asked must be tables with a column for every output")
    moved = whitened - weights @ whitened
    left = moved - (moved @ asked.T) @ asked
    left -= (left @ asked.T) @ asked  # twice: rounding of the first would stay
    scaled = np.sqrt(weights)[:, None] * left
    _, sizes, turns = np.linalg.svd(scaled, full_matrices=False)
    size = float(np.abs(whitened).max(initial=0.0))
    if not len(sizes) or not sizes[0] > ROUNDING * max(size, 1.0):
        return None
    found = turns[0] - (turns[0] @ asked.T) @ asked
    return np.asarray(found / np.linalg.norm(found))


def hidden_by(outputs: Floats, deviations: Floats) -> Bools:
    """Numbers in which worlds differ, by too little beside their noise for any direction to be asked.

    What is not asked is handed out as the middle of all worlds, which is the pool's: exact, and for nothing. That is no
    secret of a world; but whoever does not know the pool need not learn it by asking for endless noise.
    """
    spread, sizes = outputs.std(axis=0), np.abs(outputs).max(axis=0, initial=0.0)
    largest = max(float((sizes / deviations).max(initial=0.0)), 1.0)
    return np.asarray((spread > ROUNDING * sizes) & (spread <= 2 * ROUNDING * largest * deviations))
