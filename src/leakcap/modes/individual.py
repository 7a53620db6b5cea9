"""One person, all subsets (`mode="individual"`): means and sums, in closed form, without sampling.

The secret is a fresh random part of the pool. What the best attacker knows about one person named in advance is bounded
for everybody in the pool; about anything else nothing is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.caps import Cap, Membership
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.contributions import Contributions
from leakcap.leakage.measures import check_limit, information_budget
from leakcap.leakage.swaps import Swaps, possible_swaps
from leakcap.modes.by_information import secrets
from leakcap.modes.interface import (
    ASSUMPTIONS,
    COLLUSION,
    NOT_PROMISED,
    POOL_PUBLIC,
    Draw,
    NoiseSettings,
    capped_figures,
    certificate,
)
from leakcap.noise import GRID, LawOf, Noise, Randomness, Subspace, released_vector, shape_variances, subspace
from leakcap.noise.laws import normal
from leakcap.noise.leverage import spectrum
from leakcap.noise.swaps import LeastNoise, least_noise, swap_shape
from leakcap.worlds import Worlds

__all__ = ["EXACT_SUMS", "ONE_PERSON", "FreshHalf", "certified", "closed_form", "membership_caps"]

ONE_PERSON = (
    "Nothing but guesses at one person named in advance is bounded: neither naming a participant of the attacker's own "
    "choice, nor questions about several people, nor attackers who learn from elsewhere who took part."
)
EXACT_SUMS = "What every unit brings is added up exactly, whatever the function itself does with rounding."


@dataclass(frozen=True, eq=False)
class FreshHalf:
    """The secret is a fresh random world; its coordinates are added up from what its units bring."""

    noise: Noise
    averaged: bool
    mean: Floats  # (r,): what an average unit brings
    expected: float  # units in a world, on average
    draw: Draw
    exposure: Floats

    def vector(self, randomness: Randomness) -> Floats:
        return released_vector(self.noise, self.coordinates(self.draw(randomness)), GRID, randomness)

    def coordinates(self, mask: Bools) -> Floats:
        """Of the answer in one world. Sums are rounded once: their order must not tell who is in it."""
        members = self.noise.space.coordinates[mask]
        total = np.array([math.fsum(column) for column in members.T])
        if self.averaged:
            return total / max(len(members), 1)
        return np.asarray(total + (len(members) - self.expected) * self.mean)


def membership_caps(caps: tuple[Cap, ...], rate: float) -> float:
    """The smallest membership cap; any other kind is refused."""
    for cap in caps:
        if type(cap) is not Membership:  # a kind derived from it may have its limit in another unit
            raise CapError(
                "mode='individual' caps guesses at one person named in advance and nothing else: "
                f"{type(cap).__name__} needs mode='exact' or mode='confidence'. Here, use leakcap.membership(...)"
            )
        check_limit(cap, rate, 2)
    return min(cap.limit for cap in caps)


@proves("adjacent")
def certified(
    brings: Contributions,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    strata: Ints | None,
    draw: Draw,
    law_of: LawOf = normal,
) -> tuple[FreshHalf, Certificate]:
    """The least noise that keeps a membership cap against every single person, over all subsets.

    Guarantee: certain, nothing is sampled. For a secret world drawn by the law of `worlds`, no attacker who knows the
    whole pool and the noise's law tells with a larger balanced success than certified whether a person named in
    advance is in it.
    """
    cap = membership_caps(caps, worlds.rate)
    swaps = possible_swaps(worlds.n, worlds.share, strata)
    pool = subspace(brings.values, settings.weights, settings.machine.memory)
    expected = float(worlds.n * worlds.share)
    if pool.rank:
        weight = 1 / swaps.smallest if brings.averaged else 1.0  # of a unit in the answer
        shape, turn = spectrum(_shape(pool, weight, swaps, worlds=worlds, settings=settings, caps=caps))
        space = pool.turned(turn)  # what is bounded here is what the release adds up, to the last digit
        mean = space.project_displacement(pool.centre * pool.scale)
        longest = np.abs(space.coordinates).max(axis=0)
        least = least_noise(
            space.coordinates * weight,
            np.zeros(pool.rank) if brings.averaged else mean,
            swaps,
            reach=longest if brings.averaged else (swaps.smallest + 1) * longest + np.abs(mean),
            cap=cap,
            shape=np.sqrt(np.maximum(shape, 1e-14 * shape[-1])),
            floor=settings.floor,
            law=law_of(pool.rank),
        )
    else:
        space, mean = pool, np.empty(0)
        least = LeastNoise(np.empty(0), np.full(worlds.n, 0.5), 0.0)
    if not brings.averaged:
        space = replace(space, centre=pool.centre * expected)
    noise = Noise(space, least.deviations, settings.floor, law_of(pool.rank))
    worst = float(least.exposure.max())
    made = closed_form(
        worlds,
        space,
        settings,
        caps,
        worst=worst,
        mutual_information=_all_of_it(worlds),
        name_a_member_success=1.0,
        sampler_distance=least.distance,
        not_promised=ONE_PERSON,
        theorems=("adjacent", "rebuild", "sampler", "uniform-halves"),
    )
    releaser = FreshHalf(
        noise, averaged=brings.averaged, mean=mean, expected=expected, draw=draw, exposure=least.exposure
    )
    return releaser, made


def closed_form(
    worlds: Worlds,
    space: Subspace,
    settings: NoiseSettings,
    caps: tuple[Cap, ...],
    *,
    worst: float,
    values: tuple[float, ...] | None = None,
    not_promised: str,
    pool_public: tuple[str, ...] = (EXACT_SUMS,),
    **figures: Any,
) -> Certificate:
    """The certificate of sums over people, of which nothing was sampled: `worst` is the success against anybody."""
    return certificate(
        "individual",
        worlds,
        space,
        settings,
        kind="closed_form",
        capped=capped_figures(caps, caps, values or (worst,) * len(caps), (worlds.rate, 2)),
        membership_success=worst,
        leakage_curve=(),
        confidence=1.0,
        gamma=0.0,
        gamma_used=0.0,
        bounds=worlds.n,
        draws=(),
        integrated=True,
        pool_public=(*POOL_PUBLIC, *pool_public, *settings.pool_public),
        assumptions=ASSUMPTIONS[:2],  # the third is about certifying draws, of which there are none
        not_promised=(NOT_PROMISED[0], not_promised, *(line for line in NOT_PROMISED[1:] if line != COLLUSION)),
        **figures,
    )


def _shape(
    pool: Subspace, weight: float, swaps: Swaps, *, worlds: Worlds, settings: NoiseSettings, caps: tuple[Cap, ...]
) -> Floats:
    """The covariance of the noise, up to a factor."""
    if settings.shape == "best":
        return swap_shape(pool.coordinates, swaps)
    answers = pool.variances * weight**2 * worlds.n * worlds.rate * (1 - worlds.rate)
    budget = information_budget(caps, worlds.rate, secrets(worlds))
    return np.diag(shape_variances(settings.shape, answers, budget))


def _all_of_it(worlds: Worlds) -> float:
    """The information about the secret is bounded only by what there is: a yes or no for every unit."""
    return worlds.n * math.log(2) * (1 + 1e-12)
