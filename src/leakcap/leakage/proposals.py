"""Noise that somebody proposes: a covariance for every world, or any law by its density; and what it lets through.

The posterior stays a softmax of log-likelihoods. Where the noise depends on the world, so does its normaliser, and
`-1/2 log det S_w` belongs to the log-likelihood of world `w`: without it wide noise would be read as an unlikely world
(docs/proofs/proposed-noise.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.errors import InputError, NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import count_bounds
from leakcap.leakage.confidence import Bound, MeanEstimate, log_term, upper
from leakcap.leakage.measures import Needs, Observed, measure, thresholds
from leakcap.leakage.membership import UnitMeans
from leakcap.leakage.posterior import BlockedDraws, Source, View, dealt
from leakcap.leakage.stages import PILOT, Effort, UnitGame, look_at_all
from leakcap.leakage.tasks import observe_worlds
from leakcap.worlds import Worlds

__all__ = ["Density", "DensityReleases", "PerWorldReleases", "ceiling_per_world", "certify_proposal"]

DENSITY_SLIP = 1e-9  # what a proposed log-density may be off by, relative to its size


class Density(Protocol):
    """A law of noise, the same in all worlds, that leakcap does not know."""

    def log_density(self, x: Floats) -> Floats:
        """Logarithms of the density at the rows of `x`, up to a common constant; `-inf` where there is none."""
        ...

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """`size` independent rows of noise."""
        ...


@dataclass(frozen=True, eq=False)
class PerWorldReleases(BlockedDraws):
    """Releases of uniformly chosen worlds, each with Gaussian noise of its own covariance."""

    points: Floats  # (m, r)
    roots: Floats  # (m, r, r): lower triangular, root @ root.T is the covariance
    draws: int
    seed: np.random.SeedSequence

    prior = None  # all worlds are alike

    @proves("proposed-noise")
    def view(self, block: int) -> View:
        rng = _rng(self.seed, block)
        world = dealt(self, block, rng)
        normal = rng.standard_normal((len(world), self.points.shape[1]))
        seen = self.points[world] + np.einsum("kij,kj->ki", self.roots[world], normal)
        r = self.points.shape[1]
        logits, sizes = np.empty((len(world), self.m)), np.empty((len(world), self.m))
        log_roots = np.log(np.einsum("wii->wi", self.roots)).sum(axis=1)
        for w in range(self.m):
            inverse = np.linalg.inv(self.roots[w])
            off = (seen - self.points[w]) @ inverse.T
            squares = np.einsum("ki,ki->k", off, off)
            logits[:, w] = -0.5 * squares - log_roots[w]
            # Solving with a triangle of condition c loses about r c digits' worth of its result.
            condition = float(np.linalg.norm(self.roots[w]) * np.linalg.norm(inverse))
            sizes[:, w] = (r + 4) * condition * 2.0**-51 * (squares + abs(log_roots[w]) + 1)
        return _view(logits, world, sizes)


@dataclass(frozen=True, eq=False)
class DensityReleases(BlockedDraws):
    """Releases of uniformly chosen worlds with noise of one law, known by its density."""

    points: Floats  # (m, d), outputs
    law: Density
    draws: int
    seed: np.random.SeedSequence

    prior = None  # all worlds are alike

    @proves("proposed-noise")
    def view(self, block: int) -> View:
        rng = _rng(self.seed, block)
        world = dealt(self, block, rng)
        noise = self._noise(rng, len(world))
        seen = self.points[world] + noise
        logits = np.empty((len(world), self.m))
        for w in range(self.m):
            logits[:, w] = self._logs(seen - self.points[w])
        own = logits[np.arange(len(world)), world]
        if not np.isfinite(own).all():
            raise InputError("the proposal draws noise where its own log_density is not finite: the two must agree")
        return _view(logits, world, DENSITY_SLIP * (1 + np.abs(np.where(np.isfinite(logits), logits, 0.0))))

    def _noise(self, rng: np.random.Generator, size: int) -> Floats:
        drawn = _numbers(partial(self.law.draw, rng, size), "draw")
        if drawn.shape != (size, self.points.shape[1]) or not np.isfinite(drawn).all():
            raise InputError(
                f"draw(rng, size) of the proposal must give `size` rows of {self.points.shape[1]} finite numbers"
            )
        return drawn

    def _logs(self, x: Floats) -> Floats:
        logs = _numbers(partial(self.law.log_density, x), "log_density")
        if logs.shape != (len(x),) or np.isnan(logs).any() or np.isposinf(logs).any():
            raise InputError("log_density(x) of the proposal must give one number for each row, none NaN or infinite")
        return logs


def _numbers(call: Callable[[], Any], name: str) -> Floats:
    try:
        return np.asarray(call(), dtype=np.float64)
    except Exception as error:  # of a proposal's own code: its words may hold data
        kind = type(error).__name__
    raise InputError(f"{name} of the proposal failed ({kind})")


def _rng(seed: np.random.SeedSequence, block: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, block)))


def _view(logits: Floats, world: npt.NDArray[np.intp], slips: Floats) -> View:
    """Posteriors of these log-likelihoods, each of which is off by its slip at most."""
    from leakcap.leakage._loops import exponentials, normalise

    if not np.isfinite(slips).all():
        raise NumericalError("the proposed noise is too far from the outputs for a posterior to be computed safely")
    posterior = np.empty(logits.shape, dtype=np.float32)
    exponentials(np.maximum(logits, -1e300), logits.max(axis=1), posterior)
    normalise(posterior)
    # A likelihood that is off by a factor e^slip moves the posterior by the average of the slips over it, twice; worlds
    # that are out of reach may be off by more, and stay out of reach.
    slip = float((np.einsum("kw,kw->k", posterior, np.expm1(np.minimum(slips, 50.0)))).max())
    if not slip < 1e-3:
        raise NumericalError("the proposed noise is too close to singular for a posterior to be computed safely")
    return View(np.ones(len(world)), posterior, world, 4 * slip + (np.log(logits.shape[1]) + 48) * 2.0**-23)


@proves("proposed-noise")
def ceiling_per_world(points: Floats, covariances: Floats) -> float:
    """A bound on the mutual information without sampling: `1/2 log det(cov Y + mean S_w) - 1/2 mean log det S_w`.

    Guarantee: in nats, for worlds of equal probability; a Gaussian has the largest entropy of all laws with its
    covariance.
    """
    off = points - points.mean(axis=0)
    together = off.T @ off / len(points) + covariances.mean(axis=0)
    return max(0.0, 0.5 * float(_log_det(together) - _log_det(covariances).mean())) * (1 + 1e-9) + 1e-9


def _log_det(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.slogdet(matrices)[1])


@dataclass(frozen=True, eq=False)
class _ProposedGame(UnitGame):
    """The game whose releases come from a proposal."""

    releases: Callable[[int, np.random.SeedSequence], Source] | None = None

    def source(self, draws: int, seed: np.random.SeedSequence) -> Source:
        assert self.releases is not None
        return self.releases(draws, seed)


@proves("confidence", "wagers", "proposed-noise")
def certify_proposal(
    releases: Callable[[int, np.random.SeedSequence], Source],
    worlds: Worlds,
    caps: Sequence[Cap],
    wanted: Needs,
    *,
    gamma: float,
    draws: int,
    seed: np.random.SeedSequence,
    mi_ceiling: float,
    memory: int = Machine().memory,
) -> tuple[float, ...]:
    """One figure a cap, for releases that `releases(draws, seed)` makes.

    Guarantee: with probability `1 - gamma` over the draws all figures bound the best attacker's, for noise of exactly
    the proposed law.
    """
    m, n = worlds.m, worlds.n
    cuts = thresholds(worlds.rate) if wanted.sticks else np.empty(0)
    term = log_term(gamma, count_bounds(m, n, sticks=len(cuts), wanted=wanted, stages=1))
    bound: Bound = partial(upper, log_term=term)
    first, second = seed.spawn(2)
    game = _ProposedGame(
        np.empty((m, 0)),
        worlds,
        cuts,
        caps=tuple(caps),
        distance=0.0,
        step=None,
        machine=Machine(memory),
        releases=releases,
    )
    units = None
    if wanted.units:
        start = look_at_all(game, Effort((draws,), draws, 0), first, term=term, tick=lambda _: None)
        units = UnitMeans(
            balanced=MeanEstimate.exact(start.top[0]),
            sticks=MeanEstimate.exact(np.array(start.top[1:]).reshape(len(cuts), n)),
            thresholds=cuts,
            naming=MeanEstimate.exact(bound(start.naming)),
        )
    seen_worlds = None
    if wanted.worlds:
        aside = observe_worlds(game.source(PILOT, second.spawn(1)[0]), wanted.priors, wanted.tasks)
        placed = aside.wagers(draws, term, m)
        seen_worlds = observe_worlds(game.source(draws, second), wanted.priors, wanted.tasks, placed)
    seen = Observed(worlds.rate, m, mi_ceiling, units=units, worlds=seen_worlds)
    return tuple(measure(cap, seen, bound) for cap in caps)
