"""One person, all subsets (`mode="individual"`), for any function: by the finite game over worlds drawn alike.

The secret is a fresh random part of the pool, on which the function runs once more. It is run in thousands of parts of
the same law; the best attacker against one of these is computed as in `exact` mode, for everybody in the pool, and a
margin says how much better an attacker could be against a fresh one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from leakcap.caps import Cap, Membership
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import Effort, Findings, certify, count_bounds, grid_step
from leakcap.leakage.confidence import Attempts, log_term
from leakcap.leakage.drawn_alike import sampling_margin, worlds_for
from leakcap.leakage.measures import RATIOS
from leakcap.modes.confidence import FreshWorld
from leakcap.modes.individual import membership_caps
from leakcap.modes.interface import Draw, NoiseSettings, Rerun
from leakcap.modes.one_person import one_person
from leakcap.modes.swapped import MAX_ATTEMPTS, Seeds, coordinates_of, wide_ends
from leakcap.noise import GRID, Noise, Subspace, sampler_distance, subspace
from leakcap.noise.leverage import leverage, moves_of
from leakcap.noise.search import Goal, Search, refined, rough_scales
from leakcap.worlds import Worlds

__all__ = ["certified", "worlds_wanted"]

PILOTS = 8  # one of so many worlds fixes directions and the shape of the noise, and is not measured
FINE = 0.2  # step between noises that may be chosen, in the logarithm of their variance
BELOW, ABOVE = 100, 60  # steps that may be taken from the noise that the pilot needs for the cap below
SCALES = BELOW + 1 + ABOVE  # noises that may be chosen, whatever the cap
REFERENCE = 0.6  # cap that the pilot's noise keeps; the plan's own is chosen by people who may have seen figures
NO_CEILING = 1e3  # nats: more than any success needs
LEAST_ROOM = 0.25  # share of the room above a coin flip that the margin must leave


class _Unbalanced(Search):
    """A unit need not be in a share `rate` of the worlds: no figure follows from the information alone."""

    def ceiling(self, log_t: float) -> float:
        return NO_CEILING

    @cached_property
    def safe_scale(self) -> float:
        return 2 * float(np.log((np.abs(self.coordinates) / np.sqrt(self.shape)).max())) + 10.0


@dataclass(frozen=True, eq=False)
class _Measured:
    """Worlds that were not looked at when directions, range and shape of the noise were fixed."""

    space: Subspace  # turned to the directions of the noise
    worlds: Worlds
    search: Search
    middle: float  # log of the variance scale that the pilot needs

    def scale(self, wanted: float) -> float:
        """The least of the noises fixed beforehand that is no less than wanted."""
        number = max(math.ceil((wanted - self.middle) / FINE - 1e-9), -BELOW)
        if number > ABOVE:
            raise CapError("this cap asks for far more noise than a few worlds showed: give more worlds=")
        return self.middle + number * FINE


@proves("drawn-alike")
def certified(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    attempts: Attempts,
    seeds: Seeds,
    rerun: Rerun,
    draw: Draw,
) -> tuple[FreshWorld, Certificate]:
    """Noise that keeps a membership cap against every single person over all subsets, for any function.

    Guarantee: with probability `1 - gamma` over the simulated worlds and the certifying draws, all attempts included,
    no attacker who knows the whole pool and the noise's law tells with a larger balanced success than certified whether
    a person named in advance is in a secret world drawn by the law of `worlds`.
    """
    cap = membership_caps(caps, worlds.rate)
    margin = _margin(cap, worlds, attempts.gamma / 2)
    pilots = _pilots(worlds.m)
    space = subspace(outputs[:pilots], settings.weights, settings.machine.memory)
    made = partial(FreshWorld, rerun=rerun, draw=draw)
    words = partial(one_person, caps, worlds, settings=settings, attempts=attempts, proof="drawn-alike")
    if not space.rank:  # whatever happens, the centre is released
        nothing = np.empty(0)
        noise = Noise(space, nothing, settings.floor)
        released = made(noise, nothing, nothing, exposure=np.full(worlds.n, 0.5))
        return released, words(space, worst=0.5, bounds=0, draws=(), sampler_distance=0.0)
    measured = _measured(outputs, worlds, space, Membership(cap - margin), settings=settings, seed=seeds(1))
    search, goal = measured.search, measured.search.goal
    bounds = count_bounds(goal.worlds.m, worlds.n, len(RATIOS), goal.wanted, stages=3)
    term = log_term(attempts.share(attempts.made + 1) / 2, bounds)
    log_t, draws = refined(search, measured.middle, term, settings.draws)
    for _ in range(MAX_ATTEMPTS):
        share, log_t = attempts.next(), measured.scale(log_t)
        findings, step, distance = _finite_game(measured, log_t, draws, gamma=share / 2, seed=seeds(2, attempts.made))
        exposure = np.minimum(1.0, findings.exposure + margin)
        worst = float(exposure.max())
        if worst <= cap:
            low, high = wide_ends(measured.space)
            noise = Noise(measured.space, search.deviations(log_t), settings.floor)
            return made(noise, low, high, exposure=exposure, step=step), words(
                measured.space,
                worst=worst,
                worlds=goal.worlds.m,
                bounds=findings.bounds + SCALES * worlds.n,
                draws=_named(pilots, goal.worlds.m, findings),
                gamma_used=(attempts.gamma + share) / 2,
                sampler_distance=distance,
                grid_step=step,
            )
        log_t += max(FINE, 2 * math.log((worst - 0.5) / (cap - 0.5)))
    raise CapError("no noise was certified in several attempts: give more worlds=, or a looser cap")


def worlds_wanted(cap: float, units: int, gamma: float, rate: float) -> int:
    """So many that the margin takes half of the room above a coin flip, in thousands."""
    measured = worlds_for((cap - 0.5) / 2, SCALES * units, gamma / 2, rate)
    return 1024 * math.ceil(measured * PILOTS / (PILOTS - 1) / 1024)


def _pilots(worlds: int) -> int:
    return max(min(64, worlds // 2), worlds // PILOTS)


def _margin(cap: float, worlds: Worlds, gamma: float) -> float:
    """For all units and all noises that may be chosen; or a refusal, where it takes most of the room."""
    margin = sampling_margin(worlds.m - _pilots(worlds.m), SCALES * worlds.n, gamma, worlds.rate)
    if margin > (1 - LEAST_ROOM) * (cap - 0.5):
        needed = worlds_wanted(cap, worlds.n, 2 * gamma, worlds.rate)
        raise CapError(
            f"for any function, this cap needs more worlds: worlds={needed} would do, each a run of the function. Or "
            "choose a looser cap, or mode='confidence', which needs more noise"
        )
    return margin


def _measured(
    outputs: Floats, worlds: Worlds, space: Subspace, cap: Cap, *, settings: NoiseSettings, seed: np.random.SeedSequence
) -> _Measured:
    """Directions, range and a family of noises from pilot worlds, whatever the cap; the others' coordinates in them."""
    pilots = len(space.coordinates)
    rest = worlds.some(np.arange(pilots, worlds.m))
    goal_of = partial(Goal.of, shape=settings.shape, floor=settings.floor, machine=settings.machine)
    pilot = goal_of((Membership(REFERENCE),), worlds.some(np.arange(pilots)))
    best = min(rough_scales(pilot, space.coordinates, space.variances, seed), key=lambda scaled: scaled.total)
    turned = space.turned(best.search.turn)
    coordinates = np.clip(coordinates_of(turned, outputs[pilots:]), *wide_ends(turned))
    goal, shape = goal_of((cap,), rest), best.search.shape
    ranked = np.argsort(-leverage(moves_of(coordinates, rest), None, shape))
    budget = goal.budget(turned.rank)
    search = _Unbalanced(goal, coordinates, best.search.turn, shape, budget=budget, seed=seed, ranked=ranked)
    return _Measured(turned, rest, search, middle=best.log_t)


