"""Ways to release a mean, as Table 2 compares them: each gives the error before its noise, and with it.

All take the rows of a pool and a generator, and return two distances from the pool's mean, averaged over trials: due to
clipping or to taking half of the rows, and in total.

What the printed figures need, found by experiment and confirmed in the paper's public code:

* columns are brought to 0..1 by all rows, 100 flowers, or 70 % of the other data sets, are the pool;
* `e_i` of Algorithm 1 is a variance, but is used as the *standard deviation* of the noise: too little for `e < 1`;
* the global `e_i` come from the stopping rule (no variance moves by more than 1e-6), after about 30 to 1,000 halves;
* for individual privacy, squared differences are averaged over all people seen *so far*, and the largest such average
  is taken: the list is not emptied between people, so that nobody's own difference counts in full;
* DP clips the L2 norm and adds Laplace noise of scale `C/(n eps)` to each column: Laplace noise needs the L1 norm.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.kernels import masked_sums
from leakcap.worlds import Units, independent_worlds

__all__ = ["differential_privacy", "global_noise", "halves", "individual_noise", "released", "stopped"]

Floats = npt.NDArray[np.float64]
Pair = tuple[float, float]


def halves(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    """The means of random halves."""
    drawn = independent_worlds(len(rows), count, rng)
    return np.asarray(masked_sums(rows, drawn, Units(len(rows), len(rows))) / drawn.sizes()[:, None])


def released(apart: Floats, noise: Floats, rng: np.random.Generator) -> Pair:
    """Means of halves, given as what they are apart from the pool's mean, with Gaussian noise of these deviations."""
    noised = apart + noise * rng.standard_normal(apart.shape)
    return float(_length(apart).mean()), float(_length(noised).mean())


def stopped(rows: Floats, rng: np.random.Generator, precision: float = 1e-6, most: int = 4096) -> Floats:
    """Variances of the halves' means by Algorithm 1: halves are added until none moves by more than `precision`."""
    means = halves(rows, 256, rng)
    before = means[:1].var(axis=0)
    for count in range(11, most, 10):
        if count > len(means):
            means = np.concatenate([means, halves(rows, len(means), rng)])
        now = means[:count].var(axis=0)
        if np.abs(now - before).max() <= precision:
            return np.asarray(now)
        before = now
    return np.asarray(before)


def global_noise(variances: Floats, nats: float) -> Floats:
    """Noise variances `e_i` of Theorem 1."""
    deviations = np.sqrt(variances)
    return np.asarray(deviations * deviations.sum() / (2 * nats))


def individual_noise(rows: Floats, nats: float, so_far: bool) -> Floats:
    """Noise variances `e_i` of appendix A, for swaps; with `so_far`, of running averages over people."""
    n = len(rows)
    squares = ((rows - rows.mean(axis=0)) ** 2 + rows.var(axis=0)) * n / (n - 1) / (n // 2) ** 2
    if so_far:
        squares = squares.cumsum(axis=0) / np.arange(1, n + 1)[:, None]
    deviations = np.sqrt(squares)
    return np.asarray((deviations * deviations.sum(axis=1, keepdims=True)).max(axis=0) / (2 * nats))


def differential_privacy(
    rows: Floats,
    epsilon: float,
    trials: int,
    rng: np.random.Generator,
    norm: int,
    steps: int = 1,
) -> Pair:
    """The whole pool, clipped, with Laplace noise of scale `steps C/(n eps)`, at the clipping threshold that does best.

    The search for it looks at the data and is not private, here as in the paper.
    """
    n, d = rows.shape
    length = np.linalg.norm(rows, ord=norm, axis=1)
    mean = rows.mean(axis=0)
    best = (np.inf, np.inf)
    for threshold in np.arange(1, np.ceil(10 * length.max()) + 1) / 10:
        clipped = rows.T @ np.minimum(1, threshold / np.maximum(length, 1e-300)) / n - mean
        noised = clipped + rng.laplace(0, steps * threshold / n / epsilon, (trials, d))
        error = float(_length(noised).mean())
        if error < best[1]:
            best = float(np.linalg.norm(clipped)), error
    return best


def _length(apart: Floats) -> Floats:
    return np.asarray(np.linalg.norm(apart, axis=1))
