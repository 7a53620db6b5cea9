"""All subsets (`mode="confidence"`): the secret is a fresh random world, on which the function runs once more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import entropy_slack
from leakcap.modes.by_information import budgets_for, figures_by_information, refuse_impossible
from leakcap.modes.interface import Draw, NoiseSettings, Rerun, certificate
from leakcap.noise import (
    GRID,
    Noise,
    Randomness,
    Subspace,
    information_ceiling,
    released_vector,
    sampler_distance,
    subspace,
)
from leakcap.noise.least import least_variances
from leakcap.worlds import Worlds

__all__ = ["FreshWorld", "certified"]


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
    draw: Draw
    exposure: Floats
    step: float = GRID

    def vector(self, randomness: Randomness) -> Floats:
        answer = self.rerun(self.draw(randomness))
        space = self.noise.space
        coordinates = _coordinates(space, answer)
        return released_vector(self.noise, np.clip(coordinates, self.low, self.high), self.step, randomness)


def _coordinates(space: Subspace, answer: Floats | None) -> Floats:
    """Coordinates of an answer; zeros where there is none, or where it overflows."""
    if answer is None:
        return np.zeros(space.rank)
    with np.errstate(all="ignore"):
        coordinates = space.project(answer)
    return coordinates if np.isfinite(coordinates).all() else np.zeros(space.rank)


@proves("confidence-mode", "trace")
def certified(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    gamma: float,
    rerun: Rerun,
    draw: Draw,
    unseen: float = 0.0,
) -> tuple[FreshWorld, Certificate]:
    """All subsets: variances are bounded from independent worlds. Caps on one person act through them, others through
    the information.

    Guarantee: with probability `1 - gamma` over the simulated worlds, the mutual information between the
    fresh world and the release, and the success against every single person, are at most the certified figures
    (Maurer-Pontil for each deviation, a union over directions; then Hadamard's inequality for the covariance, and the
    trace bound). `unseen` is the probability of worlds that are never simulated.
    """
    pilots = max(8, len(outputs) // 4)
    space = _leading(subspace(outputs[:pilots], settings.weights, settings.machine.memory))
    low, high = space.coordinates.min(axis=0), space.coordinates.max(axis=0)
    rest = np.stack([np.clip(_coordinates(space, row), low, high) for row in outputs[pilots:]])
    measured = len(rest)
    margin = math.sqrt(2 * math.log(max(space.rank, 1) / gamma) / (measured - 1))
    seen = rest.std(axis=0, ddof=1)
    deviations = np.hypot(seen + (high - low) * margin, (high - low) * math.sqrt(unseen)) * (1 + 1e-15)
    if space.rank:
        reach = 1e3
        distance = sampler_distance(space.rank, reach)
        # The distance d adds d log(number of worlds) + h(d) to the information, and d to a success: leave room for it.
        budget, signal = budgets_for(caps, worlds, distance)
        slack = entropy_slack(distance, 2**worlds.n)
        if slack >= budget / 2:
            raise CapError("this cap is too close to the prior for so many outputs; loosen it")
        least = partial(least_variances, settings.shape, budget=budget - slack, signal=signal)
        variances = least(deviations**2)
        # What the margin for unseen worlds costs: noise with it over noise for the variances as they were seen.
        price = math.sqrt(variances.sum() / least(np.maximum(seen, 1e-6 * deviations) ** 2).sum())
        noise_deviations = np.maximum(np.sqrt(variances), settings.floor)
        mi = information_ceiling(deviations**2, noise_deviations**2) + slack
        signal = float(((deviations / noise_deviations) ** 2).sum())
        if np.abs(np.maximum(-low, high) / noise_deviations).max() > reach:
            raise CapError("this cap asks for almost no noise; choose a tighter one")
    else:
        refuse_impossible(caps, worlds)
        distance, mi, signal, price, noise_deviations = 0.0, 0.0, 0.0, 1.0, np.empty(0)
    noise = Noise(space, noise_deviations, settings.floor)
    made = certificate(
        "confidence",
        worlds,
        space,
        settings,
        **figures_by_information(caps, worlds, mi, signal=signal, distance=distance),
        worlds=measured,
        confidence=1 - gamma,
        gamma=gamma,
        gamma_used=gamma,
        bounds=space.rank,
        draws=(("pilot worlds", pilots), ("measured worlds", measured)),
        price_of_confidence=price,
        sampler_distance=distance,
        theorems=("confidence-mode", "trace", "log-det", "currency", "rebuild", "sampler", "uniform-halves"),
    )
    exposure = np.full(worlds.n, made.membership_success)
    return FreshWorld(noise, low, high, rerun=rerun, draw=draw, exposure=exposure), made


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
