"""How every capped figure changes with the noise: gradients through the posterior, on sampled releases.

A figure is a mean over releases of a function of the posterior. Its derivative by the posterior's masses goes through
the softmax to the log-likelihoods, and from there to the whitened outputs. Nothing here is a bound: it aims a search,
whose end is certified on fresh draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from leakcap.caps import (
    AnyInference,
    Cap,
    Identification,
    Membership,
    MutualInformation,
    NameAMember,
    Precision,
    Task,
    TruePositiveRate,
)
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.leakage.measures import prior, thresholds
from leakcap.leakage.membership import unit_columns
from leakcap.leakage.posterior import softmax
from leakcap.leakage.tasks import as_fraction
from leakcap.worlds import Worlds

__all__ = ["Figures", "Glance", "figures_of", "glance"]

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Figures:
    """Whose figures are looked at: `people` carry caps on persons, other caps have one figure each."""

    worlds: Worlds
    caps: tuple[Cap, ...]
    people: Ints
    columns: Singles  # the right factor of membership, for these people

    @property
    def rate(self) -> float:
        return self.worlds.rate

    def shares(self, posterior: Singles) -> Singles:
        """How much likelier than before each of them is to have taken part, given each release: `q_u - rate`."""
        if not self.worlds.paired:
            return np.asarray(posterior @ self.columns - np.float32(self.rate))
        half = self.worlds.m // 2
        return np.asarray((posterior[:, :half] - posterior[:, half:]) / 2 @ self.columns)

    def to_worlds(self, by_people: Singles) -> Singles:
        """Derivatives by what each person's share is, as derivatives by the masses of worlds."""
        pulled = by_people @ self.columns.T
        return np.hstack([pulled / 2, -pulled / 2]) if self.worlds.paired else np.asarray(pulled)

    def room(self, cap: Cap) -> float:
        return cap.limit - prior(cap, self.rate, self.worlds.m)


def figures_of(worlds: Worlds, caps: Sequence[Cap], people: Ints) -> Figures:
    """The figures of these caps, for these people."""
    return Figures(worlds, tuple(caps), people, unit_columns(worlds, people).astype(np.float32, copy=False))


@dataclass(frozen=True, eq=False)
class Glance:
    """Some releases: what share of its room each figure uses, and which way more of it lies.

    `used` has one row of figures a cap, one after the other.
    """

    figures: Figures
    points: Floats
    seen: Floats
    world: Ints
    posterior: Singles
    parts: tuple[_Part, ...]

    @property
    def used(self) -> Floats:
        return np.concatenate([part.used for part in self.parts])

    def toward(self, weights: Floats) -> Floats:
        """`(r, r)`, symmetric: how the weighted sum of `used` grows when whitened outputs are stretched.

        Outputs `z` become `z (I + e M)`; the sum grows by `e` times the inner product of `M` with what is returned.
        """
        ends = np.cumsum([len(part.used) for part in self.parts])[:-1]
        pull = sum(
            part.pull(mine.astype(np.float32)) for part, mine in zip(self.parts, np.split(weights, ends), strict=True)
        )
        assert isinstance(pull, np.ndarray)
        mass = self.posterior
        change = mass * (pull - np.einsum("kw,kw->k", mass, pull)[:, None])  # by log-likelihoods: through the softmax
        points, k = self.points, len(mass)
        moved = (change @ points.astype(np.float32)).astype(np.float64)
        total = change.sum(axis=0, dtype=np.float64)
        # A log-likelihood is -|y - z|^2 / 2 with y = z_s + noise: both ends move. Changes of one release add up to 0.
        by = points[self.world].T @ moved + moved.T @ self.seen - (points * total[:, None]).T @ points
        return np.asarray((by + by.T) / (2 * k))


