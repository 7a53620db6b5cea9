"""Nats that an obfuscation carries about one unit's membership, for every swap: by log-determinants and by traces.

Log-determinants (ours) are never above the closest pairs of the paper, by traces, and about half of them for close
pairs; neither is above the entropy of the bit. Proof page: obfuscation-information.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.pairs import SwapFactors

__all__ = ["log_det_nats", "trace_most", "trace_nats"]


@proves("obfuscation-information")
def log_det_nats(found: SwapFactors, rates: Floats, columns: int) -> Floats:
    """`columns/2 (log det(q S_in + (1-q) S_out) - q log det S_in - (1-q) log det S_out)`, at most the bit's entropy.

    Factors are `(..., units, blocks)`, rates `(units,)`; blocks add up.

    Guarantee: its mean over swaps is at least the information of the release about the unit's membership.
    """
    wide, narrow = (_log_det(logs, rates[..., None]) for logs in (found.wider, -found.narrower))
    total = (wide + narrow).sum(axis=-1)
    entropy = -rates * np.log(rates) - (1 - rates) * np.log1p(-rates)
    return np.asarray(np.minimum(columns / 2 * total * (1 + 1e-9) + 1e-12, entropy))


def _log_det(logs: Floats, rates: Floats) -> Floats:
    """`log(q + (1-q) l) - (1-q) log l` for an eigenvalue `l` of the law without the unit beside that with it."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.logaddexp(np.log(rates), np.log1p(-rates) + logs) - (1 - rates) * logs
    return np.where(np.isfinite(value), np.maximum(value, 0.0), np.inf)


@proves("obfuscation-information")
def trace_nats(found: SwapFactors, rates: Floats, columns: int) -> Floats:
    """`columns/2 q (1-q) (Tr S_in^-1 S_out + Tr S_out^-1 S_in - 2 m)`: Type I of Theorem 5, corrected.

    Guarantee: its mean over swaps is at least the information of the release about the unit's membership.
    """
    with np.errstate(over="ignore"):
        total = 4 * (np.sinh(found.wider / 2) ** 2 + np.sinh(found.narrower / 2) ** 2).sum(axis=-1)
    return np.asarray(columns / 2 * rates * (1 - rates) * total)


def trace_most(obfuscated: Obfuscated, rates: Floats) -> Floats:
    """What `trace_nats` cannot exceed, from the longest row of the pool and the fullest column of the mixing."""
    law = obfuscated.law
    apart, share = 2 * obfuscated.longest, np.sqrt(law.heaviest) / obfuscated.noise_std
    half = 2 * np.sqrt(law.columns) * apart * share + (apart * share) ** 2
    return np.asarray(obfuscated.blocks * rates * (1 - rates) * half * 1.001)
