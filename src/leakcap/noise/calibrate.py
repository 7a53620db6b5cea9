"""The least noise that keeps a list of caps: search on one set of draws, certify on fresh ones.

Success, curve, information and true positive rates fall as Gaussian noise grows (docs/proofs/monotone.md), so the
search is one root in the noise scale. Certified values are random and do not fall: they are never bisected. If
certification fails, the noise is raised and tried again with a smaller share of the failure probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap, MutualInformation
from leakcap.cores import Machine
from leakcap.errors import NumericalError
from leakcap.leakage.certify import COARSEST, Effort, Findings, certify, count_bounds, entropy_slack, grid_step
from leakcap.leakage.confidence import Attempts, Bound, forecast, log_term, upper
from leakcap.leakage.measures import RATIOS, Needs, Observed, information_budget, measure, needs, prior, thresholds
from leakcap.leakage.posterior import Cells, Sampled, Source
from leakcap.leakage.tasks import observe_worlds
from leakcap.leakage.units import observe_units
from leakcap.noise.entropy import GRID, sampler_distance
from leakcap.noise.leverage import leverage_shape
from leakcap.noise.shapes import information_ceiling, shape_variances
from leakcap.proofs import proves
from leakcap.worlds import Worlds

__all__ = ["Calibrated", "calibrate"]

Floats = npt.NDArray[np.float64]
BETAS = (0.5, 2.0, 8.0)  # shapes between the papers' rule (small) and isotropic (large)
FEWEST, MOST = 2**13, 2**18
CHEAP = 1.2e11  # flops of a pass that nobody minds: then the statistical margin is made smaller
TRIES = 12


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Noise deviations per direction, and what was certified for them.

    `turn` rotates principal coordinates to those directions; None leaves them as they are.
    """

    turn: Floats | None
    coordinates: Floats
    deviations: Floats
    findings: Findings
    attempt: int
    distance: float
    step: float


@dataclass(frozen=True, eq=False)
class _Search:
    """The noise family `max(sqrt(t e), floor)` for one shape `e`, and the caps it has to keep.

    `turn` rotates principal coordinates to the directions in which the shape is diagonal.
    """

    coordinates: Floats
    turn: Floats | None
    shape: Floats
    floor: float
    worlds: Worlds
    caps: tuple[Cap, ...]
    wanted: Needs
    budget: float  # information that keeps all caps by itself
    seed: np.random.SeedSequence
    machine: Machine

    def deviations(self, log_t: float) -> Floats:
        return np.maximum(np.sqrt(np.exp(log_t) * self.shape), self.floor)

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
        return np.asarray(self.coordinates.T @ self.coordinates / len(self.coordinates))

    @cached_property
    def variances(self) -> Floats:
        return np.ascontiguousarray(np.diag(self.covariance))

    def source(self, log_t: float, draws: int, step: float | None) -> Source:
        points = self.points(log_t)
        return Cells(points[:, 0], step) if step else Sampled(points, draws, self.seed)

    def observe(
        self, log_t: float, draws: int, chosen: npt.NDArray[np.intp] | None = None, step: float | None = None
    ) -> Observed:
        source = self.source(log_t, draws, step)
        cuts = thresholds(self.worlds.rate)
        return Observed(
            self.worlds.rate,
            self.worlds.m,
            self.ceiling(log_t),
            observe_units(source, self.worlds, cuts, chosen, self.machine) if self.wanted.units else None,
            observe_worlds(source, self.wanted.priors, self.wanted.tasks) if self.wanted.worlds else None,
        )

    def excess(self, seen: Observed, bound: Bound) -> float:
        """How far the worst cap is missed, relative to the room between its prior and its limit; <= 0 is kept."""
        worst = -np.inf
        for cap in self.caps:
            floor = prior(cap, seen.rate, seen.m)
            worst = max(worst, (measure(cap, seen, bound) - cap.limit) / (cap.limit - floor))
        return worst

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


@proves("monotone", "confidence")
def calibrate(
    coordinates: Floats,
    variances: Floats,
    worlds: Worlds,
    caps: Sequence[Cap],
    attempts: Attempts,
    rng: np.random.Generator,
    shape: str = "best",
    floor: float = 0.0,
    draws: int | None = None,
    machine: Machine = Machine(),  # noqa: B008
    share_done: Callable[[float], None] = lambda _: None,
) -> Calibrated:
    """Noise for principal coordinates that keeps all caps, verified on fresh draws.

    `share_done` is told how much of the certifying pass is behind; before, while noise is searched, nothing.

    Guarantee: the returned findings were certified with probability `1 - gamma` over all attempts and recaps
    that share `attempts`.
    """
    wanted, concrete = needs(caps, worlds)
    # The real sampler's distance from the ideal one costs a little information: leave room for it.
    slack = entropy_slack(sampler_distance(coordinates.shape[1], 2**10), worlds.m)
    budget = max(information_budget(concrete, worlds.rate, worlds.m) - slack, 1e-12)

    seed = np.random.SeedSequence(int(rng.integers(2**63)))  # one for all shapes: they are compared

    def search_for(turn: Floats | None, variances_of_noise: Floats) -> _Search:
        turned = coordinates if turn is None else coordinates @ turn
        return _Search(turned, turn, variances_of_noise, floor, worlds, concrete, wanted, budget, seed, machine)

    candidates = _candidates(shape, coordinates, variances, worlds, concrete, wanted)
    search, log_t = _best([search_for(turn, noise) for turn, noise in candidates])
    bounds = count_bounds(worlds.m, worlds.n, len(RATIOS), wanted, stages=3)  # about: it only aims the search
    term = log_term(attempts.share(attempts.made + 1), bounds)
    log_t, used = _refine(search, log_t, term, draws)
    for _ in range(TRIES):
        points = search.points(log_t)
        step = grid_step(points, worlds.m, worlds.n)
        distance = sampler_distance(points.shape[1], float(np.abs(points).max()), step or GRID)
        gamma = attempts.next()
        found = certify(
            points,
            worlds,
            concrete,
            wanted,
            gamma,
            Effort.of(used, worlds.m, worlds.n, wanted.worlds),
            np.random.SeedSequence(int(rng.integers(2**63))),
            search.ceiling(log_t),
            distance,
            step,
            machine,
            share_done,
        )
        missed = max(
            (value - cap.limit) / (cap.limit - prior(cap, worlds.rate, worlds.m))
            for value, cap in zip(found.values, concrete, strict=True)
        )
        if missed <= 0:
            return Calibrated(
                search.turn, search.coordinates, search.deviations(log_t), found, attempts.made, distance, step or GRID
            )
        # Success above the prior falls like the inverse deviation: scale it down to the room there is.
        log_t += 2 * np.log1p(missed) + 0.01
    raise NumericalError(f"no noise could be certified in {TRIES} attempts; raise draws= or loosen the cap")


