"""One setting, tried out: answers in some worlds, about the noise they need, and what releases would be worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.caps import Cap
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.modes import NoiseSettings
from leakcap.noise import GRID, Noise, Seeded, released_vector, subspace
from leakcap.noise.estimate import likely_noise
from leakcap.noise.search import Goal
from leakcap.simulate import Node, Outputs, rebuild
from leakcap.worlds import Worlds

__all__ = ["Judge", "Rehearsals", "Trial", "relative_error", "scored"]

Judge = Callable[[Node, Floats], float]  # what a released vector is worth


@dataclass(frozen=True, eq=False)
class Trial:
    """Scores of simulated releases of one setting; `plain` is their mean without noise."""

    noise: Noise
    scores: Floats
    plain: float
    worlds: int

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def lost(self) -> float:
        """What the noise costs."""
        return max(self.plain - self.mean, 0.0)


@dataclass(frozen=True, eq=False)
class Rehearsals:
    """How settings are tried: all under the same caps and with the same random numbers."""

    caps: Sequence[Cap]
    settings: NoiseSettings
    gamma: float
    releases: int
    seed: int

    def of(self, outputs: Outputs, worlds: Worlds, judge: Judge, **changed: Any) -> Trial:
        """A setting with these answers; `changed` are settings of the noise."""
        return self.with_noise(self.noise(outputs, worlds, **changed), outputs, judge)

    def noise(self, outputs: Outputs, worlds: Worlds, **changed: Any) -> Noise:
        """About the noise that the caps need in these worlds."""
        settings = replace(self.settings, **changed)
        space = subspace(outputs.table, settings.weights, settings.machine.memory)
        seed = np.random.SeedSequence(self.seed)  # anew: a seed sequence remembers what it has given away
        goal = Goal.of(self.caps, worlds, shape=settings.shape, floor=settings.floor, machine=settings.machine)
        return likely_noise(goal, space, seed, draws=settings.draws, gamma=self.gamma)

    def with_noise(self, noise: Noise, outputs: Outputs, judge: Judge) -> Trial:
        """The same for noise that is known."""
        node, coordinates = outputs.node, noise.space.coordinates
        noised, plain = np.empty(self.releases), np.empty(self.releases)
        for i, seed in enumerate(np.random.SeedSequence(self.seed).generate_state(self.releases)):
            source = Seeded(int(seed))  # its own for each release: both sides of a comparison see the same luck
            secret = source.below(len(coordinates))
            noised[i] = judge(node, released_vector(noise, coordinates[secret], GRID, source))
            plain[i] = judge(node, outputs.table[secret])
        if not np.isfinite(noised).all() or not np.isfinite(plain).all():
            raise InputError("score must give a finite number for every release: higher is better")
        return Trial(noise, noised, float(plain.mean()), len(coordinates))


def scored(score: Callable[[Any], float], build: Callable[[Any], Any]) -> Judge:
    """Judges what is made of a released value."""
    return lambda node, vector: float(score(build(rebuild(node, vector))))


def relative_error(outputs: Outputs, scale: Floats) -> Judge:
    """Minus the root-mean-square error against the answer on the whole pool, relative to the size of that.

    `scale` says how much an error in each output counts.
    """
    centre = outputs.table.mean(axis=0)
    wanted = centre if outputs.whole_pool is None else np.asarray(outputs.whole_pool)
    size = float(np.linalg.norm(wanted * scale)) or float(np.linalg.norm((outputs.table - centre) * scale))
    if size == 0:
        return lambda node, vector: -float(np.linalg.norm((vector - wanted) * scale))
    return lambda node, vector: -float(np.linalg.norm((vector - wanted) * scale)) / size
