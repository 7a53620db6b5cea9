"""What noised sums tell about one label: the best guesser's success, and nats."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["nats_of_sums", "success_of_sums"]

_CELLS = 200_000


@proves("label-statistics")
def success_of_sums(sigma: float, classes: int) -> float:
    """How often the best attacker, who knows every other label, names one of so many even classes.

    Of `classes` independent normals of deviation 1 the label's own has mean `1/sigma`: the likeliest class is that of
    the largest. Guarantee: no attacker is right more often; the upper sum of a monotone integrand is never too small.
    """
    shift = 1 / sigma
    ends = np.linspace(-9.0, 9.0 + shift, _CELLS + 1)
    cells = np.where(ends[1:] < shift, _between(ends - shift), _between(shift - ends[::-1])[::-1])
    others = np.exp((classes - 1) * log_ndtr(ends[1:]))  # rises, so its right end is the most in a cell
    return min(1.0, float((cells * others).sum() + 2 * ndtr(-9.0)) * (1 + 1e-11))


def _between(ends: Floats) -> Floats:
    return np.asarray(np.diff(ndtr(ends)))


@proves("label-statistics")
def nats_of_sums(sigma: float, classes: int, distance: float = 0.0) -> float:
    """Nats, at most, about one of so many even classes; `distance` is the total variation to the ideal law."""
    ideal = min((classes - 1) / 2 * math.log1p(1 / (classes * sigma**2)), math.log(classes))
    entropy = -distance * math.log(distance) + distance if distance > 0 else 0.0  # at least that of the coin
    return min(math.log(classes), (ideal + entropy + distance * math.log(classes)) * (1 + 1e-12))
