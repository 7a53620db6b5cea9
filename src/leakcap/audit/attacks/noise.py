"""The noise of many releases, taken back out of them: what was released less the answer of the world it came from.

If the noise is as claimed, the numbers here are independent standard normals, exactly, and independent of the worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from leakcap.audit.statistics.tails import SMALLEST
from leakcap.audit.trials import Known, Trials
from leakcap.ground.arrays import Floats, Ints

__all__ = ["Noises", "magnitudes", "recovered", "row_scores", "within_cells"]

ROUNDING = 2.0**-50  # of a number, by what was computed with it
FINE = 1e-4  # of a deviation: noise that rounding hides by more is not looked at
UPRIGHT = 1e-8  # least singular value of directions that can be told apart
MOST = 256  # directions that are looked at; of more, as many mixtures
MIXED = 16  # fixed random directions beside them


@dataclass(frozen=True, eq=False)
class Noises:
    """Noise in its own directions, in deviations, and the worlds beneath it.

    Attributes:
        numbers: `(k, r)`, standard normal if the noise is as claimed.
        secret: `(k,)`, the world of each.
        points: `(m, r)`, the answers of all worlds in the same directions and units.
        seen: `(k, r)`, what was released, likewise.
    """

    numbers: Floats
    secret: Ints
    points: Floats
    seen: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, rows: slice) -> Noises:
        """Some of the releases."""
        return Noises(self.numbers[rows], self.secret[rows], self.points, self.seen[rows])

    @cached_property
    def mixed(self) -> Floats:
        """Along fixed random directions at right angles: standard normal and independent as well."""
        r = self.numbers.shape[1]
        if r == 1:
            return self.numbers[:, :0]
        turn = np.linalg.qr(np.random.default_rng(r).normal(size=(r, min(r, MIXED))))[0]
        return np.asarray(self.numbers @ turn)


def recovered(known: Known, parts: list[Trials], rng: np.random.Generator) -> Noises | None:
    """The noise of all these releases; None where no noise is claimed, or none that rounding would not hide.

    A release lies on a grid, so its noise is known to a cell. The place within the cell is drawn by the claimed law:
    what comes out is normal exactly if the noise was drawn as claimed and then rounded, however wide the grid is.
    """
    farthest = _farthest(known)
    if known.factor is None or farthest is None or known.factor.shape[1] == 0:
        return None
    length = np.linalg.norm(known.factor, axis=0)
    if not (length > 0).any():
        return None
    columns = known.factor[:, length > 0] / length[length > 0]
    step, inverse = known.step, np.linalg.pinv(columns)
    if np.linalg.norm(inverse, 2) > 1 / UPRIGHT:
        directions, sizes, _ = np.linalg.svd(known.factor, full_matrices=False)
        sure = sizes > 1e-10 * sizes.max()
        step, whiten = 0.0, directions[:, sure] / sizes[sure]
    else:
        whiten = (inverse / length[length > 0, None]).T
    hidden = ROUNDING * (np.abs(whiten) * farthest[:, None]).sum(axis=0)
    whiten = whiten[:, hidden < FINE]
    if not whiten.shape[1]:
        return None
    if whiten.shape[1] > MOST:
        mix = np.linalg.qr(np.random.default_rng(0).normal(size=(whiten.shape[1], MOST)))[0]
        step, whiten = 0.0, whiten @ mix
    return _of_parts(known, whiten, step, parts=parts, rng=rng)


def _farthest(known: Known) -> Floats | None:
    """The largest answers there are, by size; None where it is not known what would be seen without noise."""
    if known.answers is not None:
        return np.asarray(np.abs(known.answers).max(axis=0))
    if known.steps is not None and known.start is not None:
        return np.asarray(np.abs(known.start) + np.abs(known.steps).sum(axis=0))
    return None


def _beneath(known: Known, parts: list[Trials], whiten: Floats) -> tuple[Floats, Floats, Ints]:
    """A centre, the answers beneath the noise about it, in deviations, and which of them is that of each release."""
    if known.answers is not None:
        centre = known.answers.mean(axis=0)
        secret = np.concatenate([part.secret for part in parts if part.secret is not None])
        return centre, (known.answers - centre) @ whiten, secret
    assert known.steps is not None
    assert known.start is not None
    steps = known.steps @ whiten  # coins fall anew in every release: each has an answer of its own
    points = np.concatenate([part.added(steps) for part in parts])
    return known.start, points, np.arange(len(points))


def _of_parts(known: Known, whiten: Floats, step: float, *, parts: list[Trials], rng: np.random.Generator) -> Noises:
    centre, points, secret = _beneath(known, parts, whiten)
    seen = np.concatenate([(part.seen - centre) @ whiten for part in parts])
    if not step:
        return Noises(seen - points[secret], secret, points, seen)
    # All releases lie on one grid: the first tells where, and is not judged.
    cell = seen[0] + step * np.rint((seen[1:] - seen[0]) / step) - points[secret[1:]]
    return Noises(within_cells(cell, step, rng), secret[1:], points, seen[1:])


def within_cells(middle: Floats, step: float, rng: np.random.Generator) -> Floats:
    """A standard normal number from each cell of this width."""
    flipped = middle > 0  # the lower tail is the one with digits
    low = -np.abs(middle) - step / 2
    chance = special.ndtr(low)
    drawn = special.ndtri(np.maximum(chance + rng.random(low.shape) * (special.ndtr(low + step) - chance), SMALLEST))
    return np.asarray(np.where(flipped, -drawn, drawn))


def magnitudes(numbers: Floats) -> Floats:
    """The absolute values, or the squares, of standard normal numbers, stretched to be standard normal themselves."""
    size = np.abs(numbers) / np.sqrt(2)
    small, large = special.erf(size), special.erfc(size)
    low, high = special.ndtri(np.maximum(small, SMALLEST)), -special.ndtri(np.maximum(large, SMALLEST))
    return np.asarray(np.where(small < 0.5, low, high))


def row_scores(numbers: Floats) -> Floats:
    """The length of each row of standard normal numbers, stretched to be standard normal."""
    half, energy = numbers.shape[1] / 2, (numbers**2).sum(axis=1) / 2
    small, large = special.gammainc(half, energy), special.gammaincc(half, energy)
    low, high = special.ndtri(np.maximum(small, SMALLEST)), -special.ndtri(np.maximum(large, SMALLEST))
    return np.asarray(np.where(small < 0.5, low, high))
