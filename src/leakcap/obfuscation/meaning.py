"""What nats about a sample, or about one unit, mean for attackers who want something else than balanced success."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from leakcap import convert
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.obfuscation.sampled import MixingLaw

__all__ = ["average_membership", "claim_precision", "name_any_member", "overlap_priors", "reconstruction"]


def reconstruction(nats: float, prior: float) -> float:
    """Highest success at rebuilding somebody's row well enough, where a blind guess succeeds with `prior`.

    `nats` are those about the whole sample.
    """
    return float(convert.posterior(nats, prior))


def name_any_member(nats: float, law: MixingLaw) -> float:
    """Highest success at naming somebody who was sampled; `nats` are those about the whole sample."""
    return float(convert.posterior(nats, float(law.rates.max())))


def claim_precision(nats: float, claims: float, rate: float) -> float:
    """Highest share of right ones among claims "this unit was sampled" made in a share `claims` of releases.

    `nats` are those about that unit. Differs from the paper: positive identification has no prior of its own.
    """
    return float(convert.precision(nats, claims, rate))


@proves("obfuscation-information")
def average_membership(nats: float, law: MixingLaw) -> float:
    """Highest share of the sampled that a guess of the whole sample contains, on average.

    Guarantee: if the release carries at most `nats` about the whole sample, for a guess that takes as many units of
    every class as are sampled (Corollary 1, corrected: a guess shares `j` units with a class's sample in
    `C(n, j) C(N-n, n-j)` ways).
    """
    if not nats >= 0:
        raise InputError("nats must be 0 or above")
    priors = overlap_priors(law)
    bounds = np.ones(len(priors))
    some = priors < 1
    if some.any():
        bounds[some] = np.asarray(convert.posterior(nats, np.maximum(priors[some], 1e-300)))
    return float(min(1.0, bounds.mean() * (1 + 1e-12)))


def overlap_priors(law: MixingLaw) -> Floats:
    """`(n,)`: how likely a blind guess of the sample shares at least 1, 2, ..., n units with it, from above."""
    total = np.ones(1)
    for size in np.bincount(law.labels):
        shared = np.arange(law.sampled + 1)
        logs = _log_choose(law.sampled, shared) + _log_choose(size - law.sampled, law.sampled - shared)
        chance = np.exp(logs - _log_choose(size, np.array(law.sampled)))
        total = np.convolve(total, chance)
    tail = np.cumsum(total[::-1])[::-1][1:]
    return np.asarray(np.minimum(tail * (1 + 1e-9), 1.0))


def _log_choose(size: int, chosen: Ints) -> Floats:
    valid = (chosen >= 0) & (chosen <= size)
    some = np.where(valid, chosen, 0)
    return np.where(valid, gammaln(size + 1) - gammaln(some + 1) - gammaln(size - some + 1), -np.inf)