def _candidates(
    shape: str,
    coordinates: Floats,
    variances: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    wanted: Needs,
) -> list[tuple[Floats | None, Floats]]:
    """Shapes worth trying: a rotation of the principal directions (or None) and noise variances along them."""
    if all(isinstance(cap, MutualInformation) for cap in caps):
        beta = min(cap.limit for cap in caps)
        return [(None, shape_variances("logdet" if shape == "best" else shape, variances, beta))]
    if shape in ("linear", "isotropic"):
        return [(None, shape_variances(shape, variances, 1.0))]
    found: list[tuple[Floats | None, Floats]] = [(None, shape_variances("logdet", variances, b)) for b in BETAS]
    if len(variances) == 1:
        return found[:1]  # all shapes are one
    people = leverage_shape(coordinates, worlds) if shape == "best" and wanted.units else None
    if people is not None:
        for mixed in (0.0, 0.1, 0.3):
            size, turn = np.linalg.eigh((1 - mixed) * people + mixed * np.eye(len(people)) / len(people))
            found.append((turn, np.maximum(size, size[-1] * 1e-9)))
    return found


def _best(searches: list[_Search]) -> tuple[_Search, float]:
    """The shape of least total noise, by a rough search on a few draws and units. The shape is free to choose:
    whatever is chosen is certified afterwards."""
    found: list[tuple[float, int, float]] = []
    for index, search in enumerate(searches):
        log_t = _rough(search, np.log(found[-1][0] / search.shape.sum()) if found else None)
        found.append((float((search.deviations(log_t) ** 2).sum()), index, log_t))
    _, best, log_t = min(found)
    return searches[best], log_t


def _rough(search: _Search, start: float | None) -> float:
    """A scale near the one needed, from a thousand draws and a few thousand units."""
    n = search.worlds.n
    some = None if n <= 4096 else np.random.default_rng(search.seed.spawn(1)[0]).choice(n, 4096, replace=False)

    def gap(log_t: float) -> float:
        return search.gap(search.observe(log_t, 1024, some), lambda mean: mean.estimate)

    return search.root(gap, search.safe_scale - 3 if start is None else start, 0.05)


def _refine(search: _Search, log_t: float, term: float, draws: int | None) -> tuple[float, int]:
    """The scale to certify, and with how many draws: as many as keep the statistical margin small."""
    chosen = None
    if search.wanted.units and search.worlds.n > 1024:
        seen = search.observe(log_t, 1024)
        assert seen.units is not None
        chosen = np.argsort(-seen.units.balanced.estimate)[:512]
    step = grid_step(search.points(log_t), search.worlds.m, search.worlds.n)
    if step:
        exact: Bound = partial(upper, log_term=term)

        def gap(at: float, on: float) -> float:
            return search.gap(search.observe(at, 0, chosen, on), exact) + 1e-9

        log_t = search.root(partial(gap, on=COARSEST), log_t, 1e-4)
        log_t = search.root(partial(gap, on=step), log_t, 1e-6)
        return log_t, draws or FEWEST
    used = draws or _draws_needed(search, log_t, term, chosen)
    aim: Bound = partial(forecast, draws=used, log_term=term)
    own = int(min(used, max(4096, 2**25 // search.worlds.m)))
    return search.root(lambda at: search.gap(search.observe(at, own, chosen), aim), log_t, 0.005), used


def _draws_needed(search: _Search, log_t: float, term: float, chosen: npt.NDArray[np.intp] | None) -> int:
    """Draws at which bound and estimate differ by a twelfth of the room or 0.3 percentage points; by less if cheap."""
    seen = search.observe(log_t, 2048, chosen)
    at_best = search.excess(seen, lambda mean: mean.estimate)
    room = min(cap.limit - prior(cap, seen.rate, seen.m) for cap in search.caps)
    allowed = min(1 / 12, 0.003 / room)
    # Per draw: products with units and directions, and exponentials, which cost like 600 flops each.
    work = search.worlds.m * (2.0 * (search.worlds.n + len(search.shape)) + 600)

    def margin(used: int) -> float:
        return search.excess(seen, partial(forecast, draws=used, log_term=term, sigmas=0)) - at_best

    used = FEWEST
    while used < MOST and margin(used) > (allowed / 3 if used * work < CHEAP else allowed):
        used *= 2
    return used
