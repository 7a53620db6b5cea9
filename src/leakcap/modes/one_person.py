"""The certificate of `mode="individual"` where it was sampled: one person named in advance, with a confidence."""

from __future__ import annotations

import math
from typing import Any

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.leakage.confidence import Attempts
from leakcap.modes.individual import ONE_PERSON
from leakcap.modes.interface import COLLUSION, NOT_PROMISED, POOL_PUBLIC, NoiseSettings, capped_figures, certificate
from leakcap.noise import Subspace
from leakcap.worlds import Worlds

__all__ = ["one_person"]

PILOT_PUBLIC = (
    "Found by looking at random parts of the whole pool, and no secret: in which directions the answer is noised, and "
    "how far out it is cut."
)


def one_person(
    caps: tuple[Cap, ...],
    worlds: Worlds,
    space: Subspace,
    /,
    *,
    settings: NoiseSettings,
    attempts: Attempts,
    proof: str,
    worst: float,
    **figures: Any,
) -> Certificate:
    """`worst` bounds the success against anybody; about everything else nothing is said."""
    sampled = bool(space.rank)
    pages = (proof, "adjacent", "wagers") if proof == "sampled-swaps" else (proof, "exact-membership", "wagers")
    return certificate(
        "individual",
        worlds,
        space,
        settings,
        kind="confidence",
        capped=capped_figures(caps, caps, (worst,) * len(caps), (worlds.rate, 2)),
        membership_success=worst,
        mutual_information=worlds.n * math.log(2) * (1 + 1e-12),  # all there is
        name_a_member_success=1.0,
        leakage_curve=(),
        confidence=1 - attempts.gamma,
        gamma=attempts.gamma,
        attempt=attempts.made if sampled else 1,
        pool_public=(*POOL_PUBLIC, PILOT_PUBLIC, *settings.pool_public),
        not_promised=(ONE_PERSON, *(line for line in NOT_PROMISED if line != COLLUSION)),
        theorems=(*pages, "rebuild", "sampler", "uniform-halves"),
        **{"gamma_used": attempts.share(attempts.made) if sampled else 0.0} | figures,
    )
