"""Noise for a number of nats, from the variances of an answer: the paper's algorithms in closed form, and log-det."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["algorithm_2", "least_noise", "least_noise_for_one", "norm", "papers_noise", "share_in_halves"]

Floats = npt.NDArray[np.float64]


def papers_noise(variances: npt.ArrayLike, nats: float = 1.0) -> Floats:
    """Variances of the noise by the paper's rule (Theorem 3, Algorithm 1), one for each eigenvalue."""
    roots = np.sqrt(np.asarray(variances, dtype=float))
    return np.asarray(roots * roots.sum() / (2 * nats))


def least_noise(variances: npt.ArrayLike, nats: float = 1.0) -> Floats:
    """Least noise of which half the sum of log(1 + v/e) is what is allowed; by bisection of the multiplier."""
    given = np.asarray(variances, dtype=float)

    def noise(log_multiplier: float) -> Floats:
        scaled = math.exp(log_multiplier) * given
        return np.asarray(np.divide(scaled, given + np.sqrt(given**2 + 2 * scaled), where=given > 0, out=0 * given))

    def leaks(found: Floats) -> float:
        return 0.5 * float(np.log1p(given[given > 0] / found[given > 0]).sum())

    return _smallest(noise, leaks, nats)


def least_noise_for_one(eigenvalues: npt.ArrayLike, n: int, nats: float) -> Floats:
    """Least Gaussian noise on the mean of n draws of N(mu, Sigma) so that `MI(x_i; mean + noise) <= nats`, by (12).

    `eigenvalues` are those of Sigma. The other n - 1 draws are noise themselves, of variance `(n-1) lambda / n^2`: what
    (12) asks for is that in all, and only what it lacks must be added.
    """
    given = np.asarray(eigenvalues, dtype=float)
    signal, others = given / n**2, (n - 1) * given / n**2

    def noise(log_multiplier: float) -> Floats:
        scaled = math.exp(log_multiplier) * signal
        return np.asarray(np.maximum(0.0, scaled / (signal + np.sqrt(signal**2 + 2 * scaled)) - others))

    def leaks(found: Floats) -> float:
        return 0.5 * float(np.log1p(signal / (others + found)).sum())

    return 0 * given if leaks(0 * given) <= nats else _smallest(noise, leaks, nats)


def algorithm_2(total_variance: float, d: int, nats: float = 1.0) -> Floats:
    """Algorithm 2 without a seed: two inputs are `psi = 2 tr Var` apart, squared, on average; `psi/(2 nats)` each."""
    return np.full(d, 2 * total_variance / (2 * nats))


def norm(variances: npt.ArrayLike) -> float:
    """Root of the total variance: at least the expected norm, and near to it in many dimensions."""
    return math.sqrt(float(np.sum(variances)))


def share_in_halves(units: int, chosen: int) -> float:
    """Variance of the mean of `chosen` out of `units`, without replacement, in terms of the pool's variance."""
    return (units - chosen) / ((units - 1) * chosen)


def _smallest(noise: Callable[[float], Floats], leaks: Callable[[Floats], float], nats: float) -> Floats:
    low, high = -200.0, 200.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if leaks(noise(middle)) > nats else (low, middle)
    return noise(high)
