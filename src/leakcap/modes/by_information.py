"""Figures of a certificate that all follow from one bound on the mutual information."""

from __future__ import annotations

import math
from typing import Any

from leakcap import convert
from leakcap.caps import Cap, Identification, Task
from leakcap.errors import CapError
from leakcap.leakage.certify import priors_for
from leakcap.leakage.measures import Needs, Observed, balanced_by_information, check_limit, information_budget, measure
from leakcap.modes.interface import capped_figures
from leakcap.worlds import Worlds

__all__ = ["budget_for", "figures_by_information", "secrets"]


def budget_for(caps: tuple[Cap, ...], worlds: Worlds) -> float:
    """The information that keeps all caps when the secret may be any subset."""
    m = secrets(worlds)
    for cap in caps:
        if isinstance(cap, Task):
            raise CapError("a task names finite worlds: use mode='exact'")
        if isinstance(cap, Identification) and "stratified" in worlds.design:
            raise CapError("identification is not offered for strata in this mode: use mode='exact'")
        check_limit(cap, worlds.rate, m)
    return information_budget(caps, worlds.rate, m)


def secrets(worlds: Worlds) -> int:
    """One over the probability of the likeliest subset (for unstratified draws); at most 2^1000, on the safe side."""
    n, parts = worlds.n, worlds.share.denominator
    small, large = math.comb(n, n // parts), math.comb(n, -(-n // parts))
    count = 2 * small if parts == 2 and n % 2 else min(small, large)
    return min(count, 2**1000)


def figures_by_information(caps: tuple[Cap, ...], worlds: Worlds, mi: float) -> dict[str, Any]:
    """The figures of a certificate that follow from one bound on the information, `mi` nats."""
    seen = Observed(worlds.rate, secrets(worlds), mi)
    values = tuple(measure(cap, seen, lambda mean: mean.estimate) for cap in caps)
    priors = (float(prior) for prior in priors_for(10**6, Needs()) if prior > 0)
    return {
        "capped": capped_figures(caps, caps, values, (worlds.rate, seen.m)),
        "membership_success": balanced_by_information(mi, worlds.rate),
        "mutual_information": mi,
        "leakage_curve": tuple((prior, float(convert.posterior(mi, prior))) for prior in priors),
        "name_a_member_success": float(convert.posterior(mi, worlds.rate)),
    }
