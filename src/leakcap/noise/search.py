"""The noise family of one shape, and the search for the least scale of it that keeps a list of caps.

The search promises nothing: whatever it ends with is certified afterwards, on fresh draws. Success, curve, information
and true positive rates fall as Gaussian noise grows (docs/proofs/monotone.md), so it is one root in the noise scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from leakcap.caps import Cap, MutualInformation, NameAMember
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import Machine
from leakcap.leakage.certify import COARSEST, entropy_slack, grid_step
from leakcap.leakage.confidence import Bound, MeanEstimate, forecast, upper
from leakcap.leakage.measures import Needs, Observed, before, information_budget, measure, needs, thresholds
from leakcap.leakage.membership import observe_units
from leakcap.leakage.posterior import Cells, Sampled, Source
from leakcap.leakage.stages import SOME_UNITS
from leakcap.leakage.tasks import observe_worlds
from leakcap.noise.entropy import sampler_distance
from leakcap.noise.leverage import leverage, leverage_shape, moves_of
from leakcap.noise.shapes import information_ceiling, shape_variances
from leakcap.worlds import Worlds

__all__ = ["MIN_DRAWS", "Goal", "ScaledShape", "Search", "draws_needed", "estimate_of", "refined", "rough_scales"]

BETAS = (0.5, 2.0, 8.0)  # shapes between the papers' rule (small) and isotropic (large)
MIXED = (0.0, 0.1, 0.3)  # shares of isotropic noise in shapes that look at people
MIN_DRAWS, MAX_DRAWS = 2**13, 2**18
MIN_REFINING = 2048  # draws that bring a scale near the one needed
NEARBY = 0.15  # a step of the logarithm of the noise variance after which all draws are looked at again
MANY = 1024  # units among whom those that decide are looked for
CROWD = 100_000  # units that are not all looked at
CHEAP_FLOPS = 1.2e11  # of a pass that nobody minds: then the statistical margin is made smaller


@dataclass(frozen=True, eq=False)
class Goal:
    """Which caps noise has to keep, over which worlds, and what shapes it may have."""

    worlds: Worlds
    caps: tuple[Cap, ...]  # concrete: each with all its numbers
    wanted: Needs
    shape: str
    floor: float  # least noise deviation
    machine: Machine

    @classmethod
    def of(
        cls,
        caps: Sequence[Cap],
        worlds: Worlds,
        *,
        shape: str = "best",
        floor: float = 0.0,
        machine: Machine = Machine(),  # noqa: B008
    ) -> Goal:
        wanted, concrete = needs(caps, worlds)
        return cls(worlds, concrete, wanted, shape=shape, floor=floor, machine=machine)

    @property
    def names_members(self) -> bool:
        """Whether somebody may be picked after seeing the release: that depends on everybody at once."""
        return any(isinstance(cap, NameAMember) for cap in self.caps)

    def budget(self, directions: int) -> float:
        """The information that keeps all caps by itself."""
        # The real sampler's distance from the ideal one costs a little information: leave room for it.
        slack = entropy_slack(sampler_distance(directions, 2**10), self.worlds.m)
        worlds = self.worlds
        return max(information_budget(self.caps, worlds.rate, worlds.m, worlds.shares) - slack, 1e-12)


@dataclass(frozen=True, eq=False)
class Search:
    """The noise family `max(sqrt(t e), floor)` for one shape `e`, and the caps it has to keep.

    `turn` rotates principal coordinates to the directions in which the shape is diagonal.
    """

    goal: Goal
    coordinates: Floats
    turn: Floats | None
    shape: Floats
    budget: float  # information that keeps all caps by itself
    seed: np.random.SeedSequence
    ranked: Ints | None = None  # units, the most exposed (to first order) first

    def deviations(self, log_t: float) -> Floats:
        return np.maximum(np.sqrt(np.exp(log_t) * self.shape), self.goal.floor)

    def points(self, log_t: float) -> Floats:
        return np.asarray(self.coordinates / self.deviations(log_t))

    def ceiling(self, log_t: float) -> float:
        """Bound on the information without sampling, for the ideal sampler."""
        if self.turn is None:
            return information_ceiling(self.variances, self.deviations(log_t) ** 2)
        # The same bound in any basis: eigenvalues of the whitened covariance against unit noise.
        deviations = self.deviations(log_t)
        whitened = np.linalg.eigvalsh(self.covariance / np.outer(deviations, deviations))
        slip = 4 * len(whitened) ** 2 * np.finfo(float).eps * max(float(whitened[-1]), 1.0)  # of the eigenvalues
        return information_ceiling(np.maximum(whitened, 0.0), np.ones_like(whitened)) + slip

    @cached_property
    def covariance(self) -> Floats:
        shares = self.goal.worlds.shares
        if shares is not None:
            return np.asarray((self.coordinates.T * shares) @ self.coordinates)
        return np.asarray(self.coordinates.T @ self.coordinates / len(self.coordinates))

    @cached_property
    def variances(self) -> Floats:
        return np.ascontiguousarray(np.diag(self.covariance))

    def source(self, log_t: float, draws: int, step: float | None) -> Source:
        points = self.points(log_t)
        shares = self.goal.worlds.shares
        return Cells(points[:, 0], step, shares) if step else Sampled(points, draws, self.seed, prior=shares)

    def observe(self, log_t: float, draws: int, chosen: Ints | None = None, step: float | None = None) -> Observed:
        source, goal = self.source(log_t, draws, step), self.goal
        cuts = thresholds(goal.worlds.rate) if goal.wanted.sticks else np.empty(0)
        return Observed(
            goal.worlds.rate,
            goal.worlds.m,
            self.ceiling(log_t),
            units=observe_units(source, goal.worlds, cuts, chosen, machine=goal.machine) if goal.wanted.units else None,
            worlds=observe_worlds(source, goal.wanted.priors, goal.wanted.tasks) if goal.wanted.worlds else None,
            shares=goal.worlds.shares,
        )

    def exposed(self, most: int) -> Ints | None:
        """The units that decide caps on people; None where naming a member is capped, which takes everybody."""
        if self.ranked is None or self.goal.names_members:
            return None
        return np.sort(self.ranked[:most])

    def excess(self, seen: Observed, bound: Bound) -> float:
        """How far the worst cap is missed, relative to the room between its prior and its limit; <= 0 is kept."""
        worst = -np.inf
        for cap in self.goal.caps:
            floor = before(cap, seen.rate, seen.m, seen.shares)
            worst = max(worst, (measure(cap, seen, bound) - cap.limit) / (cap.limit - floor))
        return worst

    def recognised(self, log_t: float) -> float:
        """About the share of participants recognised at 1 % false alarms, among the units that are exposed most."""
        chosen, worlds = self.exposed(64), self.goal.worlds
        if chosen is None:
            return 0.0
        cuts, rate = thresholds(worlds.rate), worlds.rate
        worst = observe_units(self.source(log_t, 2048, None), worlds, cuts, chosen).sticks.estimate.max(axis=1)
        return float(((0.01 * cuts * (1 - rate) + worst) / (rate * (1 - cuts))).min())

    def gap(self, seen: Observed, bound: Bound) -> float:
        """Logarithm of what is used of the room; near zero a straight line of slope -1/2 in the log of the scale."""
        return float(np.log1p(max(self.excess(seen, bound), -0.999)))

    @cached_property
    def safe_scale(self) -> float:
        """A scale at which the information alone keeps every cap, without sampling."""
        low = high = 0.0
        while self.ceiling(low) <= self.budget and low > -80:
            low -= 2
        while self.ceiling(high) > self.budget:
            high += 2
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (low, middle) if self.ceiling(middle) <= self.budget else (middle, high)
        return high

    @cached_property
    def least_scale(self) -> float:
        """Below this the noise is a thousandth of the distance between worlds, which helps nobody."""
        return 2 * float(np.log((np.abs(self.coordinates) / np.sqrt(self.shape)).max() / 1024))

    def root(self, gap: Callable[[float], float], start: float, tolerance: float) -> float:
        """A scale that keeps the caps, using at least `1 - tolerance` of the room: a guarded secant."""
        low, high = self.least_scale, self.safe_scale
        if high <= low:
            return high
        x, last = min(max(start, low), high), None
        for _ in range(60):
            g = gap(x)
            if -tolerance <= g <= 0 or (x == low and g <= 0) or (x == high and g > 0):
                return x
            bottom, top = (low, x) if g <= 0 else (x, high)
            slope = (g - last[1]) / (x - last[0]) if last else -0.5
            last = x, g
            low, high = bottom, top
            if high - low < 1e-10:
                break
            x += (-tolerance / 2 - g) / slope if slope < 0 else 2 * g
            if not low < x < high:
                x = (low + high) / 2 if last[0] in (low, high) and high - low < 8 else min(max(x, low), high)
        return high


def candidates(goal: Goal, variances: Floats, moves: Floats | None) -> list[tuple[Floats | None, Floats]]:
    """Shapes worth trying: a rotation of the principal directions (or None) and noise variances along them."""
    shape = goal.shape
    if all(isinstance(cap, MutualInformation) for cap in goal.caps):
        beta = min(cap.limit for cap in goal.caps)
        return [(None, shape_variances("logdet" if shape == "best" else shape, variances, beta))]
    if shape in ("linear", "isotropic"):
        return [(None, shape_variances(shape, variances, 1.0))]
    shapes: list[tuple[Floats | None, Floats]] = [(None, shape_variances("logdet", variances, b)) for b in BETAS]
    if len(variances) == 1:
        return shapes[:1]  # all shapes are one
    people = leverage_shape(moves) if shape == "best" and moves is not None else None
    if people is not None:
        for mixed in MIXED:
            size, turn = np.linalg.eigh((1 - mixed) * people + mixed * np.eye(len(people)) / len(people))
            shapes.append((turn, np.maximum(size, size[-1] * 1e-9)))
    return shapes


@dataclass(frozen=True, eq=False)
class ScaledShape:
    """A shape, and a scale of it near the one that it needs."""

    search: Search
    log_t: float

    @property
    def total(self) -> float:
        """Noise variance of all directions together."""
        return float((self.search.deviations(self.log_t) ** 2).sum())


def rough_scales(goal: Goal, coordinates: Floats, variances: Floats, seed: np.random.SeedSequence) -> list[ScaledShape]:
    """Every shape that is worth trying, roughly scaled: by a few draws and units, the same for all (`seed`)."""
    budget = goal.budget(coordinates.shape[1])
    moves = moves_of(coordinates, goal.worlds) if goal.wanted.units else None
    scaled: list[ScaledShape] = []
    for turn, shape in candidates(goal, variances, moves):
        turned = coordinates if turn is None else coordinates @ turn
        ranked = None if moves is None else np.argsort(-leverage(moves, turn, shape))
        search = Search(goal, turned, turn, shape, budget=budget, seed=seed, ranked=ranked)
        start = float(np.log(scaled[-1].total / search.shape.sum())) if scaled else None
        scaled.append(ScaledShape(search, _rough(search, start)))
    return scaled


def _rough(search: Search, start: float | None) -> float:
    """A scale near the one needed, from some hundred draws and the units that are exposed most."""
    chosen = search.exposed(256)

    def gap(log_t: float) -> float:
        return search.gap(search.observe(log_t, 1024, chosen), estimate_of)

    return search.root(gap, search.safe_scale - 3 if start is None else start, 0.05)


def refined(
    search: Search, log_t: float, term: float, draws: int | None, *, also: Ints | None = None
) -> tuple[float, int]:
    """The scale to certify, and with how many draws: as many as keep the statistical margin small.

    `also` are units that must be looked at, beside those that seem to be exposed most.
    """
    chosen = _worst(search, log_t, also)
    step = grid_step(search.points(log_t), search.goal.worlds.m, search.goal.worlds.n)
    if step:
        exact: Bound = partial(upper, log_term=term)

        def gap(at: float, on: float) -> float:
            return search.gap(search.observe(at, 0, chosen, on), exact) + 1e-9

        if step != COARSEST:
            log_t = search.root(partial(gap, on=COARSEST), log_t, 1e-4)
        log_t = search.root(partial(gap, on=step), log_t, 1e-6)
        return log_t, draws or MIN_DRAWS
    used = draws or draws_needed(search, log_t, term, chosen)
    aim: Bound = partial(forecast, draws=used, log_term=term)
    own = int(min(used, max(4096, 2**25 // search.goal.worlds.m)))

    def sampled_gap(at: float, draws: int) -> float:
        return search.gap(search.observe(at, draws, chosen), aim)

    if own < 8 * MIN_REFINING:
        return search.root(partial(sampled_gap, draws=own), log_t, 0.005), used
    few = cache(partial(sampled_gap, draws=own // 8))
    log_t = search.root(few, log_t, 0.02)
    # All draws say how large the gap is here, and the first of them how it changes nearby: one look by all is enough.
    apart = sampled_gap(log_t, own) - few(log_t)
    moved = search.root(lambda at: few(at) + apart, log_t, 0.005)
    if abs(moved - log_t) > NEARBY:
        moved = search.root(partial(sampled_gap, draws=own), moved, 0.005)
    return moved, used


def _worst(search: Search, log_t: float, also: Ints | None) -> Ints | None:
    """The units that will decide: those that a few draws, and then more of them, find exposed most."""
    exposed, n = search.exposed(MANY), search.goal.worlds.n
    if exposed is None or n <= MANY // 8:
        return exposed

    def most_exposed(draws: int, among: Ints, kept: int) -> Ints:
        seen = search.observe(log_t, draws, among).units
        assert seen is not None
        return among[np.argsort(-seen.balanced.estimate)[:kept]]

    if MANY < n <= CROWD:  # leverage is right to first order, which is wrong about medians: look at everybody
        exposed = np.union1d(exposed, most_exposed(512, np.arange(n), MANY))
    exposed = most_exposed(2048, exposed, MANY // 8)
    return np.sort(exposed) if also is None else np.union1d(exposed, also)


def draws_needed(search: Search, log_t: float, term: float, chosen: Ints | None) -> int:
    """Draws at which bound and estimate differ by a twelfth of the room or 0.3 percentage points; by less if cheap."""
    seen = search.observe(log_t, 2048, chosen)
    at_best = search.excess(seen, estimate_of)
    room = min(cap.limit - before(cap, seen.rate, seen.m, seen.shares) for cap in search.goal.caps)
    allowed = min(1 / 12, 0.003 / room)
    # Per draw: products with the units that get all draws and with directions, and exponentials, which cost like 600
    # flops each.
    units = search.goal.worlds.n if search.goal.names_members else min(search.goal.worlds.n, SOME_UNITS)
    work = search.goal.worlds.m * (2.0 * (units + len(search.shape)) + 600)

    def margin(used: int) -> float:
        return search.excess(seen, partial(forecast, draws=used, log_term=term, sigmas=0)) - at_best

    used = MIN_DRAWS
    while used < MAX_DRAWS and margin(used) > (allowed / 3 if used * work < CHEAP_FLOPS else allowed):
        used *= 2
    return used


def estimate_of(mean: MeanEstimate) -> Floats:
    """The bound that is no bound: for aiming only."""
    return mean.estimate
