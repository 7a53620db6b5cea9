"""The least noise of any covariance: a search along exact gradients, from a shape that is there onward.

At the best covariance `S` of all that keep the caps, `S^2` is proportional to the matrix `Phi` by which the figures
that decide change with the noise (Lagrange). Each round looks at fresh releases, gives weight to the figures that use
most of their room, and moves `S` towards the square root of `Phi`. To first order that is the leverage shape, whose
`Phi` does not depend on `S`. The search promises nothing: its end is certified on fresh draws, like any other shape.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import one_blas_thread
from leakcap.leakage.sensitivity import Figures, figures_of, glance
from leakcap.noise.leverage import leverage, moves_of, spectrum
from leakcap.noise.search import Goal, ScaledShape, Search, estimate_of

__all__ = ["better_shape"]

DRAWS = 1024  # releases of a round
CHECKED = 4096  # releases by which covariances are compared, the same for all
EVERY = 20  # rounds between comparisons
PEOPLE = 512  # whose figures are looked at
ALL_DRAWS = 512  # releases by which these are chosen among everybody
LENGTHENED = 20  # rounds after which one more is remembered
SHARPNESS, SHARPENED = 40, 8  # the power of the smooth maximum at first, and rounds after which it is one higher
PACE = 0.5  # of what one round of those remembered says
LEAST = 1e-9  # of the largest weight, and of the largest variance of a direction


def better_shape(
    goal: Goal, coordinates: Floats, covariance: Floats, *, seconds: float, rng: np.random.Generator
) -> tuple[ScaledShape, int]:
    """The best covariance found within so many seconds, as a shape with its scale, and the number of rounds.

    `covariance` is where the search starts, in the same (principal) coordinates; it is also what has to be beaten.
    """
    began = time.perf_counter()
    seed = np.random.SeedSequence(int(rng.integers(2**63)))  # one for all that are compared
    trail = _Trail(goal, coordinates, seed)
    best = trail.scaled(covariance)
    rounds = 0
    with one_blas_thread():
        state = _State(best.covariance, trail.figures(best))
        while time.perf_counter() - began < seconds:
            state = state.moved(coordinates, rng, rounds)
            rounds += 1
            if rounds % EVERY == 0:
                found = trail.scaled(state.covariance)
                state = state.at(found.covariance, trail.figures(found))
                best = min(best, found, key=lambda one: one.shape.total)
    return best.shape, rounds


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A covariance of the size that keeps the caps, by the draws that all are compared on."""

    shape: ScaledShape
    covariance: Floats


@dataclass(eq=False)
class _Trail:
    """Brings covariances to the size that they need, and says who decides there."""

    goal: Goal
    coordinates: Floats
    seed: np.random.SeedSequence

    def __post_init__(self) -> None:
        self._moves = moves_of(self.coordinates, self.goal.worlds) if self.goal.wanted.units else None
        self._budget = self.goal.budget(self.coordinates.shape[1])
        self._known: Ints = np.empty(0, dtype=np.intp)
        self._at: float | None = None

    def scaled(self, covariance: Floats) -> _Scaled:
        size, turn = spectrum(covariance)
        size = np.maximum(size, size[-1] * LEAST)
        turned = self.coordinates @ turn
        ranked = None if self._moves is None else np.argsort(-leverage(self._moves, turn, size))
        search = Search(self.goal, turned, turn, size, budget=self._budget, seed=self.seed, ranked=ranked)
        people = self._people(search)

        def gap(log_t: float) -> float:
            return search.gap(search.observe(log_t, CHECKED, people), estimate_of)

        shape = ScaledShape(search, search.root(gap, 0.0, 0.004))
        variances = search.deviations(shape.log_t) ** 2
        return _Scaled(shape, np.asarray((turn * variances) @ turn.T))

    def _people(self, search: Search) -> Ints | None:
        """Those who were ever among the most exposed; None where everybody is looked at."""
        if search.ranked is None or self.goal.names_members or self.goal.worlds.n <= PEOPLE:
            return None
        if len(self._known) < 2 * PEOPLE:
            seen = search.observe(0.0, ALL_DRAWS).units
            assert seen is not None
            most = np.argsort(-seen.balanced.estimate)[: PEOPLE // 2]
            self._known = np.union1d(self._known, np.union1d(most, search.ranked[: PEOPLE // 4]))
        return self._known

    def figures(self, scaled: _Scaled) -> Figures:
        people: Ints = np.empty(0, dtype=np.intp)
        if self.goal.wanted.units:
            chosen = self._people(scaled.shape.search)
            people = np.arange(self.goal.worlds.n) if chosen is None else chosen
        return figures_of(self.goal.worlds, self.goal.caps, people)


@dataclass(frozen=True, eq=False)
class _State:
    """Where the search stands: a covariance, smoothed figures and gradients, and the weights of figures."""

    covariance: Floats
    figures: Figures
    used: Floats | None = None
    phi: Floats | None = None

    def at(self, covariance: Floats, figures: Figures) -> _State:
        """The same elsewhere; people who were not looked at before begin without weight."""
        if np.array_equal(figures.people, self.figures.people):
            return replace(self, covariance=covariance)
        return _State(covariance, figures, phi=self.phi)

    def moved(self, coordinates: Floats, rng: np.random.Generator, number: int) -> _State:
        """After one look at fresh releases."""
        size, turn = spectrum(self.covariance)
        root = np.sqrt(np.maximum(size, size[-1] * LEAST))
        seen = glance(self.figures, (coordinates @ turn) / root, DRAWS, rng)
        fresh = seen.used
        memory = 4 + number / LENGTHENED  # rounds
        used = fresh if self.used is None else self.used + (fresh - self.used) / memory
        weights = (used / used.max()) ** (SHARPNESS + number / SHARPENED)  # a smooth maximum
        weights = weights / weights.sum()
        # From the whitened frame back to coordinates. Only directions of growth count: the rest is sampling noise.
        stretch = turn * root
        phi = stretch @ seen.toward(weights) @ stretch.T
        phi = phi / max(np.trace(phi), 1e-300)
        phi = phi if self.phi is None else self.phi + (phi - self.phi) / memory
        size, turn = spectrum(phi)
        target = (turn * np.sqrt(np.maximum(size, size[-1] * LEAST))) @ turn.T
        step = PACE / memory
        total = np.trace(self.covariance)
        covariance = (1 - step) * self.covariance + step * total / np.trace(target) * target
        # Figures above the prior fall like the inverse deviation.
        covariance = covariance * float(np.clip(used.max(), 0.5, 2.0)) ** 0.2
        return replace(self, covariance=covariance, used=used, phi=phi)
