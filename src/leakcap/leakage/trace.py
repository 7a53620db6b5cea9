"""One person and any function: what the spread of its answers says about a guess at a single participation.

Whether a unit is in or out can move an answer by no more than answers differ anyway. So a bound on their variances, in
noise variances, bounds the success against every unit, without looking at any (docs/proofs/trace.md).
"""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from leakcap.errors import CapError
from leakcap.ground.proofs import proves

__all__ = ["signal_for", "trace_success"]

ROUNDING = 1e-12  # relative: what a sum of ratios, a root and the normal integral lose, with room to spare


@proves("trace")
def trace_success(signal: float, rate: float = 0.5) -> float:
    """Balanced membership success of the best attacker against any unit, at most.

    Args:
        signal: the sum over directions of the answers' variance over that of the noise, at least.
        rate: probability that a unit takes part.

    Guarantee: for any law of the secret in which every unit takes part with probability `rate`, any mechanism and
    Gaussian noise; rounded up. At rate 1/2 it is the plain success.
    """
    share = signal * (1 + ROUNDING) / (4 * rate * (1 - rate))
    return min(1.0, float(ndtr(math.sqrt(share))) * (1 + ROUNDING))


def signal_for(success: float, rate: float = 0.5) -> float:
    """The largest signal whose `trace_success` stays at or below a success above 1/2."""
    least = float(ndtri(success * (1 - 4 * ROUNDING)))
    if not least > 0:
        raise CapError("this cap is too close to a coin flip: choose a larger one")
    return least**2 * 4 * rate * (1 - rate) * (1 - 4 * ROUNDING)
