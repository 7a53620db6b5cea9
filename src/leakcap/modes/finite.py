"""The finite game (`mode="exact"`): the secret is one of the simulated worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.certificate import Certificate
from leakcap.leakage.certify import Effort, Findings, priors_for
from leakcap.leakage.collusion import known_sizes
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import needs, prior, thresholds
from leakcap.modes.record import ASSUMPTIONS, NOT_PROMISED, POOL_PUBLIC, Settings, capped_figures
from leakcap.noise import GRID, Noise, Randomness, Subspace, calibrate, released_vector
from leakcap.noise.calibrate import Calibrated
from leakcap.version import __version__
from leakcap.worlds import Worlds

__all__ = ["OneOfTheWorlds", "exact"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneOfTheWorlds:
    """The secret is one of the simulated worlds; its stored answer is released, never a re-run."""

    noise: Noise
    step: float
    exposure: Floats

    def vector(self, randomness: Randomness) -> Floats:
        coordinates = self.noise.space.coordinates
        secret = randomness.below(len(coordinates))  # drawn last: nothing else depends on it
        return released_vector(self.noise, coordinates[secret], self.step, randomness)


def exact(
    space: Subspace,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    attempts: Attempts,
    rng: np.random.Generator,
    settings: Settings,
    share_done: Callable[[float], None] = lambda _: None,
    remember: Callable[[Callable[[], Calibrated]], Calibrated] = lambda compute: compute(),
) -> tuple[OneOfTheWorlds, Certificate]:
    """The finite game: everything about the attacker is computed, nothing about the data is estimated.

    `remember` may know the outcome of the calibration from before.
    """
    if space.rank == 0:
        deviations, step, distance, attempt = np.empty(0), GRID, 0.0, 0
        found = _nothing_leaks(worlds, caps)
    else:
        done = remember(
            partial(
                calibrate,
                space.coordinates,
                space.variances,
                worlds,
                caps,
                attempts,
                rng,
                settings.shape,
                settings.floor,
                settings.draws,
                settings.machine,
                share_done,
            )
        )
        deviations, step, distance, attempt = done.deviations, done.step, done.distance, done.attempt
        found = done.findings
        space = replace(space.turned(done.turn), coordinates=done.coordinates)  # the very ones that were certified
    noise = Noise(space, deviations, settings.floor)
    certificate = Certificate(
        kind="simulation" if settings.seeded else "exact",
        mode="exact",
        capped=capped_figures(caps, needs(caps, worlds)[1], found.values, worlds.rate, worlds.m),
        membership_success=found.membership,
        mutual_information=found.mutual_information,
        leakage_curve=found.curve,
        hockey_sticks=found.sticks,
        known_memberships=found.known,
        name_a_member_success=found.naming,
        worlds=worlds.m,
        units=worlds.n,
        rate=f"{worlds.share.numerator}/{worlds.share.denominator}",
        design=worlds.design,
        outputs=len(space.centre),
        noised_directions=len(space.centre) if settings.floor else space.rank,
        confidence=1 - attempts.gamma,
        gamma=attempts.gamma,
        gamma_used=found.gamma,
        attempt=attempt,
        bounds=found.bounds,
        draws=(
            *((f"units, stage {i}", draws) for i, draws in enumerate(found.effort.stages, start=1)),
            ("worlds", found.effort.worlds),
            ("known", found.effort.known),
        ),
        integrated=found.integrated,
        price_of_confidence=1.0,
        sampler_distance=distance,
        grid_step=step,
        pool_public=POOL_PUBLIC + settings.pool_public,
        declared_public=settings.public,
        assumptions=ASSUMPTIONS,
        not_promised=NOT_PROMISED,
        theorems=(
            "exact-membership",
            "leakage-curve",
            "tasks",
            "mutual-information",
            "roc",
            "collusion",
            "log-det",
            "monotone",
            "confidence",
            "rank-one",
            "rebuild",
            "sampler",
            "uniform-halves",
        ),
        leakcap_version=__version__,
    )
    return OneOfTheWorlds(noise, step, found.exposure), certificate


def _nothing_leaks(worlds: Worlds, caps: tuple[Cap, ...]) -> Findings:
    """All answers are equal: every attacker is left with the prior."""
    wanted, concrete = needs(caps, worlds)
    priors = priors_for(worlds.m, wanted)
    cuts = thresholds(worlds.rate)
    return Findings(
        exposure=np.full(worlds.n, 0.5),
        membership=0.5,
        naming=worlds.rate,
        sticks=tuple((float(cut), 0.0) for cut in cuts),
        curve=tuple((float(p), float(p)) for p in priors),
        mutual_information=0.0,
        known=_nothing_known(worlds),
        values=tuple(prior(cap, worlds.rate, worlds.m) for cap in concrete),
        integrated=True,
        gamma=0.0,
        bounds=0,
        effort=Effort((), 0, 0),
    )


def _nothing_known(worlds: Worlds) -> tuple[tuple[int, float], ...]:
    # Without a release, known memberships still tell something about the rest of a small set of worlds; that
    # is not bounded here, so it is reported as unbounded.
    return tuple((k, 1.0) for k in known_sizes(worlds.m, worlds.n))
