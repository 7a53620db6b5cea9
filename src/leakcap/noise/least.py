"""The least noise for answers of known variances: within a budget of information, of signal, or of both.

The signal is the sum of the ratios of the answers' variances to those of the noise (docs/proofs/trace.md).
"""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise.shapes import information_ceiling, shape_variances

__all__ = ["least_variances"]


@proves("trace")
def least_variances(shape: str, variances: Floats, *, budget: float = math.inf, signal: float = math.inf) -> Floats:
    """Noise variances that keep the information within `budget` nats and the signal within `signal`.

    The "best" shape has the least sum for either alone (claim 3 of the page); for both it is the better of these two.
    """
    if math.isinf(signal):
        return shape_variances("logdet" if shape == "best" else shape, variances, budget)
    shapes = {"best": ("linear",) if math.isinf(budget) else ("linear", "logdet")}.get(shape, (shape,))
    found = [_enough(shape_variances(one, variances, signal / 2), variances, budget, signal) for one in shapes]
    return min(found, key=lambda noise: float(noise.sum()))


def _enough(noise: Floats, variances: Floats, budget: float, signal: float) -> Floats:
    """The least multiple of some noise that keeps both budgets."""
    factor = float((variances / noise).sum()) * (1 + 1e-11) / signal
    if information_ceiling(variances, factor * noise) <= budget:
        return np.asarray(factor * noise)
    high = 2 * factor
    while information_ceiling(variances, high * noise) > budget:
        high *= 2
    low = high / 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if information_ceiling(variances, middle * noise) > budget else (low, middle)
    return np.asarray(high * noise)
