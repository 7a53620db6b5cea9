"""Plain differential privacy for the same bounds and the same success: what the noise of a pool cap is compared with.

Each of the three is given the cheapest noise that its own rule allows, for the most that one person can bring. Nothing
is released with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.convert import from_dp, from_zcdp, gaussian_epsilon
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Extent
from leakcap.noise.bounded import blocks_of, least_deviations

__all__ = ["DELTA", "PlainNoise", "gaussian", "laplace", "stretch", "zero_concentrated"]

DELTA = 1e-5
ROUNDING = 1e-12  # relative: room for rounding
PRECISE = 1e-9  # relative: to which a parameter is searched


@dataclass(frozen=True, eq=False)
class PlainNoise:
    """Noise of plain differential privacy, independent for each sum."""

    law: str  # "Laplace" or "normal"
    deviations: Floats  # (d,): standard deviations
    parameters: str  # in words
    success: float  # bound on the guess whether a person is in the data

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """So many times, for simulations."""
        shape = count, len(self.deviations)
        if self.law == "Laplace":
            return rng.laplace(scale=math.sqrt(0.5), size=shape) * self.deviations
        return rng.standard_normal(shape) * self.deviations


@proves("pool")
def stretch(extent: Extent, scales: Floats) -> float:
    """Epsilon of Laplace noise of these scales: the largest L1 distance, in scales, that one person moves the sums."""
    blocks, part = blocks_of(extent)
    largest = np.zeros(int(part.max()) + 1)
    np.maximum.at(largest, part, np.bincount(blocks, extent.limits / scales))
    return float(largest.sum()) * (1 + ROUNDING)


def laplace(extent: Extent, success: float) -> PlainNoise:
    """Pure epsilon-DP by Laplace noise, with the least weighted variance in all.

    Within a block, scales are as the cube root of limit over weight; parts share epsilon as the cube roots of costs.
    """
    epsilon = _largest(lambda one: float(from_dp(one, 0.0, "add_remove", "poisson")), success, 1.0)
    blocks, part = blocks_of(extent)
    cost = np.bincount(blocks, np.cbrt(extent.limits**2 * extent.weights))
    of_part = np.cbrt(np.bincount(part, cost**3))
    share = epsilon * of_part / of_part.sum()
    scales = np.cbrt(extent.limits / extent.weights) * cost[blocks] / share[extent.part]
    scales = scales * (stretch(extent, scales) / epsilon) * (1 + ROUNDING)
    return PlainNoise(
        "Laplace",
        math.sqrt(2) * scales,
        f"epsilon {_up(epsilon)}",
        float(from_dp(stretch(extent, scales), 0.0, "add_remove", "poisson")),
    )


def gaussian(extent: Extent, success: float, delta: float = DELTA) -> PlainNoise:
    """(epsilon, delta)-DP by normal noise, with the exact relation of the two."""
    epsilon = _largest(lambda one: float(from_dp(one, delta, "add_remove", "poisson")), success, 1.0)
    mu = _largest(lambda one: gaussian_epsilon(one, delta), epsilon, 0.1)
    return PlainNoise(
        "normal",
        least_deviations(extent, mu**2),
        f"epsilon {_up(epsilon)}, delta {delta:g}",
        float(from_dp(gaussian_epsilon(mu, delta), delta, "add_remove", "poisson")),
    )


def zero_concentrated(extent: Extent, success: float) -> PlainNoise:
    """rho-zCDP by normal noise: rho is half of the squared distance."""
    rho = _largest(lambda one: float(from_zcdp(one, "add_remove", "poisson")), success, 0.1)
    return PlainNoise(
        "normal",
        least_deviations(extent, 2 * rho),
        f"rho {_up(rho)}",
        float(from_zcdp(rho, "add_remove", "poisson")),
    )


def _largest(bound: Callable[[float], float], limit: float, start: float) -> float:
    """The largest parameter whose bound, which grows with it, is within the limit: one that was checked."""
    low, high = 0.0, start
    while bound(high) <= limit:
        low, high = high, 2 * high
    while high - low > PRECISE * high:
        middle = (low + high) / 2
        if high < 1e-12:
            raise CapError("this cap is too close to a coin flip: choose a larger one")
        low, high = (middle, high) if bound(middle) <= limit else (low, middle)
    return low


def _up(value: float) -> str:
    """Four digits, never below."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit) * unit:.4g}"
