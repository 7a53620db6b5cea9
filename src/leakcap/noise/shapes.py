"""Shapes of Gaussian noise: how a budget is spread over directions of different variance.

All work in the weighted principal directions, where a unit of noise variance costs the same utility everywhere.
"""

from __future__ import annotations

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = [
    "SHAPES",
    "information_by_covariance",
    "information_ceiling",
    "isotropic",
    "linear",
    "logdet",
    "shape_variances",
]

MAX_RANK = 2048  # directions up to which a determinant is made
SHAPES = ("best", "logdet", "linear", "isotropic")


@proves("log-det")
def information_ceiling(variances: Floats, noise: Floats) -> float:
    """`1/2 sum log(1 + v_i / e_i)`: no law with these variances puts more through this Gaussian noise.

    Guarantee: upper bound on the mutual information between the secret world and the release, in nats, without
    sampling (a Gaussian maximises entropy at given covariance).
    """
    return float(0.5 * np.log1p(variances / noise).sum()) * (1 + 1e-12)


@proves("log-det")
def information_by_covariance(whitened: Floats) -> float:
    """`1/2 log det(I + C)`, `C` the covariance of the answers of all worlds in units of the noise; rounded up.

    Guarantee: upper bound on the mutual information between the secret world and the release, in nats, without
    sampling; the same whichever way the directions are turned, and never above `information_ceiling`.

    Args:
        whitened: `(m, r)`, each world's coordinates in noise deviations, about any centre.
    """
    m, rank = whitened.shape
    squares = np.einsum("wr,wr->r", whitened, whitened) / m
    by_directions = information_ceiling(squares, np.ones(rank))
    if not 0 < rank <= MAX_RANK:
        return by_directions
    gram = np.eye(rank) + whitened.T @ whitened / m
    rounding = 8 * rank**2 * np.finfo(float).eps * float(1 + squares.sum())
    return min(by_directions, float(np.linalg.slogdet(gram)[1]) / 2 * (1 + 1e-12) + rounding)


@proves("log-det")
def logdet(variances: Floats, beta: float) -> Floats:
    """The least total noise variance with `1/2 sum log(1 + v/e) <= beta`: one root in the multiplier."""

    def noise(log_multiplier: float) -> Floats:
        x = np.exp(log_multiplier)
        return np.asarray(x * variances / (variances + np.sqrt(variances**2 + 2 * x * variances)))

    def excess(log_multiplier: float) -> float:
        return information_ceiling(variances, noise(log_multiplier)) - beta

    from scipy.optimize import brentq  # slow to import, and not needed to import leakcap

    low = high = float(np.log(variances.max()))
    while excess(low) < 0:
        low -= 4
    while excess(high) > 0:
        high += 4
    return noise(brentq(excess, low, high, xtol=1e-12) + 1e-11)


def linear(variances: Floats, beta: float) -> Floats:
    """The papers' rule, `e_i = sqrt(v_i) sum_j sqrt(v_j) / (2 beta)`: `logdet` with log(1 + x) replaced by x."""
    root = np.sqrt(variances)
    return np.asarray(root * root.sum() / (2 * beta))


def isotropic(variances: Floats, beta: float) -> Floats:
    """The same noise in every direction, the least with `1/2 sum log(1 + v/e) <= beta`."""

    def excess(log_noise: float) -> float:
        return information_ceiling(variances, np.exp(log_noise)) - beta

    from scipy.optimize import brentq

    middle = float(np.log(variances.sum() / (2 * beta)))  # log(1+x) <= x: this much always suffices
    low = middle - 1
    while excess(low) < 0:
        low -= 4
    return np.full_like(variances, np.exp(brentq(excess, low, middle + 1e-9, xtol=1e-12) + 1e-11))


def shape_variances(shape: str, variances: Floats, beta: float) -> Floats:
    """Noise variances of a named shape that keep the mutual information at or below `beta`."""
    named = {"logdet": logdet, "linear": linear, "isotropic": isotropic}
    if shape not in named:
        raise InputError(f"shape must be one of {', '.join(map(repr, named))}")
    return named[shape](variances, beta)
