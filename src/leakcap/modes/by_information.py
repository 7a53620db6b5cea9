"""Figures of a certificate that follow from a bound on the mutual information, and for one person from the signal."""

from __future__ import annotations

import math
from typing import Any

from leakcap import convert
from leakcap.caps import Cap, Identification, Membership, Task
from leakcap.errors import CapError
from leakcap.leakage.certify import priors_for
from leakcap.leakage.measures import Needs, Observed, balanced_by_information, check_limit, information_budget, measure
from leakcap.leakage.trace import signal_for, trace_success
from leakcap.modes.interface import capped_figures
from leakcap.worlds import Worlds
from leakcap.worlds.draw import FAIR_BITS

__all__ = ["budget_for", "budgets_for", "figures_by_information", "refuse_impossible", "secrets"]


def budget_for(caps: tuple[Cap, ...], worlds: Worlds) -> float:
    """The information that keeps all caps when the secret may be any subset."""
    refuse_impossible(caps, worlds)
    return information_budget(caps, worlds.rate, secrets(worlds))


def budgets_for(caps: tuple[Cap, ...], worlds: Worlds, distance: float) -> tuple[float, float]:
    """The information and the signal that keep all caps: memberships through the signal, which needs less noise.

    `distance` is the sampler's; it is added to a success.
    """
    refuse_impossible(caps, worlds)
    others = tuple(cap for cap in caps if not _by_signal(cap))
    members = [cap.limit for cap in caps if _by_signal(cap)]
    budget = information_budget(others, worlds.rate, secrets(worlds)) if others else math.inf
    return budget, signal_for(min(members) - distance, worlds.rate) if members else math.inf


def refuse_impossible(caps: tuple[Cap, ...], worlds: Worlds) -> None:
    """Refuse caps that make no sense where the secret may be any subset, or that no noise keeps."""
    for cap in caps:
        if isinstance(cap, Task):
            raise CapError("a task names finite worlds: use mode='exact'")
        if isinstance(cap, Identification) and "stratified" in worlds.design:
            raise CapError("identification is not offered for strata in this mode: use mode='exact'")
        check_limit(cap, worlds.rate, secrets(worlds))


def _by_signal(cap: Cap) -> bool:
    return type(cap) is Membership  # a kind derived from it may have its limit in another unit


def secrets(worlds: Worlds) -> int:
    """One over the probability of the likeliest subset (for unstratified draws); at most 2^1000, on the safe side."""
    n, parts = worlds.n, worlds.share.denominator
    if worlds.design == FAIR_BITS:
        return int(min(2**n, 2**1000))
    small, large = math.comb(n, n // parts), math.comb(n, -(-n // parts))
    count = 2 * small if parts == 2 and n % 2 else min(small, large)
    return min(count, 2**1000)


def figures_by_information(
    caps: tuple[Cap, ...], worlds: Worlds, mi: float, *, signal: float = math.inf, distance: float = 0.0
) -> dict[str, Any]:
    """The figures of a certificate that follow from a bound on the information, `mi` nats, and one on the signal."""
    seen = Observed(worlds.rate, secrets(worlds), mi)
    by_signal = min(1.0, trace_success(signal, worlds.rate) + distance)
    success = min(by_signal, balanced_by_information(mi, worlds.rate))
    values = tuple(success if _by_signal(cap) else measure(cap, seen, lambda mean: mean.estimate) for cap in caps)
    priors = (float(prior) for prior in priors_for(10**6, Needs()) if prior > 0)
    return {
        "capped": capped_figures(caps, caps, values, (worlds.rate, seen.m)),
        "membership_success": success,
        "mutual_information": mi,
        "leakage_curve": tuple((prior, float(convert.posterior(mi, prior))) for prior in priors),
        "name_a_member_success": float(convert.posterior(mi, worlds.rate)),
    }
