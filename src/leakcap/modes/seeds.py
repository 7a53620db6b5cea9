"""Secret seeds (`mode="confidence", randomness="secret"`): the secret is a fresh world and a seed of the function.

Algorithm 2 of PAC Privacy. The function's own randomness protects, too: two worlds are told apart only as far as their
clouds of answers lie apart, and noise covers the rest (docs/proofs/secret-seeds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import entropy_slack
from leakcap.leakage.permuted import distance_upper, matched_differences, permuted_distances
from leakcap.modes.by_information import budgets_for, figures_by_information, refuse_impossible
from leakcap.modes.interface import ASSUMPTIONS, POOL_PUBLIC, Draw, NoiseSettings, certificate
from leakcap.noise import GRID, Noise, Randomness, Subspace, released_vector, sampler_distance, subspace
from leakcap.simulate.seeds import SEEDS
from leakcap.worlds import Worlds

__all__ = [
    "MeasuredSeeds",
    "SecretSeed",
    "SeededPairs",
    "SeededRerun",
    "certified",
    "measured",
    "price_of_slack",
    "seed_draws",
]

REACH = 1e3  # noise deviations that an answer may lie from the centre
BASIS_ROWS = 2048  # answers of the pilot that directions are found from
SeededRerun = Callable[
    [Bools, tuple[int, ...]], "Floats | None"
]  # the answer in a world with a seed; None: there is none
THEOREMS = ("secret-seeds", "wagers", "trace", "currency", "rebuild", "sampler", "uniform-halves")
SEED_ASSUMPTIONS = (
    "Nobody but the custodian learns the secret world, its seed or the noise; all come from the operating system.",
    "The function takes its randomness from its seed; what it draws beyond that, it draws anew in every run.",
)


@dataclass(frozen=True, eq=False)
class SeededPairs:
    """Answers in independent pairs of independent worlds, `(pairs, 2, seeds, outputs)`; a pair has seeds of its own."""

    pilot: Floats
    measured: Floats
    words: int = 1  # seeds that one run takes: one for each of several functions


@dataclass(frozen=True, eq=False)
class Ball:
    """What the pilot has fixed: directions, how each is stretched, and the ball that stretched answers are cut to."""

    space: Subspace
    stretch: Floats
    radius: float

    def stretched(self, answers: Floats) -> Floats:
        """Stretched coordinates of answers, `(..., outputs)`; zeros where they overflow."""
        with np.errstate(all="ignore"):
            found = _coordinates(self.space, answers.reshape(-1, answers.shape[-1])) * self.stretch
        found = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)
        return found.reshape(*answers.shape[:-1], self.space.rank)

    def cut(self, stretched: Floats) -> Floats:
        """Longer ones are shortened to the radius: part of the mechanism."""
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(stretched, axis=-1, keepdims=True)
            inside = stretched * np.minimum(1.0, self.radius * (1 - 1e-12) / np.maximum(lengths, 1e-300))
        return np.where(np.isfinite(inside).all(axis=-1, keepdims=True), inside, 0.0)


@dataclass(frozen=True, eq=False)
class MeasuredSeeds:
    """The mechanism, and how far its clouds of answers lie apart: at most `distance`, but for `gamma`."""

    ball: Ball
    distance: float
    seen: float  # mean over the measured pairs
    gamma: float
    pilots: int
    pairs: int
    seeds: int
    cut: int  # measured answers that were longer than the radius
    words: int = 1


@dataclass(frozen=True, eq=False)
class SecretSeed:
    """The secret is a fresh random world and a fresh seed; the function runs once, on both.

    Whatever happens there, a vector comes out: an answer of another form, an error or a NaN counts as the centre, and
    long answers are cut. Both are part of the mechanism.
    """

    noise: Noise
    ball: Ball
    rerun: SeededRerun
    draw: Draw
    exposure: Floats
    words: int = 1
    step: float = GRID

    def vector(self, randomness: Randomness) -> Floats:
        # Drawn last, and told to nobody: nothing else depends on either, and no other seed is ever tried.
        world = self.draw(randomness)
        seed = tuple(randomness.below(SEEDS) for _ in range(self.words))
        answer = self.rerun(world, seed)
        mapped = np.zeros(self.ball.space.rank) if answer is None else self.ball.cut(self.ball.stretched(answer))
        return released_vector(self.noise, mapped / self.ball.stretch, self.step, randomness)


@proves("secret-seeds")
def measured(pairs: SeededPairs, settings: NoiseSettings, gamma: float) -> MeasuredSeeds:
    """The pilot fixes the mechanism, the other pairs bound how far apart its answers are. No cap has a part in it."""
    count, _, seeds, _ = pairs.measured.shape
    ball = _ball(pairs.pilot, settings, math.log(1 / gamma) / count)
    stretched = ball.stretched(pairs.measured)
    inside = ball.cut(stretched)
    cut = int((np.linalg.norm(stretched, axis=-1) > ball.radius).sum())
    distances = permuted_distances(inside) if ball.space.rank else np.zeros(count)
    tried = permuted_distances(ball.cut(ball.stretched(pairs.pilot))) if ball.space.rank else np.zeros(1)
    return MeasuredSeeds(
        ball=ball,
        distance=distance_upper(tried, distances, 4 * ball.radius**2, gamma) if ball.space.rank else 0.0,
        seen=float(distances.mean()),
        gamma=gamma,
        pilots=len(pairs.pilot),
        pairs=count,
        seeds=seeds,
        cut=cut,
        words=pairs.words,
    )


def seed_draws(pilots: int, pairs: int, seeds: int, cut: int) -> tuple[tuple[str, int], ...]:
    """What a certificate states of the draws."""
    return (
        ("pilot pairs of worlds", pilots),
        ("measured pairs of worlds", pairs),
        ("seeds of each pair", seeds),
        ("measured answers", 2 * pairs * seeds),
        ("of them cut to the ball", cut),
    )


def price_of_slack(distance: float, seen: float) -> float:
    """How much more noise the margin for unseen pairs costs; at most a thousandfold is told."""
    return math.sqrt(distance / max(seen, 1e-6 * distance))


def _ball(pilot: Floats, settings: NoiseSettings, rate_of_slack: float) -> Ball:
    """Directions, stretches and radius by the pilot alone.

    Noise of variance `e_i` along directions in which matched answers differ by `c_i` in the mean square leaves
    `sum c_i / e_i` to the attacker: the total is least for `e_i` proportional to the root of `c_i`. What the margin for
    unseen pairs will cost, which goes with the size of the answers, is counted into `c_i`.
    """
    per_world = max(1, BASIS_ROWS // (2 * len(pilot)))
    space = subspace(
        np.ascontiguousarray(pilot[:, :, :per_world]).reshape(-1, pilot.shape[-1]),
        settings.weights,
        settings.machine.memory,
    )
    if not space.rank:
        return Ball(space, np.empty(0), 1.0)
    coordinates = _coordinates(space, pilot.reshape(-1, pilot.shape[-1]))
    clouds, stretch = coordinates.reshape(*pilot.shape[:-1], space.rank), np.ones(space.rank)
    if settings.shape != "isotropic":
        differences = np.concatenate([matched_differences(first, second) for first, second in clouds])
        squares = (clouds[:, :, 0] ** 2).sum(axis=-1)
        slack = 4 * 1.25 * rate_of_slack * squares.max() / max(squares.mean(), 1e-300)
        costs = differences.T @ differences / len(differences) + slack * coordinates.T @ coordinates / len(coordinates)
        values, turn = np.linalg.eigh(costs)
        values = np.maximum(values, 1e-24 * values[-1])
        space, coordinates, stretch = space.turned(turn), coordinates @ turn, (values / values[-1]) ** -0.25
    # One answer of every world: the radius, and with it the margin, does not grow with the number of seeds.
    lengths = np.linalg.norm(coordinates * stretch, axis=1).reshape(pilot.shape[:-1])[:, :, 0]
    radius = float(lengths.max()) or float(np.linalg.norm(coordinates * stretch, axis=1).max())
    return Ball(space, stretch, radius)


def _coordinates(space: Subspace, rows: Floats) -> Floats:
    if space.directions is not None:
        return np.asarray(((rows - space.centre) * space.scale) @ space.directions.T)
    return np.stack([space.project(row) for row in rows])


@proves("secret-seeds", "trace")
def certified(
    found: MeasuredSeeds,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    rerun: SeededRerun,
    draw: Draw,
) -> tuple[SecretSeed, Certificate]:
    """All subsets and all seeds: the least noise of the chosen shape that keeps the caps.

    Guarantee: with probability `1 - gamma` over the measured pairs, the mutual information between the fresh world and
    the release, and the success against every single person, are at most the certified figures.
    """
    ball, rank = found.ball, found.ball.space.rank
    if rank:
        lost = sampler_distance(rank, REACH)
        budget, signal = budgets_for(caps, worlds, lost)
        slack = entropy_slack(lost, 2**worlds.n)
        if slack >= budget / 2:
            raise CapError("this cap is too close to the prior for so many outputs; loosen it")
        # Half the mean squared distance in noise deviations bounds the information, and it is the signal.
        told = min(budget - slack, signal) * (1 - 1e-12)
        deviation = math.sqrt(found.distance / (2 * told)) * (1 + 1e-12)
        if ball.radius > REACH * deviation:
            raise CapError("this cap asks for almost no noise; choose a tighter one")
        deviations = np.maximum(deviation / ball.stretch, settings.floor)
        price = price_of_slack(found.distance, found.seen)
    else:
        refuse_impossible(caps, worlds)
        lost, slack, told, deviation, deviations, price = 0.0, 0.0, 0.0, 1.0, np.empty(0), 1.0
    noise = Noise(ball.space, deviations, settings.floor)
    ball_in_words = f"Answers are cut to a ball of {ball.radius / deviation:.3g} noise deviations, fixed by the pilot."
    made = certificate(
        "confidence",
        worlds,
        ball.space,
        settings,
        **figures_by_information(caps, worlds, told + slack, signal=told, distance=lost),
        confidence=1 - found.gamma,
        gamma=found.gamma,
        gamma_used=found.gamma,
        bounds=1,
        draws=seed_draws(found.pilots, found.pairs, found.seeds, found.cut),
        price_of_confidence=price,
        sampler_distance=lost,
        log_det=told,
        signal=told,
        pool_public=(*POOL_PUBLIC, ball_in_words, *settings.pool_public),
        assumptions=SEED_ASSUMPTIONS + ASSUMPTIONS[1:],
        theorems=THEOREMS,
    )
    exposure = np.full(worlds.n, made.membership_success)
    return SecretSeed(noise, ball, rerun=rerun, draw=draw, exposure=exposure, words=found.words), made
