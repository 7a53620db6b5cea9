"""What a release tells about the secret world: posteriors, sampled over releases or integrated.

Outputs arrive whitened: the noise is standard normal in every direction. Then the posterior over worlds is a
softmax of `-|y - z_w|^2 / 2`; nothing about the data has to be estimated (docs/proofs/exact-membership.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves

__all__ = ["BlockedDraws", "Cells", "Sampled", "Source", "View", "dealt", "softmax"]

IN_CACHE = 2**15  # log-likelihoods that are made at a time
WIDE = 256  # directions from which products take most of the time: they are faster the more rows they have
RESOLUTION = 2**62  # of the chances by which worlds are drawn under a prior
REACH = 8.5  # standard deviations beyond which a normal has mass below 1e-16


@dataclass(frozen=True, eq=False)
class View:
    """Some releases: how likely each is (`weight`), and the posterior over worlds given each.

    `rounding` bounds the arithmetic error of a posterior in total variation, times two.
    """

    weight: Floats
    posterior: npt.NDArray[np.floating]
    world: npt.NDArray[np.intp] | None
    rounding: float


class Source(Protocol):
    """A stream of views in blocks, the same each time it is read."""

    @property
    def m(self) -> int: ...

    @property
    def prior(self) -> Floats | None:
        """The chance of each world; None where all are alike."""
        ...

    @property
    def draws(self) -> int:
        """Independent draws; 0 when all releases are covered."""
        ...

    @property
    def rows(self) -> int: ...

    @property
    def blocks(self) -> int: ...

    def view(self, block: int) -> View: ...


class BlockedDraws:
    """So many releases of listed points, a block at a time."""

    points: Floats
    draws: int

    @property
    def m(self) -> int:
        return len(self.points)

    @property
    def rows(self) -> int:
        return min(max(2**21 // self.m, 16), 1024)

    @property
    def blocks(self) -> int:
        return -(-self.draws // self.rows)


@dataclass(frozen=True, eq=False)
class Sampled(BlockedDraws):
    """Independent releases of uniformly chosen worlds. Worlds are dealt in turn (stratified), noise is fresh.

    `seed` is spawned per block, so blocks may be computed in any order by any thread. Under a `prior` that is not
    uniform every draw chooses its world by the prior: dealing them in turn would weigh them alike.
    """

    points: Floats
    draws: int
    seed: np.random.SeedSequence
    stratified: bool = True
    prior: Floats | None = None

    def seen(self, block: int) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Some releases, and the world that each was made from."""
        child = np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, block))
        rng = np.random.default_rng(child)
        world = dealt(self, block, rng, stratified=self.stratified)
        return self.points[world] + rng.standard_normal((len(world), self.points.shape[1])), world

    @proves("exact-membership")
    def view(self, block: int) -> View:
        seen, world = self.seen(block)
        posterior, rounding = softmax(seen, self.points, self.prior)
        if self.prior is not None:
            rounding += self.m**2 * 2.0**-52  # of the chances of the draws: each sum of chances may be off by m 2^-53
        return View(np.ones(len(seen)), posterior, world, rounding)


