"""What all modes share: settings, the interface of a releaser, and the words of a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.certificates.release import CappedFigure, Certificate
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine
from leakcap.leakage.measures import prior
from leakcap.noise import GRID, Noise, Randomness, Subspace
from leakcap.version import __version__
from leakcap.worlds import Worlds

__all__ = [
    "ASSUMPTIONS",
    "COLLUSION",
    "NOT_PROMISED",
    "POOL_PUBLIC",
    "Draw",
    "Everybody",
    "NoiseSettings",
    "Releaser",
    "Rerun",
    "capped_figures",
    "certificate",
]

Rerun = Callable[[npt.NDArray[np.bool_]], "Floats | None"]  # the answer in a world, None where there is none
Draw = Callable[[Randomness], npt.NDArray[np.bool_]]  # a fresh secret world


@dataclass(frozen=True, eq=False)
class NoiseSettings:
    """How noise is to be chosen."""

    shape: str
    floor: float
    weights: npt.ArrayLike | None
    draws: int | None
    machine: Machine
    seeded: bool
    public: tuple[str, ...]
    pool_public: tuple[str, ...]  # what is known of the whole pool in this plan and not in every other, in words
    not_promised: tuple[str, ...] = ()  # by this plan, and by others
    mechanism: str = "gaussian"  # which noise, one of `mechanism.MECHANISMS`
    kept: float = 0.0  # of success, for what samplers of further answers about the same people may be off


Settings = NoiseSettings
NoiseSettings.__qualname__ = "Settings"  # what stored plans name it, and what a begun run is known again by


@dataclass(frozen=True)
class Everybody:
    """In place of worlds under a pool cap: nothing is drawn, and how many people there are is not for the public."""

    n: int = 0
    m: int = 1
    share: Fraction = Fraction(1)
    design: str = "everybody"


class Releaser(Protocol):
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
    "Need not be hidden, because the promise holds against attackers who know it: the mean answer over worlds, and the "
    "shape and scale of the noise.",
)
COLLUSION = (
    "Attackers who learn from elsewhere who took part do better: the figures for attackers who know participants say "
    "how much."
)
NOT_PROMISED = (
    "It does not hide that somebody is in the data: the promise is about who of them was used.",
    "It does not hide what is true of people in general: the answer may be applied to anybody, as it is meant.",
    "Published beside another answer from the same data, it may tell more: each certificate stands alone, and none "
    "covers two releases.",
    COLLUSION,
    "Nothing else that the custodian lets out is covered: timing, memory use, remarks.",
)
ASSUMPTIONS = (
    "Nobody but the custodian learns the secret world or the noise; both come from the operating system.",
    "The function sees the data of the world it is run on, and pool-public settings, nothing else.",
    "The generator behind simulated worlds and certifying draws (PCG64) behaves like independent random numbers.",
)


def certificate(
    mode: str, worlds: Worlds | Everybody, space: Subspace, settings: NoiseSettings, /, **figures: Any
) -> Certificate:
    """The certificate of a mode: `figures` are what it found; what it leaves out is the same in all modes."""
    unseeded_kind = figures.pop("kind", mode)
    common: dict[str, Any] = {
        "hockey_sticks": (),
        "known_memberships": (),
        "worlds": worlds.m,
        "attempt": 1,
        "integrated": False,
        "price_of_confidence": 1.0,
        "sampler_distance": 0.0,
        "grid_step": GRID,
        "pool_public": POOL_PUBLIC + settings.pool_public,
        "assumptions": ASSUMPTIONS,
        "not_promised": NOT_PROMISED + settings.not_promised,
    }
    return Certificate(
        kind="simulation" if settings.seeded and mode != "empirical" else unseeded_kind,
        mode=mode,
        units=worlds.n,
        rate=f"{worlds.share.numerator}/{worlds.share.denominator}",
        design=worlds.design,
        outputs=len(space.centre),
        noised_directions=len(space.centre) if settings.floor else space.rank,
        declared_public=settings.public,
        leakcap_version=__version__,
        **{**common, **figures},
    )


def capped_figures(
    caps: tuple[Cap, ...], concrete: tuple[Cap, ...], values: tuple[float, ...], worlds: tuple[float, int]
) -> tuple[CappedFigure, ...]:
    """What each cap promises, with the figure that was certified; `worlds` are known by their rate and their number."""
    return tuple(
        CappedFigure(type(cap).__name__, cap.describe(), prior(full, *worlds), limit=cap.limit, certified=value)
        for cap, full, value in zip(caps, concrete, values, strict=True)
    )
