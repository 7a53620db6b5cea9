"""Principal components: a world's mean and the space of its leading directions, turned towards the pool's.

The paper releases directions. Turning them among themselves restores the same, so our answer holds only how far they
lean out of the pool's space, each lean counted by the variance that it loses, and the mean: the part of it outside of
that space is what restored rows are off by. `natural` gives mean and directions back.

Differs from the paper: directions are aligned by orthogonal Procrustes (its Claim 1 is not that), and the mean is in
the noised vector, in the paper's series too, but for those that show what its public code does: it leaves the mean as
it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import kernels
from leakcap.kernels.moments import aligned, moments
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import SCALED, Split
from reproductions.pac_private_algorithms.series import Study

__all__ = ["Frame", "Judge", "components", "orthonormal"]

Floats = npt.NDArray[np.float64]
ROWS = 5000  # that are multiplied at a time
SMALL = 0.1  # how much an offset of the mean inside the space counts: it is restored, whatever it is


@dataclass(frozen=True, eq=False)
class Frame:
    """The pool's mean and all its directions, the leading `k` first."""

    k: int
    centre: Floats
    directions: Floats  # (d, d), rows
    variances: Floats  # (d,), descending

    @staticmethod
    def of(x: Floats, k: int) -> Frame:
        centre = x.mean(axis=0, dtype=np.float64)
        scatter = np.zeros((len(centre), len(centre)))
        for rows in range(0, len(x), ROWS):
            apart = x[rows : rows + ROWS] - centre.astype(
                x.dtype
            )  # in f32 for pictures: any frame near the pool's serves
            scatter += apart.T @ apart
        variances, directions = np.linalg.eigh(scatter / len(x))
        return Frame(k, centre, np.ascontiguousarray(directions[:, ::-1].T), np.maximum(variances[::-1], 0.0))

    @property
    def inside(self) -> Floats:
        return self.directions[: self.k]

    @property
    def outside(self) -> Floats:
        return self.directions[self.k :]

    @functools.cached_property
    def units(self) -> tuple[Floats, Floats]:
        """Of leans, (k, d - k): root of the variance lost; of the mean, (d,)."""
        ahead = np.subtract.outer(self.variances[: self.k], self.variances[self.k :])
        leans = np.sqrt(np.maximum(ahead, 1e-3 * self.variances[0]))
        return leans, np.where(np.arange(len(self.centre)) < self.k, SMALL, 1.0)

    def encode(self, mean: Floats, directions: Floats) -> Floats:
        """Planned answers of some worlds, as rows."""
        leans, off = self.units
        leaning = (aligned(directions, self.inside) @ self.outside.T) * leans
        moved = (mean - self.centre) @ self.directions.T * off
        return np.concatenate([moved, leaning.reshape(len(mean), -1)], axis=1)

    def natural(self, planned: Floats) -> Floats:
        """Mean and orthonormal directions of one answer, flat; whatever noise did, they are orthonormal."""
        leans, off = self.units
        d = len(self.centre)
        mean = self.centre + (planned[:d] / off) @ self.directions
        leaning = planned[d:].reshape(leans.shape) / leans
        values, turns = np.linalg.eigh(np.eye(self.k) - leaning @ leaning.T)
        # Aligned directions have a symmetric part inside the pool's space; without noise, this is it.
        upright = turns * np.sqrt(np.maximum(values, 0.0)) @ turns.T
        left, _, right = np.linalg.svd(np.hstack([upright, leaning]), full_matrices=False)
        return np.concatenate([mean, (left @ right @ self.directions).ravel()])


@dataclass(frozen=True, eq=False)
class Judge:
    """The restoration error (equation 5 of the paper), from the moments of the test part alone."""

    rows: int
    total: Floats
    products: Floats
    k: int

    @staticmethod
    def of(x: Floats, k: int) -> Judge:
        return Judge(len(x), x.sum(axis=0, dtype=np.float64), np.asarray(x.T @ x, dtype=np.float64), k)

    def error(self, numbers: Floats) -> float:
        """|(x - mean) S'S + mean - x| / |x| over all rows; the directions S need not be orthonormal."""
        d = len(self.total)
        mean, s = numbers[:d], numbers[d:].reshape(self.k, d)

        def scatter(a: Floats, b: Floats) -> Floats:
            """`a (x - mean)' (x - mean) b'` summed over rows."""
            cross = np.outer(a @ self.total, b @ mean)
            return np.asarray(
                a @ (self.products @ b.T)
                - cross
                - np.outer(a @ mean, b @ self.total)
                + self.rows * np.outer(a @ mean, b @ mean)
            )

        inner = scatter(s, s)
        square = float(np.trace(self.products))
        apart = square - 2 * float(mean @ self.total) + self.rows * float(mean @ mean)
        lost = apart - 2 * float(np.trace(inner)) + float(np.sum(inner * (s @ s.T)))
        return float(np.sqrt(max(lost, 0.0) / square))


def orthonormal(numbers: Floats, k: int) -> Floats:
    """The same mean with the nearest orthonormal directions: post-processing, free."""
    d = len(numbers) // (1 + k)
    left, _, right = np.linalg.svd(numbers[d:].reshape(k, d), full_matrices=False)
    return np.concatenate([numbers[:d], (left @ right).ravel()])


def components(
    split: Split,
    k: int,
    frame: Frame | None = None,
    answer: Callable[..., Floats] | None = None,
    pool_public: tuple[str, ...] = (SCALED,),
) -> Study:
    """`k` directions and the mean."""
    frame = frame or Frame.of(split.x, k)
    judge = Judge.of(split.test_x, k)
    return Study(
        split.name,
        answer or functools.partial(_components, frame=frame),
        (split.x,),
        np.concatenate([frame.centre, frame.inside.ravel()]),
        frame.natural,
        judge.error,
        (*pool_public, "Reference of the directions and unit of the noise: mean and covariance of the whole pool."),
        functools.partial(orthonormal, k=k),
        np.arange((1 + k) * len(frame.centre)) >= len(frame.centre),
    )


def _all(data: tuple[Any, ...], units: Units, worlds: Worlds, *, frame: Frame) -> Floats:
    found = moments(data[0], worlds, units)
    leading = np.linalg.eigh(found.scatter)[1][:, :, : -frame.k - 1 : -1].transpose(0, 2, 1)
    return frame.encode(found.mean, leading)


@kernels.offers(_all, tolerance=1e-6)
def _components(x: Floats, *, frame: Frame) -> Floats:
    mean = x.mean(axis=0)
    leading = np.linalg.svd(x - mean, full_matrices=False)[2][: frame.k]
    return np.asarray(frame.encode(mean[None], leading[None])[0])
