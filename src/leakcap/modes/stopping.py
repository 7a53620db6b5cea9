"""The papers' stopping rule (`mode="empirical"`), for comparison only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.certificate import Certificate
from leakcap.errors import CapError
from leakcap.modes.information import budget_for, by_information
from leakcap.modes.record import Draw, Rerun, Settings
from leakcap.noise import Noise, Randomness, Subspace
from leakcap.worlds import Worlds

__all__ = ["StoppingRule", "empirical"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """PAC-Private Algorithms, Algorithm 1, as published: noise added to the fresh world's own answer."""

    noise: Noise
    output_noise: Floats
    rerun: Rerun
    draw: Draw
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
    draw: Draw,
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
    budget = budget_for(caps, worlds)
    output_noise = np.sqrt(deviations * deviations.sum() / (2 * budget))  # the linear rule with A = I
    d = outputs.shape[1]
    moving = np.flatnonzero(output_noise > 0)
    space = Subspace(
        outputs[:used].mean(axis=0),
        np.ones(d),
        np.zeros((used, len(moving))),
        np.eye(d)[moving],
        None,
        outputs[:used],
        output_noise == 0,
    )
    noise = Noise(space, output_noise[moving])
    certificate = by_information("empirical", caps, worlds, budget, used, space, settings)
    exposure = np.full(worlds.n, certificate.membership_success)
    return StoppingRule(noise, output_noise, rerun, draw, exposure), certificate
