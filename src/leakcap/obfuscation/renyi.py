"""Rényi divergences of means of drawn rows with normal noise: what differential privacy says about mixing, from above.

Two laws of drawing: everybody by a coin of their own (Poisson), and so many without replacement (fixed size). Whole
orders only. Composition over independent rows adds divergences of one order. Proof page: obfuscation-comparators.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["ORDERS", "epsilon_for", "fixed_size_renyi", "poisson_renyi"]

ORDERS = (*range(2, 65), 96, 128, 256)
SLIP = 1e-12  # of sums of logarithms, relative


@proves("obfuscation-comparators")
def poisson_renyi(rate: float, distance: float) -> Floats:
    """`(orders,)`: of a normal law that is moved by `distance` deviations with probability `rate`, beside the unmoved.

    Guarantee: the Rényi divergences of `ORDERS` between `(1-rate) N(0,1) + rate N(distance,1)` and `N(0,1)`, in the
    direction that is larger (Mironov, Talwar and Zhang 2019): add/remove neighbours, everybody drawn by a coin.
    """
    rate, distance = checks.fraction(rate=rate), checks.nonnegative(distance=distance)
    found = []
    for order in ORDERS:
        j = np.arange(order + 1)
        chosen = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        terms = chosen + j * math.log(rate) + (order - j) * math.log1p(-rate) + j * (j - 1) * distance**2 / 2
        found.append(float(np.logaddexp.reduce(terms)) / (order - 1))
    return _up(np.array(found))


@proves("obfuscation-comparators")
def fixed_size_renyi(rate: float, distance: float) -> Floats:
    """`(orders,)`: replacing one of the rows of which a share `rate` is drawn without replacement, noised normally.

    `distance` is how far replacing one drawn row moves the result, in deviations of the noise.

    Guarantee: bounds on the Rényi divergences of `ORDERS`, in either direction (Wang, Balle and Kasiviswanathan 2019,
    Theorem 9, for normal noise, whose worst likelihood ratio is unbounded); never above those without drawing.
    """
    distance = checks.nonnegative(distance=distance)
    if not 0 < rate <= 1:
        raise InputError("rate must lie above 0 and not above 1")
    squared, found = distance**2, []
    for order in ORDERS:
        j = np.arange(2, order + 1)
        chosen = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        # e^((j-1) eps(j)) with eps(j) = j squared / 2, twice; for j = 2 also 4 (e^eps(2) - 1).
        each = math.log(2) + j * (j - 1) * squared / 2
        if squared < 1:
            each[0] = min(each[0], math.log(4 * math.expm1(squared)) if squared > 0 else -math.inf)
        terms = chosen + j * math.log(rate) + each
        drawn = np.logaddexp(0.0, np.logaddexp.reduce(terms)) / (order - 1)
        found.append(min(drawn, order * squared / 2))
    return _up(np.array(found))


@proves("obfuscation-comparators")
def epsilon_for(divergences: npt.ArrayLike, delta: float) -> float:
    """The least epsilon for which Rényi divergences of `ORDERS` are (epsilon, delta)-differential privacy.

    Guarantee: by Canonne, Kamath and Steinke (2020), for the same neighbours; the best order is taken.
    """
    delta = checks.fraction(delta=delta)
    orders = np.array(ORDERS, dtype=np.float64)
    each = np.asarray(divergences) + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(each.min()) + 1e-12 * (1 + abs(float(each.min()))))


def _up(values: Floats) -> Floats:
    return np.asarray(np.where(values > 0, values * (1 + SLIP) + 1e-15, 0.0))
