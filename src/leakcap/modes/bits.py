"""Whoever else is known (`design="bits"`): sums over people, every one of them in or out by a fair coin of its own.

The answer is a statistic of the whole pool plus, for every person, half of what the person brings, with the sign of
the coin. An attacker who knows all other coins is left with one of two Gaussians: everything follows in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.convert import posterior
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.contributions import Contributions
from leakcap.kernels.moments.sums import masked_sums
from leakcap.leakage.certify import entropy_slack
from leakcap.leakage.measures import thresholds
from leakcap.modes.about_one import furthest_apart, refuse_other_caps, values_of
from leakcap.modes.individual import EXACT_SUMS, closed_form
from leakcap.modes.interface import Draw, NoiseSettings
from leakcap.noise import GRID, LawOf, Noise, Randomness, Subspace, released_vector, shape_variances, subspace
from leakcap.noise.laws import NORMAL, Law, normal
from leakcap.noise.leverage import leverage_shape, spectrum
from leakcap.worlds import Units, Worlds

__all__ = ["AFTERWARDS", "CoinForEverybody", "about_all_coins", "answers", "certified", "sticks"]

ROUNDING = 1e-12  # relative: what a sum of squares and the normal integral lose, with room to spare
CENTRED = (
    "The statistic of the whole pool around which the coins move the answer: the pool's own mean, sum, fit or "
    "quantile. It is not noised beyond that, so the promise says nothing about being in the pool."
)
AFTERWARDS = (
    "Questions about several people at once, a family for example, may be guessed better: they, and questions about "
    "somebody picked after seeing the release, are bounded only by the information about all coins together."
)


@dataclass(frozen=True, eq=False)
class CoinForEverybody:
    """The secret is a coin for everybody; what those who take part bring is added up, whatever the others do."""

    noise: Noise  # its coordinates are what each unit adds to the answer
    draw: Draw  # the coins
    exposure: Floats
    squares: Floats | None = None  # of everybody; of Gaussian noise alone, whose squares add up
    step: float = GRID  # of the grid, in deviations of the noise

    def vector(self, randomness: Randomness) -> Floats:
        return released_vector(self.noise, self.coordinates(self.draw(randomness)), self.step, randomness)

    def coordinates(self, coins: Bools) -> Floats:
        """Of the answer for some coins. Sums are rounded once: their order must not tell who is in it."""
        return np.array([math.fsum(column) for column in self.noise.space.coordinates[coins].T.tolist()])


def answers(brings: Contributions, worlds: Worlds) -> Floats:
    """What would be released without noise, for the coins in `worlds`: on the scale of the whole pool."""
    centre = brings.values.mean(axis=0)
    moved = masked_sums(brings.values - centre, worlds, Units(worlds.n, worlds.n))
    whole = centre if brings.averaged else centre * worlds.n
    return np.asarray(whole + moved * _weight(brings))


@proves("bits")
def certified(
    brings: Contributions,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    draw: Draw,
    law_of: LawOf = normal,
) -> tuple[CoinForEverybody, Certificate]:
    """The least noise that keeps a membership cap against every single person, whoever else is known.

    Guarantee: certain, nothing is sampled. No attacker who knows the pool, the noise's law and who else took part
    tells with a larger success than certified whether a given person took part; nor recognises participants at a
    larger rate, at any rate of false alarms, than two laws of the noise at the stated distance allow.
    """
    pool = subspace(brings.values, settings.weights, settings.machine.memory)
    law = law_of(pool.rank)
    refuse_other_caps(caps, worlds.rate, law)
    if pool.rank:
        steps = pool.coordinates * _weight(brings)
        shape, turn = spectrum(_shape(steps, settings))
        turned = pool.turned(turn)
        space = replace(turned, coordinates=turned.coordinates * _weight(brings))
        size = np.sqrt(np.maximum(shape, 1e-14 * shape[-1]))
        deviations, distance = _least(space.coordinates, size, caps, floor=settings.floor, law=law, kept=settings.kept)
        charges = _charges(space.coordinates, deviations)
    else:
        space, deviations, distance, charges = pool, np.empty(0), 0.0, np.zeros(worlds.n)
    if not brings.averaged:
        space = replace(space, centre=pool.centre * worlds.n)
    noise = Noise(space, deviations, settings.floor, law)
    success = np.where(charges > 0, law.success(np.sqrt(charges)) * (1 + ROUNDING), 0.5)
    exposure = np.minimum(1.0, success + distance)
    worst = float(exposure.max())
    information = _information(space, deviations, distance, law)
    made = closed_form(
        worlds,
        space,
        settings,
        caps,
        worst=worst,
        values=values_of(caps, worst, apart=math.sqrt(float(charges.max())), distance=distance),
        mutual_information=information,
        hockey_sticks=sticks(float(charges.max()), worlds.rate, distance, law),
        known_memberships=((worlds.n - 1, worst),),
        name_a_member_success=min(1.0, float(posterior(information, worlds.rate))),
        sampler_distance=distance,
        pool_public=(CENTRED, EXACT_SUMS),
        not_promised=AFTERWARDS,
        theorems=("bits", "rebuild", "sampler", "log-det"),
    )
    return CoinForEverybody(noise, draw, exposure, charges if law is NORMAL else None), made


def _weight(brings: Contributions) -> float:
    """Of a unit in the answer. Half of all take part, so each counts twice."""
    return 2 / len(brings.values) if brings.averaged else 2.0


def _shape(steps: Floats, settings: NoiseSettings) -> Floats:
    """The covariance of the noise, up to a factor."""
    people = leverage_shape(steps) if settings.shape == "best" else None
    if people is not None:
        return people
    spread = np.einsum("ur,ur->r", steps, steps) / 4
    return np.diag(shape_variances("isotropic" if settings.shape == "best" else settings.shape, spread, 1.0))


def _charges(steps: Floats, deviations: Floats) -> Floats:
    """Squared distance, in noise deviations, of the two answers between which a unit's coin decides; rounded up."""
    whitened = steps / deviations
    return np.asarray(np.einsum("ur,ur->u", whitened, whitened) * (1 + ROUNDING))