@dataclass(frozen=True, eq=False)
class Cells:
    """All releases of a one-dimensional output, which leaves on a grid of step `step` noise deviations.

    Each cell of the grid is one possible release, and its probability in each world is a difference of
    normal distribution functions: an exact sum, no sampling. The mass beyond the outermost cells (below
    1e-15) is put into them.
    """

    points: Floats  # (m,)
    step: float
    prior: Floats | None = None

    draws = 0

    @property
    def m(self) -> int:
        return len(self.points)

    @property
    def rows(self) -> int:
        return min(max(2**21 // self.m, 16), 1024)

    @property
    def first(self) -> int:
        return int(np.floor((self.points.min() - REACH) / self.step))

    @property
    def cells(self) -> int:
        return int(np.ceil((self.points.max() + REACH) / self.step)) - self.first + 1

    @property
    def blocks(self) -> int:
        return -(-self.cells // self.rows)

    @proves("rank-one")
    def view(self, block: int) -> View:
        start = block * self.rows
        stop = min(start + self.rows, self.cells)
        edges = (self.first + np.arange(start, stop + 1) - 0.5) * self.step
        if start == 0:
            edges[0] = -np.inf
        if stop == self.cells:
            edges[-1] = np.inf
        reached = edges[:, None] - self.points
        # Differences of upper tails on the right, of lower tails on the left: no cancellation against 1.
        tail = ndtr(-np.abs(reached))
        right = reached > 0
        mass = np.abs(tail[:-1] - tail[1:])
        across = right[1:] & ~right[:-1]
        mass[across] = 1 - tail[:-1][across] - tail[1:][across]
        if self.prior is None:
            mass /= self.m
        else:
            mass *= self.prior
        weight = mass.sum(axis=1)
        posterior = mass / np.maximum(weight, 1e-300)[:, None]
        return View(weight, posterior, None, 1e-10)


@proves("given-inputs")
def dealt(source: Source, block: int, rng: np.random.Generator, *, stratified: bool = True) -> npt.NDArray[np.intp]:
    """The worlds that a block of releases is made from: every world in turn, or each drawn by the prior."""
    start = block * source.rows
    stop = min(start + source.rows, source.draws)
    if source.prior is not None:
        drawn = rng.integers(RESOLUTION, size=stop - start)
        return np.searchsorted(_ends(source.prior), drawn, side="right")
    world = np.arange(start, stop) % source.m
    # Rounds that are not complete would favour the first worlds: those draws choose theirs freely.
    free = np.arange(start, stop) >= (source.draws // source.m * source.m if stratified else 0)
    world[free] = rng.integers(source.m, size=int(free.sum()))
    return world


def _ends(prior: Floats) -> Ints:
    """Where the share of each world ends, in whole numbers out of `RESOLUTION`."""
    ends = np.rint(np.cumsum(prior) * float(RESOLUTION)).astype(np.int64)
    ends[-1] = RESOLUTION
    return np.minimum(ends, RESOLUTION)


@proves("given-inputs")
def softmax(seen: Floats, points: Floats, prior: Floats | None = None) -> tuple[npt.NDArray[np.float32], float]:
    """Posteriors over worlds of releases `seen`, in f32 with f64 log-likelihoods, and their rounding error."""
    half = 0.5 * np.einsum("wr,wr->w", points, points)
    # Rounding of a log-likelihood: inner products of length r, a common factor of |y||z|.
    size = float(np.sqrt(np.einsum("kr,kr->k", seen, seen).max() * 2 * half.max()) + half.max())
    slip = (points.shape[1] + 3) * 2.0**-52 * size
    if prior is not None:
        chances = np.log(prior)
        slip += 4 * 2.0**-52 * float(-chances.min())
        half = half - chances  # after its size was taken: it is what every logit loses
    if not slip < 1e-3:  # NaN fails too
        raise NumericalError(
            "the outputs are too far apart for their noise (over a million noise deviations): "
            "the posterior cannot be computed safely. Choose a tighter cap or bound the outputs with clip="
        )
    from leakcap.leakage._loops import exponentials, normalise

    posterior = np.empty((len(seen), len(points)), dtype=np.float32)
    together = min(max(256 if points.shape[1] >= WIDE else 32, IN_CACHE // len(points)), len(seen))
    room, across = np.empty((together, len(points))), np.ascontiguousarray(points.T)
    for start in range(0, len(seen), together):
        some, found = seen[start : start + together], posterior[start : start + together]
        logits = np.matmul(some, across, out=room[: len(some)])
        logits -= half
        exponentials(logits, logits.max(axis=1), found)
        normalise(found)
    # A relative (|x| + 8) 2^-24 per entry and as much for their sum; averaged over the posterior |x| is at most log m.
    return posterior, 2 * slip + (np.log(len(points)) + 48) * 2.0**-23
