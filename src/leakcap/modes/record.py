"""What all modes share: settings, the interface of a mechanism, and the words of a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.certificate import CappedFigure
from leakcap.cores import Machine
from leakcap.leakage.measures import prior
from leakcap.noise import Noise, Randomness

__all__ = [
    "ASSUMPTIONS",
    "COLLUSION",
    "NOT_PROMISED",
    "POOL_PUBLIC",
    "Draw",
    "Mechanism",
    "Rerun",
    "Settings",
    "capped_figures",
]

Floats = npt.NDArray[np.float64]
Rerun = Callable[[npt.NDArray[np.bool_]], "Floats | None"]  # the answer in a world, None where there is none
Draw = Callable[[Randomness], npt.NDArray[np.bool_]]  # a fresh secret world


@dataclass(frozen=True, eq=False)
class Settings:
    """How noise is to be chosen."""

    shape: str
    floor: float
    weights: npt.ArrayLike | None
    draws: int | None
    machine: Machine
    seeded: bool
    public: tuple[str, ...]
    pool_public: tuple[str, ...]  # what is known of the whole pool in this plan and not in every other, in words


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
    "Need not be hidden, because the promise holds against attackers who know it: the mean answer over worlds, and the "
    "shape and scale of the noise.",
)
COLLUSION = (
    "Attackers who learn from elsewhere who took part do better: the figures for attackers who know participants say "
    "how much."
)
NOT_PROMISED = (
    "It is not hidden that a person's data are in the pool: the promise is about who of the pool was used.",
    "What the answer says about people in general may be applied to anybody: that is what it is published for.",
    "A second answer from the same data is not covered: each certificate stands alone, and two releases together can "
    "tell more than either of them says.",
    COLLUSION,
    "Nothing else that the custodian lets out is covered: timing, memory use, remarks.",
)
ASSUMPTIONS = (
    "Nobody but the custodian learns the secret world or the noise; both come from the operating system.",
    "The function sees the data of the world it is run on, and pool-public settings, nothing else.",
    "The generator behind simulated worlds and certifying draws (PCG64) behaves like independent random numbers.",
)


def capped_figures(
    caps: tuple[Cap, ...], concrete: tuple[Cap, ...], values: tuple[float, ...], rate: float, m: int
) -> tuple[CappedFigure, ...]:
    return tuple(
        CappedFigure(type(cap).__name__, cap.describe(), prior(full, rate, m), cap.limit, value)
        for cap, full, value in zip(caps, concrete, values, strict=True)
    )
