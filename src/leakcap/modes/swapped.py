"""One person, all subsets (`mode="individual"`), for functions that are no sum: by random swaps, with a confidence.

The secret is a fresh random part of the pool, on which the function runs once more. What a swap of a person with
somebody on the other side tells is averaged over random parts, for everybody in the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.swapping import Swapper
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.couplings import RandomSwaps, certify_swaps
from leakcap.leakage.measures import information_budget
from leakcap.modes.by_information import secrets
from leakcap.modes.confidence import FreshWorld
from leakcap.modes.individual import membership_caps
from leakcap.modes.interface import ASSUMPTIONS, Draw, NoiseSettings, Rerun
from leakcap.modes.one_person import one_person
from leakcap.noise import Noise, Subspace, sampler_distance, shape_variances, subspace
from leakcap.noise.couplings import SwapEffort, aimed_scale, coupling_shape
from leakcap.worlds import Worlds

__all__ = ["MAX_ATTEMPTS", "Seeds", "Swapped", "certified", "coordinates_of", "wide_ends"]

WIDER = 3.0  # times the range of the pilot's answers that a release may go beyond it
REACH = 1e6  # noise standard deviations that an answer may be long
MAX_ATTEMPTS = 6

SWAPS_AGREE = (
    "What the function says it answers when two people change places is what it answers, but for rounding: compared in "
    "some parts of the pool."
)

Seeds: TypeAlias = Callable[..., np.random.SeedSequence]  # by number: no two of them alike


@dataclass(frozen=True, eq=False)
class Swapped:
    """What gives answers after swaps; custodian side."""

    swapper: Swapper
    costly: bool  # whether every swap is a run of the function
    strata: Ints | None
    off: Floats  # (d,): how far each number may be from the function's own, by rounding


@dataclass(frozen=True, eq=False)
class _Family:
    """Multiples of one noise, for answers whose coordinates stay in a range."""

    space: Subspace
    deviations: Floats
    floor: float

    @property
    def reach(self) -> Floats:
        return np.asarray(np.abs(np.stack(wide_ends(self.space))).max(axis=0))

    def noise(self, scale: float) -> Floats:
        """Less than `REACH` allows would need a finer grid."""
        least = float((self.reach / self.deviations).max()) / REACH
        return np.maximum(max(scale, least) * self.deviations, self.floor)

    def distance(self, scale: float) -> float:
        return sampler_distance(self.space.rank, float((self.reach / self.noise(scale)).max()))


@proves("sampled-swaps")
def certified(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    swapped: Swapped,
    attempts: Attempts,
    seeds: Seeds,
    rerun: Rerun,
    draw: Draw,
) -> tuple[FreshWorld, Certificate]:
    """Noise that keeps a membership cap against every single person over all subsets, certified on fresh swaps.

    Guarantee: with probability `1 - gamma` over the certifying worlds, all attempts included, no attacker who knows the
    whole pool and the noise's law tells with a larger balanced success than certified whether a person named in
    advance is in a secret world drawn by the law of `worlds`.
    """
    cap = membership_caps(caps, worlds.rate)
    effort = SwapEffort.of(settings.draws, costly=swapped.costly)
    space = subspace(outputs, settings.weights, settings.machine.memory)
    assumed = ASSUMPTIONS if swapped.costly else (*ASSUMPTIONS, SWAPS_AGREE)
    words = partial(
        one_person, caps, worlds, settings=settings, attempts=attempts, proof="sampled-swaps", assumptions=assumed
    )
    if not space.rank:  # whatever happens, the centre is released
        exposure, nothing = np.full(worlds.n, 0.5), np.empty(0)
        made = FreshWorld(
            Noise(space, nothing, settings.floor), nothing, nothing, rerun=rerun, draw=draw, exposure=exposure
        )
        return made, words(space, worst=0.5, bounds=0, draws=(), sampler_distance=0.0)
    rng = np.random.default_rng(seeds(1, attempts.made))
    family, source = _family(space, worlds, swapped, caps, settings=settings, effort=effort, rng=rng)
    aim = aimed_scale(
        source,
        family.deviations,
        room=lambda scale: cap - family.distance(scale),
        gamma=attempts.share(attempts.made + 1),
        effort=effort,
        rng=rng,
    )
    scale, held, used, drawn = aim.scale, None, 0.0, [("swaps of everybody", aim.draws[0])]
    off = float(np.linalg.norm(np.where(space.flat, 0.0, swapped.off * space.scale)))
    for _ in range(MAX_ATTEMPTS):
        noise, distance, share = family.noise(scale), family.distance(scale), attempts.next()
        held = certify_swaps(
            aim.source,
            noise,
            enough=cap - distance,
            gamma=share,
            draws=aim.draws,
            guess=aim.seen,
            seeds=seeds(2, attempts.made),
            rounding=off / float(noise.min()),
            held=held,  # for less noise: who was within the cap then is so now
        )
        used += share
        drawn += [(f"swaps of the {held.again:,} who decide", aim.draws[1])] if held.again else []
        exposure = np.minimum(1.0, held.exposure + distance)
        worst = float(exposure.max())
        if worst <= cap:
            low, high = wide_ends(family.space)
            released = Noise(family.space, noise, settings.floor)
            made = FreshWorld(released, low, high, rerun=rerun, draw=draw, exposure=exposure)
            return made, words(
                family.space,
                worst=worst,
                bounds=held.bounds,
                draws=tuple(drawn),
                gamma_used=used,
                sampler_distance=distance,
            )
        scale *= max(1.03, 0.01 + (worst - 0.5) / (cap - 0.5))
    raise CapError("no noise was certified in several attempts: give more draws=, or a looser cap")


def _family(
    space: Subspace,
    worlds: Worlds,
    swapped: Swapped,
    caps: tuple[Cap, ...],
    *,
    settings: NoiseSettings,
    effort: SwapEffort,
    rng: np.random.Generator,
) -> tuple[_Family, RandomSwaps]:
    """Noise of the wanted shape, in the directions along which it is independent, and swaps in these."""
    source_of = partial(
        RandomSwaps.of, swapped.swapper, worlds=worlds, strata=swapped.strata, several=not swapped.costly
    )
    source = source_of(partial(coordinates_of, space))
    if settings.shape == "best":
        shape = coupling_shape(source, effort, rng)
    else:
        budget = information_budget(caps, worlds.rate, secrets(worlds))
        shape = np.diag(shape_variances(settings.shape, space.variances, budget))
    size, turn = np.linalg.eigh(shape)
    turned = space.turned(turn)
    deviations = np.sqrt(np.maximum(size, max(1e-14 * size[-1], np.finfo(float).tiny)))
    family = _Family(turned, deviations, settings.floor)
    return family, source_of(partial(coordinates_of, turned))


def wide_ends(space: Subspace) -> tuple[Floats, Floats]:
    """What coordinates are clipped to: far beyond what was seen."""
    low, high = space.coordinates.min(axis=0), space.coordinates.max(axis=0)
    return low - WIDER * (high - low), high + WIDER * (high - low)


def coordinates_of(space: Subspace, answers: Floats) -> Floats:
    """`(p, r)`; zeros where there is no answer, as the release has it. Clipping would only bring answers together."""
    with np.errstate(all="ignore"):
        if space.directions is not None:
            basis = (space.directions * space.scale).T
            found = answers * basis[0] if len(basis) == 1 else answers @ basis
            found -= space.centre @ basis
        else:
            found = np.stack([space.project(answer) for answer in answers])
        if np.isfinite(found.sum()):
            return np.asarray(found)
        usable = np.isfinite(answers).all(axis=1, keepdims=True) & np.isfinite(found).all(axis=1, keepdims=True)
    return np.where(usable, found, 0.0)
