"""The three ways to a release: `exact` (finite worlds), `confidence` (a fresh half), `empirical` (for comparison).

Each turns outputs and caps into a `Mechanism`: something that can make one released vector, and its certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leakcap import convert
from leakcap.caps import Cap, Identification, Task
from leakcap.certificate import CappedFigure, Certificate
from leakcap.errors import CapError
from leakcap.leakage.certify import Effort, Findings, entropy_slack, priors_for
from leakcap.leakage.collusion import known_sizes
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import (
    Needs,
    Observed,
    balanced_by_information,
    check_limit,
    information_budget,
    measure,
    needs,
    prior,
    thresholds,
)
from leakcap.noise import (
    GRID,
    Noise,
    Randomness,
    Subspace,
    calibrate,
    information_ceiling,
    released_vector,
    sampler_distance,
    shape_variances,
    subspace,
)
from leakcap.proofs import proves
from leakcap.version import __version__
from leakcap.worlds import Worlds

__all__ = ["FreshWorld", "Mechanism", "OneOfTheWorlds", "Settings", "confidence", "empirical", "exact"]

Floats = npt.NDArray[np.float64]
Rerun = Callable[[npt.NDArray[np.bool_]], "Floats | None"]  # the answer in a world, None where there is none


@dataclass(frozen=True, eq=False)
class Settings:
    """How noise is to be chosen."""

    shape: str
    floor: float
    weights: npt.ArrayLike | None
    draws: int | None
    memory: int
    seeded: bool
    public: tuple[str, ...]
    constants: tuple[str, ...]  # what passes into the answer because it is equal in all worlds, in words


class Mechanism(Protocol):
    """Able to make released vectors; custodian side."""

    @property
    def noise(self) -> Noise: ...

    @property
    def exposure(self) -> Floats: ...

    def vector(self, randomness: Randomness) -> Floats:
        """A released vector, with a secret world and noise of its own."""
        ...


POOL_PUBLIC = (
    "Published: the figures on this page, the error bars, the number of units, the form of the answer (shape, keys, "
    "labels) and the grid on which it leaves.",
    "Not published, but the promise does not rest on hiding it: the mean answer over worlds, and the shape and scale "
    "of the noise.",
)
NOT_PROMISED = (
    "Whether a person's data are in the pool at all: the promise is about who of the pool was used.",
    "Conclusions about people from what the answer truly says about the whole pool.",
    "Several releases together: this certificate stands alone. A second release of the same data, with a fresh "
    "secret, is covered by neither.",
    "Attackers who learn participants' names elsewhere, beyond the numbers given above.",
    "Timing, memory use and whatever the custodian tells besides the released value.",
)
ASSUMPTIONS = (
    "Nobody but the custodian learns the secret world or the noise; both come from the operating system.",
    "The function sees the data of the world it is run on, and pool-public settings, nothing else.",
    "The generator behind simulated worlds and certifying draws (PCG64) behaves like independent random numbers.",
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


def exact(
    space: Subspace,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    attempts: Attempts,
    rng: np.random.Generator,
    settings: Settings,
) -> tuple[OneOfTheWorlds, Certificate]:
    """The finite game: everything about the attacker is computed, nothing about the data is estimated."""
    if space.rank == 0:
        deviations, step, distance, attempt = np.empty(0), GRID, 0.0, 0
        found = _nothing_leaks(worlds, caps)
    else:
        done = calibrate(
            space.coordinates,
            space.variances,
            worlds,
            caps,
            attempts,
            rng,
            settings.shape,
            settings.floor,
            settings.draws,
            settings.memory,
        )
        deviations, step, distance, attempt = done.deviations, done.step, done.distance, done.attempt
        found = done.findings
        space = replace(space.turned(done.turn), coordinates=done.coordinates)  # the very ones that were certified
    noise = Noise(space, deviations, settings.floor)
    certificate = Certificate(
        kind="simulation" if settings.seeded else "exact",
        mode="exact",
        capped=_capped(caps, needs(caps, worlds)[1], found.values, worlds.rate, worlds.m),
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
        draws={
            "units": found.effort.units,
            "screening": found.effort.screening,
            "worlds": found.effort.worlds,
            "known": found.effort.known,
        },
        integrated=found.integrated,
        sampler_distance=distance,
        grid_step=step,
        pool_public=POOL_PUBLIC + settings.constants,
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
        effort=Effort(0, 0, 0, 0),
    )


def _nothing_known(worlds: Worlds) -> tuple[tuple[int, float], ...]:
    # Without a release, known memberships still tell something about the rest of a small set of worlds; that
    # is not bounded here, so it is reported as unbounded.
    return tuple((k, 1.0) for k in known_sizes(worlds.m, worlds.n))


def _capped(
    caps: tuple[Cap, ...], concrete: tuple[Cap, ...], values: tuple[float, ...], rate: float, m: int
) -> tuple[CappedFigure, ...]:
    return tuple(
        CappedFigure(type(cap).__name__, cap.describe(), prior(full, rate, m), cap.limit, value)
        for cap, full, value in zip(caps, concrete, values, strict=True)
    )


@dataclass(frozen=True, eq=False)
class FreshWorld:
    """The secret is a fresh random world; the function runs once more, on it.

    Whatever happens there, a vector comes out: an answer of another form, an error or a NaN counts as the
    centre, and coordinates are clipped. Both are part of the mechanism.
    """

    noise: Noise
    low: Floats
    high: Floats
    rerun: Rerun
    draw: Callable[[Randomness], npt.NDArray[np.bool_]]
    exposure: Floats

    def vector(self, randomness: Randomness) -> Floats:
        answer = self.rerun(self.draw(randomness))
        space = self.noise.space
        coordinates = _coordinates(space, answer)
        return released_vector(self.noise, np.clip(coordinates, self.low, self.high), GRID, randomness)


def _coordinates(space: Subspace, answer: Floats | None) -> Floats:
    """Coordinates of an answer; zeros where there is none, or where it overflows."""
    if answer is None:
        return np.zeros(space.rank)
    with np.errstate(all="ignore"):
        coordinates = space.project(answer)
    return coordinates if np.isfinite(coordinates).all() else np.zeros(space.rank)


@proves("confidence-mode")
def confidence(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    gamma: float,
    settings: Settings,
    rerun: Rerun,
    draw: Callable[[Randomness], npt.NDArray[np.bool_]],
) -> tuple[FreshWorld, Certificate]:
    """All subsets: variances are bounded from independent worlds, and caps act through the information alone.

    Guarantee: with probability `1 - gamma` over the simulated worlds, the mutual information between the
    fresh world and the release is at most the certified figure (Maurer-Pontil for each deviation, a union over
    directions, Hadamard's inequality for the covariance).
    """
    pilots = max(8, len(outputs) // 4)
    space = _leading(subspace(outputs[:pilots], settings.weights, settings.memory))
    low, high = space.coordinates.min(axis=0), space.coordinates.max(axis=0)
    rest = np.stack([np.clip(_coordinates(space, row), low, high) for row in outputs[pilots:]])
    measured = len(rest)
    margin = math.sqrt(2 * math.log(max(space.rank, 1) / gamma) / (measured - 1))
    deviations = rest.std(axis=0, ddof=1) + (high - low) * margin
    budget = _by_information_only(caps, worlds)
    if space.rank:
        # The sampler's distance d adds d log(number of worlds) + h(d) to the information: leave room for it.
        reach = 1e3
        distance = sampler_distance(space.rank, reach)
        slack = entropy_slack(distance, 2**worlds.n)
        if slack >= budget / 2:
            raise CapError("this cap is too close to the prior for so many outputs; loosen it")
        noise_deviations = np.sqrt(
            shape_variances("logdet" if settings.shape == "best" else settings.shape, deviations**2, budget - slack)
        )
        noise_deviations = np.maximum(noise_deviations, settings.floor)
        mi = information_ceiling(deviations**2, noise_deviations**2) + slack
        if np.abs(np.maximum(-low, high) / noise_deviations).max() > reach:
            raise CapError("this cap asks for almost no noise; choose a tighter one")
    else:
        distance, mi, noise_deviations = 0.0, 0.0, np.empty(0)
    noise = Noise(space, noise_deviations, settings.floor)
    certificate = _by_information("confidence", caps, worlds, mi, measured, space, settings)
    certificate = replace(
        certificate,
        confidence=1 - gamma,
        gamma=gamma,
        gamma_used=gamma,
        attempt=1,
        bounds=space.rank,
        draws={"pilot worlds": pilots, "measured worlds": measured},
        sampler_distance=distance,
        theorems=("confidence-mode", "log-det", "currency", "rebuild", "sampler", "uniform-halves"),
    )
    exposure = np.full(worlds.n, certificate.membership_success)
    return FreshWorld(noise, low, high, rerun, draw, exposure), certificate


def _leading(space: Subspace) -> Subspace:
    """The directions that carry all but a thousandth of the (weighted) variance: each costs a margin."""
    variances = space.variances
    if not len(variances):
        return space
    kept = int(np.searchsorted(np.cumsum(variances), 0.999 * variances.sum())) + 1
    return replace(
        space,
        coordinates=space.coordinates[:, :kept],
        directions=None if space.directions is None else space.directions[:kept],
        dual=None if space.dual is None else space.dual[:, :kept],
    )


def _by_information_only(caps: tuple[Cap, ...], worlds: Worlds) -> float:
    """The information that keeps all caps when the secret may be any subset."""
    m = _secrets(worlds)
    for cap in caps:
        if isinstance(cap, Task):
            raise CapError("a task names finite worlds: use mode='exact'")
        if isinstance(cap, Identification) and "stratified" in worlds.design:
            raise CapError("identification is not offered for strata in this mode: use mode='exact'")
        check_limit(cap, worlds.rate, m)
    return information_budget(caps, worlds.rate, m)


def _secrets(worlds: Worlds) -> int:
    """One over the probability of the likeliest subset (for unstratified draws); at most 2^1000, on the safe side."""
    n, parts = worlds.n, worlds.share.denominator
    small, large = math.comb(n, n // parts), math.comb(n, -(-n // parts))
    count = 2 * small if parts == 2 and n % 2 else min(small, large)
    return min(count, 2**1000)


def _by_information(
    kind: str, caps: tuple[Cap, ...], worlds: Worlds, mi: float, m: int, space: Subspace, settings: Settings
) -> Certificate:
    """A certificate whose every figure follows from one bound on the information."""
    seen = Observed(worlds.rate, _secrets(worlds), mi)
    values = tuple(measure(cap, seen, lambda mean: mean.estimate) for cap in caps)
    return Certificate(
        kind="simulation" if settings.seeded and kind != "empirical" else kind,
        mode=kind,
        capped=_capped(caps, caps, values, worlds.rate, seen.m),
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
        draws={"worlds": m},
        integrated=False,
        sampler_distance=0.0,
        grid_step=GRID,
        pool_public=POOL_PUBLIC + settings.constants,
        declared_public=settings.public,
        assumptions=ASSUMPTIONS,
        not_promised=NOT_PROMISED,
        theorems=("currency",),
        leakcap_version=__version__,
    )


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """PAC-Private Algorithms, Algorithm 1, as published: noise added to the fresh world's own answer."""

    noise: Noise
    output_noise: Floats
    rerun: Rerun
    draw: Callable[[Randomness], npt.NDArray[np.bool_]]
    exposure: Floats

    def vector(self, randomness: Randomness) -> Floats:
        answer = self.rerun(self.draw(randomness))
        if answer is None:
            raise CapError("the function failed on the fresh world; empirical mode has no defence against that")
        return answer + self.output_noise * randomness.normals(len(answer))


def empirical(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: Settings,
    rerun: Rerun,
    draw: Callable[[Randomness], npt.NDArray[np.bool_]],
    precision: float = 1e-6,
) -> tuple[StoppingRule, Certificate]:
    """The papers' stopping rule, for comparison: worlds until no variance moves by more than `precision`.

    No guarantee: an event that none of the first worlds shows gets no noise.
    """
    used = len(outputs)
    before = outputs[:10].var(axis=0)
    for stop in range(20, len(outputs) + 1, 10):
        now = outputs[:stop].var(axis=0)
        if np.abs(now - before).max() <= precision:
            used = stop
            break
        before = now
    deviations = outputs[:used].std(axis=0)
    budget = _by_information_only(caps, worlds)
    output_noise = np.sqrt(deviations * deviations.sum() / (2 * budget))  # the linear rule with A = I
    d = outputs.shape[1]
    moving = np.flatnonzero(output_noise > 0)
    space = Subspace(
        outputs[:used].mean(axis=0), np.ones(d), np.zeros((used, len(moving))), np.eye(d)[moving], None, outputs[:used]
    )
    noise = Noise(space, output_noise[moving])
    certificate = _by_information("empirical", caps, worlds, budget, used, space, settings)
    exposure = np.full(worlds.n, certificate.membership_success)
    return StoppingRule(noise, output_noise, rerun, draw, exposure), certificate
