"""How little noise any covariance could do with: a bound from below, by projecting the answer to lines.

Along a unit vector `g` the release is a release of the one number `g'Y`, with noise of variance `g'Sg`. Whoever has the
first can make the second, so the caps hold for it; and for one number the figures are exact sums, which fall as noise
grows. Noise at which such a sum still exceeds a cap is too little: `g'Sg` is more than that. In an orthonormal basis
the variances along all directions add up to the trace of `S` (docs/proofs/noise-lower-bound.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.caps import Precision, TruePositiveRate
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate
from leakcap.leakage.measures import measure
from leakcap.leakage.membership import unit_columns
from leakcap.leakage.posterior import Cells
from leakcap.noise.leverage import moves_of
from leakcap.noise.search import Goal, Search

__all__ = ["NoiseBound", "exceeded", "least_variance", "noise_lower_bound"]

COARSE, FINE = 0.25, 0.0625  # steps of the grid, powers of two: a release on a coarser grid tells less, never more
MOST_CELLS = 2**23  # cells times worlds
CLOSE = 0.01  # how near, in logarithms of the variance, noise that is too little and noise that may do are brought
PEOPLE = 48  # whose exposure is looked at on a line; any of them shows that noise is too little
SLIP = 1e-8  # of probabilities of sets of cells: a hundred times what their rounding can be


@dataclass(frozen=True, eq=False)
class NoiseBound:
    """No covariance that keeps the caps has a smaller trace than `total`: `variances` along the columns of `basis`."""

    total: float
    variances: Floats
    basis: Floats


@proves("noise-lower-bound")
def noise_lower_bound(
    goal: Goal, coordinates: Floats, bases: Sequence[Floats], *, seconds: float, rng: np.random.Generator
) -> NoiseBound:
    """The best bound that these orthonormal bases give, and those near the best that fit in the time.

    Guarantee: `Y + N(0, S)` with one `S` for all worlds breaks a cap whenever the trace of `S`, in these coordinates,
    is below `total`. The first basis is looked at whatever the time.
    """
    lines = _Projected(goal, coordinates)
    began, best = time.perf_counter(), None
    for basis in _tried(bases, rng, coordinates.shape[1]):
        if best is not None and time.perf_counter() - began > seconds:
            break
        variances = lines.variances(basis)
        if best is None or variances.sum() > best.total:
            best = NoiseBound(float(variances.sum()) * (1 - 1e-9), variances, basis)
    assert best is not None
    return best


def _tried(bases: Sequence[Floats], rng: np.random.Generator, r: int) -> Iterator[Floats]:
    yield from bases
    while r > 1:
        yield np.linalg.qr(rng.standard_normal((r, r)))[0]


@dataclass(eq=False)
class _Projected:
    """The answer's coordinates, projected to one line at a time."""

    goal: Goal
    coordinates: Floats

    def __post_init__(self) -> None:
        self._moves = moves_of(self.coordinates, self.goal.worlds) if self.goal.wanted.units else None

    def variances(self, basis: Floats) -> Floats:
        return np.array([self._along(g) for g in basis.T])

    def _along(self, g: Floats) -> float:
        people = None
        if self._moves is not None and not self.goal.names_members:
            people = np.sort(np.argsort(-np.abs(self._moves @ g))[:PEOPLE])
        return least_variance(self.goal, self.coordinates @ g, people)


def least_variance(goal: Goal, line: Floats, people: Ints | None = None) -> float:
    """Noise variance that is too little for the one number `line` (one value a world): a cap is exceeded there.

    Only `people` are looked at, all units without them. The least noise deviation that was asked for counts too.
    """
    floor = goal.floor**2
    spread = float(line.var())
    if spread == 0:
        return floor
    low, high = None, None  # logarithms: too little, and (for these people and this grid) enough
    at = -3.0
    while low is None or high is None:
        if at < -40 or _cells(line, spread * np.exp(at), COARSE) > MOST_CELLS:
            return floor if low is None else max(floor, spread * float(np.exp(low)))
        if exceeded(goal, line, spread * np.exp(at), people, step=COARSE):
            low, at = at, at + 2
        else:
            high, at = at, at - 2
    while high - low > CLOSE:
        middle = (low + high) / 2
        if exceeded(goal, line, spread * np.exp(middle), people, step=COARSE):
            low = middle
        else:
            high = middle
    return max(floor, spread * float(np.exp(low)))


def _cells(line: Floats, variance: float, step: float) -> int:
    return Cells(line / np.sqrt(variance), step).cells * len(line)


def exceeded(goal: Goal, line: Floats, variance: float, people: Ints | None, *, step: float = FINE) -> bool:
    """Whether noise of this variance leaves a cap exceeded for the one number, rounding counted against it."""
    search = Search(goal, line[:, None], None, np.array([variance]), budget=0.0, seed=np.random.SeedSequence(0))
    seen = search.observe(0.0, 0, people, step)
    return any(
        (
            _attained(cap, search, people, step)
            if isinstance(cap, TruePositiveRate | Precision)
            else measure(cap, seen, _at_least)
        )
        > cap.limit
        for cap in goal.caps
    )


def _at_least(mean: MeanEstimate) -> Floats:
    return mean.estimate - mean.rounding


def _attained(cap: TruePositiveRate | Precision, search: Search, people: Ints | None, step: float) -> float:
    """What the likeliest cells attain, for the person of these for whom it is most.

    Sticks bound these figures from above; here they are wanted from below, so the test is made: the cells of the
    largest likelihood ratios, as many as the false alarms (or the frequency of claims) allow.
    """
    goal, rate = search.goal, search.goal.worlds.rate
    source = Cells(search.points(0.0)[:, 0], step)
    chosen = np.arange(goal.worlds.n) if people is None else people
    columns = unit_columns(goal.worlds, chosen, np.float64)
    half = goal.worlds.m // 2
    weights, shares = [], []
    for block in range(source.blocks):
        view = source.view(block)
        mass = np.asarray(view.posterior, dtype=np.float64)
        paired = goal.worlds.paired
        shares.append((mass[:, :half] - mass[:, half:]) / 2 @ columns + rate if paired else mass @ columns)
        weights.append(view.weight)
    weight, share = np.concatenate(weights), np.clip(np.concatenate(shares), 0.0, 1.0)
    order = np.argsort(-share, axis=0)
    among = np.take_along_axis(weight[:, None] * share, order, axis=0).cumsum(axis=0)  # taking part, and claimed
    if isinstance(cap, Precision):
        spent, room = weight[order].cumsum(axis=0), cap.claims
    else:
        spent = np.take_along_axis(weight[:, None] * (1 - share), order, axis=0).cumsum(axis=0) / (1 - rate)
        room, among = cap.fpr, among / rate
    best = max(
        float(np.interp(room - SLIP / min(rate, 1 - rate), np.append(0.0, spent[:, u]), np.append(0.0, among[:, u])))
        for u in range(spent.shape[1])
    )
    return (best - SLIP / rate) / (cap.claims if isinstance(cap, Precision) else 1.0)
