"""Certificates whose every figure follows from one bound on the mutual information."""

from __future__ import annotations

import math

from leakcap import convert
from leakcap.caps import Cap, Identification, Task
from leakcap.certificate import Certificate
from leakcap.errors import CapError
from leakcap.leakage.certify import priors_for
from leakcap.leakage.measures import (
    Needs,
    Observed,
    balanced_by_information,
    check_limit,
    information_budget,
    measure,
)
from leakcap.modes.record import ASSUMPTIONS, NOT_PROMISED, POOL_PUBLIC, Settings, capped_figures
from leakcap.noise import GRID, Subspace
from leakcap.version import __version__
from leakcap.worlds import Worlds

__all__ = ["budget_for", "by_information", "secrets"]


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


def by_information(
    kind: str, caps: tuple[Cap, ...], worlds: Worlds, mi: float, m: int, space: Subspace, settings: Settings
) -> Certificate:
    """A certificate whose every figure follows from one bound on the information."""
    seen = Observed(worlds.rate, secrets(worlds), mi)
    values = tuple(measure(cap, seen, lambda mean: mean.estimate) for cap in caps)
    return Certificate(
        kind="simulation" if settings.seeded and kind != "empirical" else kind,
        mode=kind,
        capped=capped_figures(caps, caps, values, worlds.rate, seen.m),
        membership_success=balanced_by_information(mi, worlds.rate),
        mutual_information=mi,
        leakage_curve=tuple(
            (float(p), float(convert.posterior(mi, float(p)))) for p in priors_for(10**6, Needs()) if p > 0
        ),
        hockey_sticks=(),
        known_memberships=(),
        name_a_member_success=float(convert.posterior(mi, worlds.rate)),
        worlds=m,
        units=worlds.n,
        rate=f"{worlds.share.numerator}/{worlds.share.denominator}",
        design=worlds.design,
        outputs=len(space.centre),
        noised_directions=len(space.centre) if settings.floor else space.rank,
        confidence=0.0,
        gamma=1.0,
        gamma_used=1.0,
        attempt=1,
        bounds=0,
        draws=(("worlds", m),),
        integrated=False,
        price_of_confidence=1.0,
        sampler_distance=0.0,
        grid_step=GRID,
        pool_public=POOL_PUBLIC + settings.pool_public,
        declared_public=settings.public,
        assumptions=ASSUMPTIONS,
        not_promised=NOT_PROMISED,
        theorems=("currency",),
        leakcap_version=__version__,
    )
