"""How well laws are told apart that differ in two coordinates of every block: a convolution, from above.

Rows may be cut into blocks with a mask of their own each. Given sample and mixing the blocks are independent, so the
evidence of a pair of laws is a sum of independent terms, one for each factor of each block. Every term is rounded up
to a grid before they are added. For many pairs at once there are two bounds that need no convolution.
Proof page: obfuscation-blocks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import chdtr, chdtri

from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.obfuscation.chi_squares import pair_table

__all__ = ["blocks_told_apart", "blocks_told_apart_quickly"]

CELLS = 2048  # of each chi-square
STEPS = 256  # of the grid, in a deviation of the evidence
TAIL = 1e-9
ROUNDING = 1e-11
LARGEST = 30.0  # logarithm of a factor beyond which nothing is hidden


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
    checks.positive(weight=weight)
    both = np.concatenate([wider, -np.asarray(narrower)], axis=-1)
    shape = both.shape[:-1]
    found = [_convolved(logs, columns, weight) for logs in both.reshape(-1, both.shape[-1])]
    return np.array(found).reshape(shape)


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
    apart = (1 - weight) ** 2 / 4 - weight * np.expm1(log_square)
    by_affinity = (1 - weight) / 2 + np.sqrt(apart) * (1 + 1e-9) + ROUNDING * (1 + weight)
    return np.asarray(np.minimum(alike, np.minimum(by_affinity, 1.0)))


@lru_cache(maxsize=16)
def _cells(columns: int) -> tuple[Floats, Floats]:
    """Ends of the cells of a chi-square, and their masses."""
    least, most = (float(chdtri(columns, share)) for share in (1 - TAIL, TAIL))
    ends = np.linspace(np.cbrt(least), np.cbrt(most), CELLS + 1) ** 3
    return ends, np.diff(chdtr(columns, ends))


def _convolved(logs: Floats, columns: int, weight: float) -> float:
    logs = logs[logs != 0]
    if not len(logs):
        return max(0.0, 1.0 - weight)
    if not np.abs(logs).max() <= LARGEST:
        return 1.0
    ends, mass = _cells(columns)
    # log(dP/dQ) of one coordinate: columns/2 log - slope A; the end of a cell at which it is larger stands for all.
    slopes = -np.expm1(-logs) / 2
    step = math.sqrt(2 * columns * float((slopes**2).sum())) / STEPS
    start, parts = 0.0, []
    for log, slope in zip(logs, slopes, strict=True):
        evidence = columns / 2 * log - slope * (ends[:-1] if slope > 0 else ends[1:])
        least = float(evidence.min())
        parts.append(np.bincount(np.ceil((evidence - least) / step).astype(np.intp), weights=mass))
        start += least
    size = sum(len(part) for part in parts)
    fast = next_fast_len(size, real=True)
    product = np.ones(fast // 2 + 1, dtype=np.complex128)
    for part in parts:
        product *= rfft(part, fast)
    total = np.maximum(irfft(product, fast)[:size], 0.0)
    evidence = start + step * np.arange(size) + 1e-9 * (1 + abs(start))
    told = float(total @ np.maximum(-np.expm1(np.minimum(math.log(weight) - evidence, 0.0)), 0.0))
    return min(1.0, told + 2 * len(logs) * TAIL + size * 1e-15 + ROUNDING)
