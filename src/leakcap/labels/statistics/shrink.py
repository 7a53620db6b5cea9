"""What is made of noised sums without labels: shrinking to the signal, and to what public rows make of it.

All of it is post-processing: it sees noised sums, the deviation of their noise, and public rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats

__all__ = ["Twins", "best_round", "doubt", "refined", "shares_of", "shrunk", "smoothed", "twins"]

Twins = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def smoothed(energy: Floats) -> Floats:
    """Means over neighbouring components: five at first, then half as many as come before."""
    place, sums = np.arange(len(energy)), np.concatenate([[0.0], np.cumsum(energy)])
    reach = np.maximum(2, place // 4)
    low, high = np.maximum(0, place - reach), np.minimum(len(energy), place + reach + 1)
    return np.asarray((sums[high] - sums[low]) / (high - low))


def shrunk(sums: Floats, variance: float, guess: Floats | None = None) -> Floats:
    """The sums, shrunk to a guess at them (or to 0) as far as they differ from it by noise alone.

    Empirical Bayes, component by component: the signal is what the mean square over neighbouring components has beyond
    the noise. The guess is first brought to the size that the sums give it.

    Args:
        sums: `(components, classes)`, in a unit in which all have the same noise.
        variance: of the noise on an entry.
        guess: `(components, classes)`.
    """
    centre = np.zeros_like(sums)
    if guess is not None:
        size = smoothed((guess * guess).sum(axis=1))
        share = smoothed((sums * guess).sum(axis=1)) / np.where(size > 0, size, 1.0)
        centre = guess * np.clip(share, 0.0, 1.0)[:, None]
    rest = sums - centre
    return np.asarray(centre + rest * _signal_shares(rest, variance)[:, None])


def doubt(sums: Floats, variance: float) -> float:
    """Share of noise in the energy of the shrunk sums."""
    shares = _signal_shares(sums, variance)
    noise = variance * sums.shape[1] * float(shares.sum())
    return noise / (noise + float(np.square(shares[:, None] * sums).sum()) + 1e-300)


def _signal_shares(sums: Floats, variance: float) -> Floats:
    """For every component, the share of signal in the mean square of its neighbourhood."""
    signal = np.maximum(smoothed(np.square(sums).mean(axis=1)) - variance, 0.0)
    return np.asarray(signal / (signal + variance))


def refined(sums: Floats, variance: float, guess: Callable[[Floats], Floats], rounds: int) -> Iterator[Floats]:
    """The sums shrunk to 0, then, round after round, to what the guess makes of the last."""
    found = shrunk(sums, variance)
    yield found
    for _ in range(rounds):
        found = shrunk(sums, variance, guess(found))
        yield found


def best_round(
    sums: Floats, variance: float, guess: Callable[[Floats], Floats], *, rounds: int, rng: np.random.RandomState
) -> int:
    """The round that tells most of sums which it has not seen: each twin is refined and held against the other."""
    losses = np.zeros(rounds + 1)
    for seen, hidden in twins(sums, variance, rng):
        losses += [float(np.square(hidden - found).sum()) for found in refined(seen, 2 * variance, guess, rounds)]
    return int(np.argmin(losses))


def twins(sums: Floats, variance: float, rng: np.random.RandomState) -> Twins:
    """Two copies of the sums whose noise is independent, in both orders: fresh noise as large, added and subtracted."""
    fresh = rng.standard_normal(sums.shape)
    fresh -= fresh.mean(axis=1, keepdims=True)  # like the noise, which leaves sums over classes alone
    fresh *= np.sqrt(variance / (1 - 1 / sums.shape[1]))
    return (sums + fresh, sums - fresh), (sums - fresh, sums + fresh)


def shares_of(counts: npt.NDArray[np.float64], variance: float) -> Floats:
    """Shares of the classes from noised shares: shrunk to even ones as far as noise explains them, never below 0."""
    even = 1 / len(counts)
    rest = counts - counts.mean()
    signal = max(float(np.square(rest).sum()) / max(1, len(counts) - 1) - variance, 0.0)
    found = np.maximum(even + rest * signal / (signal + variance), 1e-3 * even)
    return np.asarray(found / found.sum())
