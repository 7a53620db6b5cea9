"""The paper as printed: its noise, its norm and its conversions, faults included. Nothing of it is our promise."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["dp_scale", "epsilon_of", "mip_scale", "printed_noise", "unit_weights"]

Floats = npt.NDArray[np.float64]


def mip_scale(eta: float, power: int) -> float:
    """Corollary 14: the scale for noise in a norm in which the M-th central moment is 1, `power` = M."""
    return float((6.16 / eta) ** (1 + 2 / power))


def epsilon_of(eta: float) -> float:
    """Theorem 4, read backwards: the epsilon of pure DP whose best attacker succeeds with 1/2 + eta."""
    return math.log((1 + 2 * eta) / (1 - 2 * eta))


def dp_scale(eta: float, sensitivity: float) -> float:
    """Laplace noise for that epsilon (Section 5.1)."""
    return sensitivity / epsilon_of(eta)


def unit_weights(moments: Floats, power: int) -> Floats:
    """Weights of the norm `(sum_i |x_i|^M / (d moment_i^M))^(1/M)`: its length is that of `x / weights` in `l_M`."""
    return np.asarray(len(moments) ** (1 / power) * moments)


def printed_noise(moments: Floats, power: int, eta: float, rng: np.random.Generator) -> Floats:
    """Corollary 10 and Algorithm 1 as printed: a direction of the cone measure, and a Laplace radius.

    For one number it is Laplace noise, as Theorem 9 asks for. For more it is another law than that of Theorem 9, and in
    many dimensions it does not keep the promise (`attacks`).
    """
    weights = unit_weights(moments, power)
    size = rng.gamma(1 / power, size=len(moments)) ** (1 / power)  # density proportional to exp(-|y|^M)
    direction = rng.choice([-1.0, 1.0], size=len(moments)) * size * moments
    length = float((np.abs(direction / weights) ** power).sum() ** (1 / power))
    return np.asarray(rng.laplace(scale=mip_scale(eta, power)) * direction / length)
