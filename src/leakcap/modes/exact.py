"""The finite game (`mode="exact"`): the secret is one of the simulated worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.ground.arrays import Floats
from leakcap.leakage.certify import Effort, Findings, priors_for
from leakcap.leakage.collusion import known_sizes
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import prior, thresholds
from leakcap.modes.interface import NoiseSettings, capped_figures, certificate
from leakcap.noise import GRID, Noise, Randomness, Subspace, calibrate, released_vector
from leakcap.noise.calibrate import Calibrated, Chooser
from leakcap.noise.search import Goal
from leakcap.noise.shapes import information_by_covariance
from leakcap.worlds import Worlds

__all__ = ["CertifiedNoise", "OneOfTheWorlds", "certified", "noised", "stated"]

THEOREMS = (
    "exact-membership",
    "leakage-curve",
    "tasks",
    "mutual-information",
    "roc",
    "collusion",
    "log-det",
    "monotone",
    "confidence",
    "wagers",
    "second-moments",
    "rank-one",
    "rebuild",
    "sampler",
)


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


def certified(
    space: Subspace,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    share_done: Callable[[float], None] = lambda _: None,
    remember: Callable[[Callable[[], Calibrated]], Calibrated] = lambda compute: compute(),
    choose: Chooser | None = None,
) -> tuple[OneOfTheWorlds, Certificate]:
    """The finite game: everything about the attacker is computed, nothing about the data is estimated.

    `remember` may know the outcome of the calibration from before; `choose` finds the shape of the noise.
    """
    goal = Goal.of(caps, worlds, shape=settings.shape, floor=settings.floor, machine=settings.machine)
    found = noised(
        space,
        goal,
        settings,
        _nothing_leaks,
        attempts=attempts,
        rng=rng,
        share_done=share_done,
        remember=remember,
        choose=choose,
    )
    return stated(found, caps, settings, goal=goal, attempts=attempts)


def stated(
    found: CertifiedNoise, caps: tuple[Cap, ...], settings: NoiseSettings, *, goal: Goal, attempts: Attempts
) -> tuple[OneOfTheWorlds, Certificate]:
    """What was certified of some noise, as a releaser and a certificate."""
    worlds, findings, noise = goal.worlds, found.findings, found.noise
    made = certificate(
        "exact",
        worlds,
        noise.space,
        settings,
        capped=capped_figures(caps, goal.caps, findings.values, (worlds.rate, worlds.m)),
        membership_success=findings.membership,
        mutual_information=findings.mutual_information,
        leakage_curve=findings.curve,
        hockey_sticks=findings.sticks,
        known_memberships=findings.known,
        name_a_member_success=findings.naming,
        confidence=1 - attempts.gamma,
        gamma=attempts.gamma,
        gamma_used=findings.gamma,
        gamma_again=findings.gamma_again,
        attempt=found.attempt,
        bounds=findings.bounds,
        draws=(
            *((("second moments", findings.effort.screening),) if findings.effort.screening else ()),
            *((("naming", findings.effort.naming),) if findings.effort.naming else ()),
            *((f"units, stage {i}", draws) for i, draws in enumerate(findings.effort.stages, start=1)),
            ("worlds", findings.effort.worlds),
            ("known", findings.effort.known),
        ),
        integrated=findings.integrated,
        sampler_distance=found.distance,
        grid_step=found.step,
        theorems=(*THEOREMS, worlds.proof),
        log_det=information_by_covariance(noise.space.coordinates / noise.deviations),
        signal=float((noise.space.variances / noise.deviations**2).sum()) * (1 + 1e-12),
    )
    return OneOfTheWorlds(noise, found.step, findings.exposure), made


@dataclass(frozen=True, eq=False)
class CertifiedNoise:
    """Noise that keeps the caps of a finite game, and what was certified for it."""

    noise: Noise
    step: float
    distance: float
    attempt: int
    findings: Findings

    @classmethod
    def of(cls, calibrated: Calibrated, space: Subspace, floor: float) -> CertifiedNoise:
        """Calibrated noise in its place: in the very coordinates that were certified."""
        space = replace(space.turned(calibrated.turn), coordinates=calibrated.coordinates)
        return cls(
            Noise(space, calibrated.deviations, floor),
            calibrated.step,
            calibrated.distance,
            attempt=calibrated.attempt,
            findings=calibrated.findings,
        )


def noised(
    space: Subspace,
    goal: Goal,
    settings: NoiseSettings,
    nothing_leaks: Callable[[Goal], Findings],
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    share_done: Callable[[float], None],
    remember: Callable[[Callable[[], Calibrated]], Calibrated],
    choose: Chooser | None = None,
) -> CertifiedNoise:
    """The least noise for a goal; none, and what then holds (`nothing_leaks`), where all answers are equal."""
    if space.rank == 0:
        return CertifiedNoise(
            Noise(space, np.empty(0), settings.floor), GRID, 0.0, attempt=0, findings=nothing_leaks(goal)
        )
    calibrated = remember(
        partial(
            calibrate,
            goal,
            space.coordinates,
            space.variances,
            attempts=attempts,
            rng=rng,
            draws=settings.draws,
            share_done=share_done,
            choose=choose,
        )
    )
    return CertifiedNoise.of(calibrated, space, settings.floor)


def _nothing_leaks(goal: Goal) -> Findings:
    """All answers are equal: every attacker is left with the prior."""
    worlds = goal.worlds
    priors = priors_for(worlds.m, goal.wanted)
    cuts = thresholds(worlds.rate)
    return Findings(
        exposure=np.full(worlds.n, 0.5),
        membership=0.5,
        naming=worlds.rate,
        sticks=tuple((float(cut), 0.0) for cut in cuts),
        curve=tuple((float(p), float(p)) for p in priors),
        mutual_information=0.0,
        known=_nothing_known(worlds),
        values=tuple(prior(cap, worlds.rate, worlds.m) for cap in goal.caps),
        integrated=True,
        gamma=0.0,
        gamma_again=0.0,
        bounds=0,
        effort=Effort((), 0, 0),
    )


def _nothing_known(worlds: Worlds) -> tuple[tuple[int, float], ...]:
    # Without a release, known memberships still tell something about the rest of a small set of worlds; that
    # is not bounded here, so it is reported as unbounded.
    return tuple((k, 1.0) for k in known_sizes(worlds.m, worlds.n))
