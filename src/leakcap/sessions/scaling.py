"""Rows of length 1 at most from features, and the first thing that a fit asks about them: how many, where, how wide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import ColumnNames, unit_sums
from leakcap.sessions.brought import Brought, Length
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.linear import cut_to_length
from leakcap.worlds import Units

__all__ = ["Middle", "Scale", "asked_middle"]

LARGEST = 1e150  # of a number of a row, before it is cut
MOST = math.sqrt(1.5)  # length of what one row brings: the row, half of its square, a half


@dataclass(frozen=True, eq=False)
class Scale:
    """Features as rows of length 1 at most. Public side, where bounds or a length were declared."""

    middle: Floats  # (d,)
    size: Floats  # (d,)
    ends: tuple[Floats, Floats] | None = None  # declared bounds, at which features are cut
    public: bool = True

    @classmethod
    def of(cls, fitting: Fitting) -> Scale:
        """By declared bounds or a declared length; otherwise by the pool's own means and deviations."""
        cells = np.asarray(fitting.features, dtype=np.float64)
        d = cells.shape[1]
        if fitting.norm is not None:
            return cls(np.zeros(d), np.full(d, fitting.norm))
        if fitting.declared is not None:
            _, (low, high), _ = fitting.declared.cut(cells, ColumnNames(fitting.names))
            return cls((low + high) / 2, (high - low) / 2 * math.sqrt(d), (low, high))
        if not len(cells):
            return cls(np.zeros(d), np.ones(d), public=False)
        spread = cells.std(axis=0)
        return cls(cells.mean(axis=0), np.where(spread > 0, spread, 1.0) * (2 * math.sqrt(d)), public=False)

    def rows(self, features: Floats) -> Floats:
        """Rows, each made of its own features alone; longer ones are cut to length 1."""
        cells = np.asarray(features, dtype=np.float64)
        if self.ends is not None:
            cells = np.clip(cells, *self.ends)
        with np.errstate(over="ignore"):  # what is too large to be squared is cut all the same
            rows = np.clip((cells - self.middle) / self.size, -LARGEST, LARGEST)
        return cut_to_length(rows, 1.0)


@dataclass(frozen=True, eq=False)
class Middle:
    """What the first answer tells, of everybody. Public side."""

    count: float
    centre: Floats
    square: float  # mean squared distance from the centre
    deviation: float  # of the noise in the sums


def asked_middle(fitting: Fitting, rows: Floats, units: Units, *, share: float, public: bool) -> Middle:
    """The number of rows of length 1 at most, their mean, and their mean squared distance from it."""
    halves = 0.5 * np.stack([np.einsum("ij,ij->i", rows, rows), np.ones(len(rows))], axis=1)
    values = np.hstack([rows, halves])
    inside = cut_to_length(values, MOST) * (1 - 1e-12)
    each = unit_sums(inside, units.of_row, units.count)
    limits = Length(MOST * fitting.most_rows, values.shape[1])
    noised = fitting.ask(Brought(each, limits, np.asarray, scale=None, declared=public), share, step="mean")
    sums, deviation = noised.value, float(noised.deviations[0])
    count = max(2 * float(sums[-1]), 4 * deviation)  # never below two of its own deviations
    mean = sums[:-2] / count
    level, d = float(mean.mean()), len(mean)
    apart = mean - level
    # James and Stein: towards its own average over the columns.
    keep = 1 - (d - 3) * (deviation / count) ** 2 / max(float(apart @ apart), 1e-300) if d > 3 else 1.0
    centre = level + max(keep, 0.0) * apart
    square = min(max(2 * float(sums[-2]) / count - float(centre @ centre), 4 * deviation / count), 1.0)
    return Middle(count, centre, square, deviation)
