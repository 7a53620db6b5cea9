"""A bound for everybody from second moments: `E|a_u| <= sqrt(b_u' C b_u)`, with one matrix `C` for all units.

`a_u = q_u - rate` is linear in the posterior: a row `t` of evidence times the unit's column `b_u`. The mean of `t t'`
over many releases is found without looking at units, and bounds what any of them can suffer. Units whose bound is
clearly below what matters need no draws of their own (docs/proofs/second-moments.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import crew, threads
from leakcap.ground.proofs import proves
from leakcap.leakage.membership import TILE, Evidence, evidence, unit_columns
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import Worlds

__all__ = ["SecondMoments", "moments_of", "root_upper", "screened_bounds", "stick_upper"]

LEFT_OUT = 0.02  # of the mean square of an average unit: what directions that are not looked at may add


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """`matrix`: the mean of `t t'` over `draws` independent releases; `rounding`: of each single `a_u`."""

    matrix: Floats
    draws: int
    rounding: float

    def directions(self) -> tuple[Floats, float]:
        """`(factor, rest)` with `b' matrix b <= |factor' b|^2 + rest |b|^2`: small directions count as one size."""
        size, turn = np.linalg.eigh(self.matrix)
        added = np.arange(1, len(size) + 1) * size - np.cumsum(size)  # if all up to this one count like it
        last = int(np.searchsorted(added, LEFT_OUT * size.sum(), side="right")) - 1
        rest = max(float(size[last]), 0.0)
        # Eigenvalues and the matrix itself are right to a multiple of double precision.
        slip = 8 * len(size) * np.finfo(float).eps * max(float(size.sum()), float(size[-1]))
        return turn[:, last + 1 :] * np.sqrt(np.maximum(size[last + 1 :] - rest, 0.0)), rest + slip

    def roots(self, worlds: Worlds) -> Floats:
        """The root of the mean of `a_u^2` over these releases for every unit, rounded up."""
        factor, rest = self.directions()
        width, rate = len(factor), worlds.rate
        squared = width * (1.0 if worlds.paired else max(rate, 1 - rate) ** 2)  # a column's length, at most
        single = np.ascontiguousarray(factor.T, dtype=np.float32)
        shift = 0.0 if worlds.paired else rate * factor.sum(axis=0)[:, None]
        # Sums of `width` products in single precision: each is off by this part of its absolute sum, at most.
        off = (width + 4) * 2.0**-24 * float(np.linalg.norm(np.abs(factor).sum(axis=0)))
        found = np.empty(worlds.n)

        def tile_squares(start: int) -> None:
            tile = slice(start, min(start + TILE, worlds.n))
            along = (single @ unit_columns(worlds, tile)).astype(np.float64) - shift
            found[tile] = np.einsum("ru,ru->u", along, along)

        with crew(float(max(single.size, 64 * width)) * worlds.n) as pool:
            list(pool.map(tile_squares, range(0, worlds.n, TILE)))
        return np.asarray(np.sqrt((np.sqrt(found) + off) ** 2 + rest * squared) * (1 + 2.0**-40))


def moments_of(evidence_of: Callable[[int], Evidence], blocks: int, draws: int, work: float) -> SecondMoments:
    """From blocks of evidence of independent releases; `work` is about how many multiplications they take."""

    def block(index: int) -> tuple[Floats, float]:
        seen = evidence_of(index)
        return dsyrk(1.0, seen.table.astype(np.float64).T), seen.rounding  # its upper half

    total: Floats = np.zeros(())
    rounding = 0.0
    with crew(work) as pool:
        for start in range(0, blocks, threads()):  # so that few matrices wait to be added
            for part, slip in pool.map(block, range(start, min(start + threads(), blocks))):
                total = total + part
                rounding = max(rounding, slip)
    half = total / draws
    return SecondMoments(np.triu(half) + np.triu(half, 1).T, draws, rounding)


@proves("second-moments")
def root_upper(root: Floats, seen: SecondMoments, most: float, log_term: float) -> Floats:
    """Bounds on the root of `E a_u^2`, and so on `E|a_u|`, from the root over the releases seen.

    Guarantee: for `|a_u| <= most`, each fails with probability at most `exp(-log_term)` over the draws.
    """
    term = (most + seen.rounding) ** 2 * log_term / seen.draws
    square = root**2
    mean = square + term + np.sqrt(2 * square * term + term**2)
    return np.asarray(np.minimum(np.sqrt(mean) * (1 + 2.0**-40) + seen.rounding, most))


@proves("second-moments")
def stick_upper(root: Floats, cut: float) -> Floats:
    """A bound on `E(a_u - cut)_+` from one on the root of `E a_u^2`: `(a - c)_+ <= a^2 / (4 c)`, and `<= |a|`."""
    return np.asarray(np.minimum(root**2 / (4 * cut) * (1 + 2.0**-40), root))


@proves("second-moments")
def screened_bounds(source: Sampled, worlds: Worlds, thresholds: Floats, log_term: float) -> list[Floats]:
    """Bounds for every unit on the balanced success, then on the mean of (q_u - t)_+ for each threshold t.

    Guarantee: all bounds of one unit fail with probability at most `exp(-log_term)` together, over the draws.
    """
    work = float(source.rows * source.blocks) * worlds.m**2 / 4
    seen = moments_of(
        lambda block: evidence(source.view(block), worlds.paired, exact=False), source.blocks, source.draws, work
    )
    rate = worlds.rate
    root = root_upper(seen.roots(worlds), seen, max(rate, 1 - rate), log_term)
    return [0.5 + 0.25 / (rate * (1 - rate)) * root, *(stick_upper(root, float(t) - rate) for t in thresholds)]
