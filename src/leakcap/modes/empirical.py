"""The papers' stopping rule (`mode="empirical"`), for comparison only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.modes.by_information import budget_for, figures_by_information
from leakcap.modes.interface import Draw, NoiseSettings, Rerun, certificate
from leakcap.noise import Noise, Randomness, Subspace
from leakcap.worlds import Worlds

__all__ = ["StoppingRule", "certified"]


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


def certified(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
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
        directions=np.eye(d)[moving],
        dual=None,
        outputs=outputs[:used],
        flat=output_noise == 0,
    )
    noise = Noise(space, output_noise[moving])
    made = certificate(
        "empirical",
        worlds,
        space,
        settings,
        **figures_by_information(caps, worlds, budget),
        worlds=used,
        confidence=0.0,
        gamma=1.0,
        gamma_used=1.0,
        bounds=0,
        draws=(("worlds", used),),
        theorems=("currency",),
    )
    exposure = np.full(worlds.n, made.membership_success)
    return StoppingRule(noise, output_noise, rerun, draw, exposure=exposure), made
