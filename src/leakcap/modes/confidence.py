"""All subsets (`mode="confidence"`): the secret is a fresh random world, on which the function runs once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError, InputError
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
from leakcap.noise.proposed import inside
from leakcap.worlds import Worlds

__all__ = ["FreshWorld", "certified"]

REACH = 1e3  # noise deviations that an answer may lie from the centre


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
    clipped_in: Subspace | None = None  # where the noise has directions of its own: those that are clipped
    turn: Floats | None = None  # from them to those of the noise

    def vector(self, randomness: Randomness) -> Floats:
        answer = self.rerun(self.draw(randomness))
        coordinates = np.clip(_coordinates(self.clipped_in or self.noise.space, answer), self.low, self.high)
        if self.turn is not None:
            coordinates = coordinates @ self.turn
        return released_vector(self.noise, coordinates, self.step, randomness)


def _coordinates(space: Subspace, answer: Floats | None) -> Floats:
    """Coordinates of an answer; zeros where there is none, or where it overflows."""
    if answer is None:
        return np.zeros(space.rank)
    with np.errstate(all="ignore"):
        coordinates = space.project(answer)
    return coordinates if np.isfinite(coordinates).all() else np.zeros(space.rank)


@dataclass(frozen=True, eq=False)
class _Hidden:
    """Noise along its own directions, and how much of answers of bounded deviations it lets through."""

    deviations: Floats
    mi: float
    signal: float  # squared deviations of the answers in those of the noise, added up
    price: float = 1.0
    turn: Floats | None = None


@proves("confidence-mode", "trace", "proposed-noise")
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
    proposal: Floats | None = None,
) -> tuple[FreshWorld, Certificate]:
    """All subsets: variances are bounded from independent worlds. Caps on one person act through them, others through
    the information.

    Guarantee: with probability `1 - gamma` over the simulated worlds, the mutual information between the
    fresh world and the release, and the success against every single person, are at most the certified figures
    (Maurer-Pontil for each deviation, a union over directions; then Hadamard's inequality for the covariance, and the
    trace bound). `unseen` is the probability of worlds that are never simulated. The statement about deviations does
    not mention noise, so that it serves any number of caps, and of covariances of all outputs (`proposal`).
    """
    pilots = max(8, len(outputs) // 4)
    space = _leading(subspace(outputs[:pilots], settings.weights, settings.machine.memory))
    low, high = space.coordinates.min(axis=0), space.coordinates.max(axis=0)
    rest = np.stack([np.clip(_coordinates(space, row), low, high) for row in outputs[pilots:]])
    measured = len(rest)
    margin = math.sqrt(2 * math.log(max(space.rank, 1) / gamma) / (measured - 1))
    seen = rest.std(axis=0, ddof=1)
    deviations = np.hypot(seen + (high - low) * margin, (high - low) * math.sqrt(unseen)) * (1 + 1e-15)
    distance = sampler_distance(space.rank, REACH) if space.rank else 0.0
    slack = entropy_slack(distance, 2**worlds.n)
    if not space.rank:
        refuse_impossible(caps, worlds)
        hidden = _Hidden(np.empty(0), 0.0, 0.0)
    elif proposal is not None:
        hidden = _proposed(*inside(space, proposal), deviations=deviations, farthest=np.maximum(-low, high))
    else:
        # The distance d adds d log(number of worlds) + h(d) to the information, and d to a success: leave room for it.
        budget, signal = budgets_for(caps, worlds, distance)
        if slack >= budget / 2:
            raise CapError("this cap is too close to the prior for so many outputs; loosen it")
        least = partial(least_variances, settings.shape, budget=budget - slack, signal=signal)
        hidden = _least(least, deviations, seen, floor=settings.floor)
        if np.abs(np.maximum(-low, high) / hidden.deviations).max() > REACH:
            raise CapError("this cap asks for almost no noise; choose a tighter one")
    noise = Noise(space.turned(hidden.turn), hidden.deviations, settings.floor if proposal is None else 0.0)
    made = certificate(
        "confidence",
        worlds,
        space,
        settings,
        **figures_by_information(caps, worlds, hidden.mi + slack, signal=hidden.signal, distance=distance),
        worlds=measured,
        confidence=1 - gamma,
        gamma=gamma,
        gamma_used=gamma,
        bounds=space.rank,
        draws=(("pilot worlds", pilots), ("measured worlds", measured)),
        price_of_confidence=hidden.price,
        sampler_distance=distance,
        theorems=("confidence-mode", "trace", "log-det", "currency", "rebuild", "sampler", "uniform-halves"),
    )
    exposure = np.full(worlds.n, made.membership_success)
    releaser = FreshWorld(noise, low, high, rerun=rerun, draw=draw, exposure=exposure)
    return replace(releaser, clipped_in=space, turn=hidden.turn) if hidden.turn is not None else releaser, made


def _least(least: Callable[[Floats], Floats], deviations: Floats, seen: Floats, *, floor: float) -> _Hidden:
    """The least noise of the shape that was asked for."""
    variances = least(deviations**2)
    # What the margin for unseen worlds costs: noise with it over noise for the variances as they were seen.
    price = math.sqrt(variances.sum() / least(np.maximum(seen, 1e-6 * deviations) ** 2).sum())
    noise = np.maximum(np.sqrt(variances), floor)
    return _Hidden(noise, information_ceiling(deviations**2, noise**2), _signal(deviations, noise**2), price)


def _proposed(variances: Floats, turn: Floats, *, deviations: Floats, farthest: Floats) -> _Hidden:
    """Noise of any covariance is noise of a diagonal one that it exceeds, and more: whose figures hold for it, too.

    Bounded are the deviations along single directions, not how these go together; so several diagonals are tried, each
    as large as the covariance allows, and all their figures hold.
    """
    if np.linalg.norm(farthest) > REACH * math.sqrt(variances.min()):
        raise InputError("so little noise would name its world: propose more, or make the plan for a looser cap")
    covariance = (turn * variances) @ turn.T
    diagonals = []
    for shape in (np.diag(covariance), deviations, np.ones(len(variances))):
        roots = np.sqrt(shape)
        sizes = np.linalg.eigvalsh(covariance / roots[:, None] / roots)
        rounding = 1e-14 * len(sizes) * sizes[-1]
        diagonals.append(shape * max(sizes[0] - rounding, 1e-300))
    mi = min(information_ceiling(deviations**2, diagonal) for diagonal in diagonals)
    signal = min(_signal(deviations, diagonal) for diagonal in diagonals) * (1 + 1e-12)
    return _Hidden(np.sqrt(variances), mi, signal, turn=turn)


def _signal(deviations: Floats, noise_variances: Floats) -> float:
    return float((deviations**2 / noise_variances).sum())


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
