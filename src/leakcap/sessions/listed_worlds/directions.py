"""Vectors, one coordinate after the other: along which direction to ask next.

Each coordinate is an answer of its own, priced, drawn and charged before the next is looked at. The directions are free
to choose: they follow from the pool and the public history.
"""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats

__all__ = ["next_direction"]

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
