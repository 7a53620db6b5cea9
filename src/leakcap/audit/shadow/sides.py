"""The two sides of every unit: its scores in shadow releases that it took part in, and in those it did not.

A shadow table has a row for each shadow release (or model) and a column for each unit. Scores that are not finite are
left out, as if the unit had not been scored there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.cores import on_all_cores, threads

__all__ = ["Scores", "Sides", "in_blocks", "shadows_of", "sides_of", "target_of"]

Scores = npt.NDArray[Any]
OUT, IN = 0, 1
MAX_COPIED_SCORES = 2**22  # scores that are copied at a time, where they have to be
MIN_THREADED_SCORES = 2**20  # scores from which threads are worth their start


@dataclass(frozen=True, eq=False)
class Sides:
    """Counts, means and variances `(2, n)`: row 0 where the unit was outside, row 1 where it was inside."""

    counts: Floats
    means: Floats
    variances: Floats  # about the side's own mean, divided by the count

    @property
    def spread(self) -> Floats:
        """`(n,)`: variance of all scores of a unit, both sides together."""
        total = np.maximum(self.counts.sum(axis=0), 1)
        middle = (self.counts * self.means).sum(axis=0) / total
        return np.asarray((self.counts * (self.variances + (self.means - middle) ** 2)).sum(axis=0) / total)

    @property
    def pooled(self) -> Floats:
        """`(2, 1)`: variance within units, one for each side."""
        usable = np.isfinite(self.variances)
        squares = np.where(usable, self.counts * self.variances, 0.0).sum(axis=1, keepdims=True)
        return np.asarray(squares / np.maximum(np.where(usable, self.counts, 0.0).sum(axis=1, keepdims=True), 1))


def shadows_of(shadow: npt.ArrayLike, inside: npt.ArrayLike) -> tuple[Scores, Bools]:
    """Both tables, checked. Single and double precision are taken as they are, other numbers become double."""
    scores, members = _numbers(shadow, "shadow"), np.asarray(inside)
    if members.dtype != np.bool_ or members.shape != scores.shape:
        raise InputError("inside must be a table of True and False of the shape of shadow: releases x units")
    if len(scores) == 0:
        raise InputError("shadow has no rows: give the scores of at least one shadow release")
    return scores, members


def target_of(target: npt.ArrayLike, columns: int, name: str = "target") -> Scores:
    """Scores in attacked releases, checked."""
    scores = _numbers(target, name)
    if scores.shape[1] != columns:
        raise InputError(f"{name} has {scores.shape[1]} columns where the attack was fitted on {columns}")
    return scores


def _numbers(given: npt.ArrayLike, name: str) -> Scores:
    table = np.asarray(given)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a table of numbers: releases x units")
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)


def in_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Columns of a table, so many at a time that a copy of them stays small."""
    step = max(1, MAX_COPIED_SCORES // max(rows, 1))
    for start in range(0, columns, step):
        yield slice(start, min(start + step, columns))


def sides_of(shadow: Scores, inside: Bools) -> Sides:
    """One pass over all scores. Rounding is bounded whatever the numbers: each side is measured from one of its own.

    The mean of `s` scores lies within `sqrt(s)` standard deviations of any of them, so that the variance is right to
    about `s` units in the last place. Scores that are all equal have variance 0 exactly.
    """
    rows, units = shadow.shape
    if shadow.flags.c_contiguous and inside.flags.c_contiguous:
        parts = threads() if shadow.size > MIN_THREADED_SCORES else 1
        cuts = np.linspace(0, units, parts + 1).astype(int)
        ends = [(int(a), int(b)) for a, b in pairwise(cuts)]
        if parts == 1:
            found = [_part(shadow, inside, *ends[0])]
        else:
            found = on_all_cores(lambda end: _part(shadow, inside, *end), ends)
    else:
        copies = (
            (np.ascontiguousarray(table[:, some]) for table in (shadow, inside)) for some in in_blocks(rows, units)
        )
        found = [_part(scores, members, 0, members.shape[1]) for scores, members in copies]
    counts, means, variances = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
    return Sides(counts, means, variances)


def _part(shadow: Scores, inside: Bools, start: int, stop: int) -> tuple[Floats, Floats, Floats]:
    from leakcap.audit.shadow._loops import add_sides, add_sides_with_care, first_scores

    units = stop - start
    pivots, sums, counts = np.zeros((2, units)), np.zeros((4, units)), np.zeros((2, units))
    first_scores(shadow, inside, start, units, pivots, np.zeros((2, units), dtype=np.bool_))
    with np.errstate(all="ignore"):
        rows, whole = add_sides(shadow, inside, start, units, pivots, sums)
        counts[IN] = _counted(inside[:rows, start:stop])
        counts[OUT] = rows - counts[IN]
        spoilt = np.logical_not(np.isfinite(sums).all(axis=0))
        spoilt[whole:] = True  # what was not taken: less than a tile
        sums[:, spoilt], counts[:, spoilt] = 0.0, 0.0
        for some, begin in ((np.flatnonzero(spoilt), 0), (np.flatnonzero(~spoilt), rows)):
            if len(some) and begin < len(shadow):
                own_sums, own_counts = np.zeros((4, len(some))), np.zeros((2, len(some)))
                add_sides_with_care(shadow, inside, some + start, begin, pivots[:, some], own_sums, own_counts)
                sums[:, some] += own_sums
                counts[:, some] += own_counts
        share = sums / np.maximum(counts[[0, 1, 0, 1]], 1)
        return counts, pivots + share[:2], np.maximum(share[2:] - share[:2] ** 2, 0.0)


def _counted(inside: Bools) -> Floats:
    """How many rows of each column are True: bytes are added in bytes, as long as none can overflow."""
    found = np.zeros(inside.shape[1])
    for start in range(0, len(inside), 255):
        found += np.add.reduce(inside[start : start + 255].view(np.uint8), axis=0, dtype=np.uint8)
    return found