def glance(figures: Figures, points: Floats, draws: int, rng: np.random.Generator) -> Glance:
    """Releases of whitened outputs, looked at once."""
    world = rng.integers(len(points), size=draws)
    seen = points[world] + rng.standard_normal((draws, points.shape[1]))
    posterior, _ = softmax(seen, points)
    shares = figures.shares(posterior) if len(figures.people) else np.empty((draws, 0), np.float32)
    parts = tuple(_part(cap, figures, posterior, shares) for cap in figures.caps)
    return Glance(figures, points=points, seen=seen, world=world, posterior=posterior, parts=parts)


@dataclass(frozen=True, eq=False)
class _Part:
    """Figures of one cap: what each uses of its room, and derivatives by posterior masses (`pull`)."""

    used: Floats
    slope: Singles  # per release and figure (of people), or per release and world (`whole`)
    figures: Figures | None

    def pull(self, weights: Singles) -> Singles:
        return self.slope * weights[0] if self.figures is None else self.figures.to_worlds(self.slope * weights)


@singledispatch
def _part(cap: Cap, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    raise InputError(f"optimize_noise has no gradient for a {type(cap).__name__}: leave this cap out")


@_part.register
def _(cap: Membership, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    factor = np.float32(0.25 / (figures.rate * (1 - figures.rate)) / figures.room(cap))
    return _Part(factor * np.abs(shares).mean(axis=0, dtype=np.float64), factor * np.sign(shares), figures)


@_part.register
def _(cap: TruePositiveRate | Precision, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    """The stick that says least for the worst person: that one decides."""
    rate, best = figures.rate, None
    for cut in (rate, *thresholds(rate)):
        above = shares > np.float32(cut - rate)
        sticks = np.where(above, shares - np.float32(cut - rate), 0).mean(axis=0, dtype=np.float64)
        if isinstance(cap, Precision):
            at, factor = cut, 1 / cap.claims
        else:
            at, factor = cut * (1 - rate) / (rate * (1 - cut)) * cap.fpr, 1 / (rate * (1 - cut))
        found = at + factor * sticks
        if best is None or found.max() < best[0].max():
            best = found, (factor / figures.room(cap) * above).astype(np.float32)
    assert best is not None
    used = (best[0] - prior(cap, rate, figures.worlds.m)) / figures.room(cap)
    return _Part(np.maximum(used, 0.0), best[1], figures)


@_part.register
def _(cap: NameAMember, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    named = shares.argmax(axis=1)
    slope = np.zeros_like(shares)
    slope[np.arange(len(shares)), named] = 1 / figures.room(cap)
    used = np.array([shares.max(axis=1).mean(dtype=np.float64) / figures.room(cap)])
    return _Part(used, figures.to_worlds(slope), None)


@_part.register
def _(cap: AnyInference | Identification, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    m, room = figures.worlds.m, figures.room(cap)
    prior_of = as_fraction(cap.prior) * m if isinstance(cap, AnyInference) else as_fraction(1.0)
    whole = int(prior_of)
    rank = np.argsort(np.argsort(-posterior, axis=1), axis=1)
    slope = ((rank < whole) + float(prior_of - whole) * (rank == whole)).astype(np.float32)
    success = float(np.einsum("kw,kw->k", slope, posterior).mean(dtype=np.float64))
    return _Part(np.array([(success - float(prior_of) / m) / room]), (slope / room).astype(np.float32), None)


@_part.register
def _(cap: MutualInformation, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    logs = np.log(np.maximum(posterior, np.finfo(np.float32).tiny))
    told = np.log(figures.worlds.m) + float(np.einsum("kw,kw->k", posterior, logs).mean(dtype=np.float64))
    return _Part(np.array([max(told, 0.0) / cap.limit]), (logs / cap.limit).astype(np.float32), None)


@_part.register
def _(cap: Task, figures: Figures, posterior: Singles, shares: Singles) -> _Part:
    wins = np.asarray(cap.wins, dtype=np.float32)
    expected = posterior @ wins
    room = figures.room(cap)
    success = float(expected.max(axis=1).mean(dtype=np.float64))
    used = (success - prior(cap, figures.rate, figures.worlds.m)) / room
    slope = (wins.T[expected.argmax(axis=1)] / room).astype(np.float32)
    return _Part(np.array([used]), slope, None)
