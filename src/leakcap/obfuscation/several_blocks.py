"""How well laws are told apart that differ in two coordinates of every block: a convolution, from above.

Rows may be cut into blocks with a mask of their own each. Given sample and mixing the blocks are independent, so the
evidence of a pair of laws is a sum of independent terms, one for each factor of each block. Before they are added every
term is spread to neighbours on a grid that keep its masses under both laws: what is told is convex, and only grows.
For very many pairs there are two bounds that need no convolution.
Proof page: obfuscation-blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import chdtr, chdtrc, chdtri

from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.obfuscation.chi_squares import pair_table

__all__ = ["blocks_told_apart", "blocks_told_apart_quickly", "by_affinity", "sticks_of_blocks"]

CELLS = 64  # of each chi-square
STEPS = 16  # of the grid, in a deviation of the evidence
TAIL = 1e-9
ROUNDING = 1e-11
LARGEST = 30.0  # logarithm of a factor beyond which nothing is hidden
FARTHEST = 1000.0  # the same for all columns together
AT_ONCE = 128  # pairs that are convolved side by side


@proves("obfuscation-blocks")
def blocks_told_apart(wider: Floats, narrower: Floats, columns: int, *, weight: float = 1.0) -> Floats:
    """The most that `P(A) - weight Q(A)` can be over all events `A`, for every pair of laws: never less.

    Args:
        wider: `(..., blocks)` logarithms of each block's factor above 1, at least 0.
        narrower: `(..., blocks)` logarithms of the inverse of its factor below 1, at least 0.
        columns: how many independent columns each block has.
        weight: of the second law, above 0.

    Returns:
        `(...)` bounds from 0 to 1.
    """
    return sticks_of_blocks(wider, narrower, columns, weights=(weight,))[0]


@proves("obfuscation-blocks")
def sticks_of_blocks(wider: Floats, narrower: Floats, columns: int, *, weights: Sequence[float]) -> Floats:
    """`(weights, ...)`: the same for several weights by one convolution."""
    for weight in weights:
        checks.positive(weight=weight)
    both = np.concatenate([wider, -np.asarray(narrower)], axis=-1)
    logs = both.reshape(-1, both.shape[-1])
    found = np.ones((len(weights), len(logs)))
    # Where some factor is beyond all bounds nothing is hidden.
    able = np.flatnonzero(np.abs(logs).max(axis=1) <= min(LARGEST, FARTHEST / columns))
    for start in range(0, len(able), AT_ONCE):
        some = able[start : start + AT_ONCE]
        found[:, some] = _convolved(logs[some], columns, weights)
    return found.reshape(len(weights), *both.shape[:-1])


@proves("obfuscation-blocks")
def blocks_told_apart_quickly(wider: Floats, narrower: Floats, columns: int, *, weight: float = 1.0) -> Floats:
    """The same, for many pairs: the smaller of two bounds, of which neither is below.

    One gives every block the factors of the block that tells most; then all blocks are one of so many more columns. The
    other is by affinities, which multiply over blocks; it is smaller where blocks differ, up to a quarter above.
    """
    blocks = wider.shape[-1]
    alike = pair_table(blocks * columns, weight)(wider.max(axis=-1), narrower.max(axis=-1))
    both = np.concatenate([wider, narrower], axis=-1)
    # The affinity of N(0, 1) and N(0, l) is cosh(log(l) / 2)^(-1/2); of all columns, its square's logarithm:
    log_square = -columns * np.log1p(2 * np.sinh(np.minimum(both, LARGEST) / 4) ** 2).sum(axis=-1)
    return np.asarray(np.minimum(alike, by_affinity(log_square, weight)))


@proves("obfuscation-blocks")
def by_affinity(log_square: Floats, weight: float) -> Floats:
    """The most that `P(A) - weight Q(A)` can be, by the logarithm of the square of the two laws' affinity."""
    apart = (1 - weight) ** 2 / 4 - weight * np.expm1(log_square)
    found = (1 - weight) / 2 + np.sqrt(apart) * (1 + 1e-9) + ROUNDING * (1 + weight)
    return np.asarray(np.minimum(found, 1.0))


@lru_cache(maxsize=16)
def _cells(columns: int) -> tuple[Floats, Floats]:
    """Ends of the cells of a chi-square, and their masses: all but `TAIL` on either side."""
    least, most = (float(chdtri(columns, share)) for share in (1 - TAIL, TAIL))
    ends = np.linspace(np.cbrt(least), np.cbrt(most), CELLS + 1) ** 3
    return ends, np.where(ends[1:] <= columns, np.diff(chdtr(columns, ends)), -np.diff(chdtrc(columns, ends)))


def _convolved(logs: Floats, columns: int, weights: Sequence[float]) -> Floats:
    """`(weights, pairs)` of `(pairs, factors)` logarithms, each of a grid of its own."""
    pairs, factors = logs.shape
    # log(dP/dQ) of one coordinate at the ends of cells.
    slopes = -np.expm1(-logs) / 2
    evidence = columns / 2 * logs[..., None] - slopes[..., None] * _cells(columns)[0]
    step = np.sqrt(2 * columns * (slopes**2).sum(axis=1)) / STEPS
    step = np.where(step > 0, step, 1.0)[:, None, None]
    least = evidence.min(axis=2, keepdims=True)
    low = np.floor((evidence - least) / step)
    # Ends are spread to their neighbours on the grid, the mean of dQ/dP kept.
    rest = evidence - least - step * low
    near = np.clip((np.expm1(-rest) - np.expm1(-step)) / -np.expm1(-step), 0.0, 1.0)
    mass = _at_ends(logs, evidence, columns)
    size = int((low.max(axis=2) + 2).sum(axis=1).max())
    fast = next_fast_len(size, real=True)
    places = low.astype(np.intp) + fast * np.arange(pairs * factors).reshape(pairs, factors, 1)
    parts = np.bincount(places.ravel(), weights=(mass * near).ravel(), minlength=pairs * factors * fast)
    parts += np.bincount(places.ravel() + 1, weights=(mass * (1 - near)).ravel(), minlength=pairs * factors * fast)
    spectra = rfft(parts.reshape(pairs, factors, fast), axis=2)
    total = np.maximum(irfft(spectra.prod(axis=1), fast, axis=1)[:, :size], 0.0)
    start = least.sum(axis=(1, 2))[:, None]
    evidence = start + step[..., 0] * np.arange(size) + 1e-9 * (1 + np.abs(start))
    found = np.empty((len(weights), pairs))
    for row, weight in enumerate(weights):
        said = np.maximum(-np.expm1(np.minimum(math.log(weight) - evidence, 0.0)), 0.0)
        lost = 2 * factors * TAIL + size * 1e-15 + ROUNDING * (1 + weight)
        found[row] = (total * said).sum(axis=1) + lost
        found[row, ~logs.any(axis=1)] = max(0.0, 1.0 - weight)
    return np.asarray(np.minimum(found, 1.0))


def _at_ends(logs: Floats, evidence: Floats, columns: int) -> Floats:
    """Masses of P at the ends of cells: those of a cell are put there with its mass of Q kept, too."""
    ends, mass = _cells(columns)
    other = np.diff(chdtr(columns, ends * np.exp(-logs)[..., None]), axis=2)
    ratios = np.exp(-evidence)  # dQ/dP
    apart = np.diff(ratios, axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = (other / mass - ratios[..., :-1]) / apart
    upper = np.clip(np.where(apart == 0, 0.5, upper), 0.0, 1.0) * mass
    found = np.zeros(evidence.shape)
    found[..., 1:] += upper
    found[..., :-1] += mass - upper
    return found