def _least(
    steps: Floats, shape: Floats, caps: tuple[Cap, ...], *, floor: float, law: Law, kept: float
) -> tuple[Floats, float]:
    """The least multiple of `shape` that keeps every charge within the caps, and the sampler's distance."""
    reach = np.abs(steps).sum(axis=0)  # the longest answer there may be
    apart = math.sqrt(_charges(steps, shape).max())

    def at(lost: float) -> Floats:
        return np.maximum(shape * apart / furthest_apart(caps, law, max(lost, kept)), floor)

    def distance(deviations: Floats) -> float:
        # An answer is rounded when it is added up and scaled, which the distance allows for once.
        return law.sampler_distance(len(shape), 4 * float((reach / deviations).max()))

    deviations = at(distance(at(0.0)))  # more noise: the distance falls
    return deviations, distance(deviations)


def _information(space: Subspace, deviations: Floats, distance: float, law: Law) -> float:
    """About all coins together: at most half the log-determinant, and a coin for everybody."""
    n = len(space.coordinates)
    if not space.rank:
        return 0.0
    whitened = space.coordinates / deviations
    size = np.maximum(np.linalg.eigvalsh(whitened.T @ whitened) / 4, 0.0)
    half_log_det = law.average(lambda scale: 0.5 * float(np.log1p(size / scale**2).sum()))
    return about_all_coins(half_log_det, distance, n)


def about_all_coins(half_log_det: float, distance: float, n: int) -> float:
    """The information about `n` coins, of a law that is off by `distance` in total variation."""
    room = entropy_slack(distance, 1) + distance * n * math.log(2)
    return min(half_log_det * (1 + 1e-9) + room, n * math.log(2)) * (1 + 1e-12)


def sticks(charge: float, rate: float, distance: float, law: Law = NORMAL) -> tuple[tuple[float, float], ...]:
    """Bounds on `E(q - t)_+` for the most exposed unit: of two laws of noise whose means are `sqrt(charge)` apart."""
    cuts, apart = thresholds(rate), math.sqrt(charge)
    if not apart:
        return tuple((float(cut), max(0.0, rate - float(cut)) + 2 * distance) for cut in cuts)
    found = law.average(lambda scale: _stick(cuts, apart / scale))
    found = np.where(cuts < law.surest(apart), found, 0.0)
    bounds = np.minimum(1.0, found * (1 + 1e-9) + 1e-15 + 2 * distance)
    return tuple(zip(cuts.tolist(), bounds.tolist(), strict=True))


def _stick(cuts: Floats, apart: float) -> Floats:
    """`E(q - t)_+` for two Gaussians, at every cut."""
    turn = np.log(cuts / (1 - cuts)) / apart
    return np.asarray(((1 - cuts) * ndtr(apart / 2 - turn) - cuts * ndtr(-apart / 2 - turn)) / 2)