def _finite_game(
    measured: _Measured, log_t: float, draws: int, *, gamma: float, seed: np.random.SeedSequence
) -> tuple[Findings, float, float]:
    """What the best attacker knows who is told the measured worlds; the grid on which that is so; the sampler."""
    search, goal = measured.search, measured.search.goal
    points = search.points(log_t)
    # By the pilot's answers: the grid must not depend on the worlds that are measured.
    step = grid_step(measured.space.coordinates / search.deviations(log_t), goal.worlds.m, goal.worlds.n)
    reach = float((np.abs(np.stack(wide_ends(measured.space))) / search.deviations(log_t)).max())
    distance = sampler_distance(points.shape[1], reach, step or GRID)
    findings = certify(
        points,
        goal.worlds,
        goal.caps,
        goal.wanted,
        gamma=gamma,
        effort=Effort.of(draws, goal.worlds.m, goal.worlds.n, False, screen=goal.machine.device is None),
        seed=seed,
        mi_ceiling=NO_CEILING,
        distance=distance,
        step=step,
        machine=goal.machine,
    )
    return findings, step or GRID, distance


def _named(pilots: int, measured: int, findings: Findings) -> tuple[tuple[str, int], ...]:
    stages = tuple((f"releases, stage {i}", draws) for i, draws in enumerate(findings.effort.stages, start=1))
    return ("pilot worlds", pilots), ("measured worlds", measured), *stages
