"""Priors of sets and of bits: how well people are guessed who took part, before anything is released."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import Numbers
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves

__all__ = ["agreement_prior", "bits_right"]

CELLS = 2**24  # of a table held at once; sums of so many signs are still exact in float32


@proves("currency")
def bits_right(n: npt.ArrayLike, k: npt.ArrayLike, design: str = "independent") -> Numbers:
    """Prior of guessing at least `k` of `n` participation bits right; `posterior(mi, ...)` of it bounds the rest.

    Guarantee: no guess does better without the release, whatever its size. Among halves a guess of n/2 people is not
    always best: its score has the parity of n, so an odd `k` is easier with one person less.

    Args:
        n: number of people.
        k: number of bits that must be right, at most `n`.
        design: "independent" (fair coins) or "half" (a uniform half; for odd `n` both sizes are equally likely).

    Returns:
        The probability that the best blind guess has `k` bits right.

    Raises:
        InputError: `k` exceeds `n`, or the design is unknown.

    Examples:
        >>> from leakcap.convert import posterior
        >>> round(posterior(1, bits_right(100, 70)), 4)
        0.1381
    """
    n, k = np.broadcast_arrays(_arithmetic.counts(n=n), _arithmetic.counts(0, k=k))
    if (k > n).any():
        raise InputError("k must not exceed n: there are only n bits")
    prior = {"independent": _coins_right, "half": _half_right}[checks.choice(("independent", "half"), design=design)]
    return _arithmetic.plain(np.vectorize(prior, otypes=[np.float64])(n, k))


def _coins_right(n: int, k: int) -> float:
    return _arithmetic.sum_up(n, _arithmetic.log_comb(n, np.arange(k, n + 1)) - n * math.log(2))


def _half_right(n: int, k: int) -> float:
    half = n // 2
    if k <= half:
        return 1.0  # "nobody took part" has at least n // 2 bits right
    if n % 2:
        return min(1.0, (_sets_right(n, half, half, k) + _sets_right(n, half + 1, half, k)) / 2)
    return max(_sets_right(n, half, half, k), _sets_right(n, half, half - 1, k))


def _sets_right(n: int, size: int, guess: int, k: int) -> float:
    """Probability that a guess of `guess` people agrees with a uniform set of `size` in at least `k` of `n` bits."""
    least = max(0, size + guess - n, -((n - size - guess - k) // 2))  # agreement = n - size - guess + 2 common
    common = np.arange(least, min(size, guess) + 1)
    ways = (
        _arithmetic.log_comb(guess, common)
        + _arithmetic.log_comb(n - guess, size - common)
        - _arithmetic.log_comb(n, np.asarray(size))
    )
    return _arithmetic.sum_up(n, ways)


@proves("currency")
def agreement_prior(masks: npt.ArrayLike, k: npt.ArrayLike) -> Numbers:
    """Prior of guessing at least `k` participation bits right when the worlds are the rows of `masks`.

    Guarantee: no guess, world or not, does better without the release. Two worlds that share a winning guess agree
    in at least 2k - n bits: the largest such neighbourhood of a world, over the number of worlds, is safe.

    Args:
        masks: `(m, n)` table of 0 and 1: who takes part in each world.
        k: number of bits that must be right, at most `n`.

    Returns:
        A bound on the probability that the best blind guess has `k` bits right.

    Raises:
        InputError: `masks` is not such a table, or `k` exceeds its number of units.

    Examples:
        >>> agreement_prior([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], 4)
        0.25
    """
    table = np.asarray(masks)
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "biuf" or ((table != 0) & (table != 1)).any():
        raise InputError("masks must be a table of 0 and 1 with one row per world and one column per unit")
    table = table.astype(bool)
    m, n = table.shape
    k = _arithmetic.counts(0, k=k)
    if (k > n).any():
        raise InputError("k must not exceed the number of units")
    step = max(1, CELLS // m)
    counts = np.zeros(k.shape, dtype=np.int64)
    for top in range(0, m, step):
        signed = np.zeros((min(step, m - top), m))  # agreements minus disagreements, whole numbers: exact
        for left in range(0, n, step):
            tile = np.where(table[:, left : left + step], np.float32(1), np.float32(-1))
            signed += tile[top : top + step] @ tile.T
        for place in np.ndindex(k.shape):
            near = np.count_nonzero(signed >= 4 * k[place] - 3 * n, axis=1).max()
            counts[place] = max(counts[place], near)
    return _arithmetic.plain(np.vectorize(_arithmetic.ratio_up, otypes=[np.float64])(counts, m))
