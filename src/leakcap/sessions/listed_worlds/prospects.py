"""What an answer may tell about every unit, before it is drawn: joint masses of cells and participation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.sessions.listed_worlds.cells import Channel
from leakcap.sessions.listed_worlds.leaning import Lean
from leakcap.sessions.listed_worlds.posterior import Posterior
from leakcap.worlds import Worlds

__all__ = ["Prospect", "prospects", "shares"]

ENTRIES = 2**20  # of the columns in a product: worlds x units


@dataclass(frozen=True, eq=False)
class Prospect:
    """The law of the next answer and of the participation of some units, under the current posterior.

    Attributes:
        inside: `(cells, units)`, probability of the cell together with the unit taking part.
        outside: the same with the unit left out.
        members: `(units,)`, probability that the unit takes part, before the answer.
        others: the same that it does not.
        worlds: `(cells, worlds)`, probability of the cell together with the world.
        rounding: relative error of each of these numbers, and of sums over them, at most.
        lean: `(cells, units)`, factors of what clocks show after each cell; None where all are 1.
    """

    inside: Floats
    outside: Floats
    members: Floats
    others: Floats
    worlds: Floats
    rounding: float
    lean: Floats | None = None

    @cached_property
    def cells(self) -> Floats:
        """Probability of each cell."""
        return np.asarray(self.worlds.sum(axis=1))


def prospects(
    worlds: Worlds, posterior: Posterior, cells: Channel, lean: Lean | None = None
) -> Iterator[tuple[slice, Prospect]]:
    """All units, in order, some at a time."""
    weights = posterior.weights()
    joint = np.ascontiguousarray((cells.masses() * weights[:, None]).T)
    rows = np.vstack([joint, weights])
    rounding = posterior.rounding(cells)
    for units in _some_units(worlds):
        columns = worlds.columns(units).astype(np.float64)
        inside, outside = rows @ columns, rows @ (1 - columns)  # both summed: a difference would lose small ones
        yield (
            units,
            Prospect(
                inside=inside[:-1],
                outside=outside[:-1],
                members=inside[-1],
                others=outside[-1],
                worlds=joint,
                rounding=rounding,
                lean=None if lean is None else lean.of(columns, inside[-1]),
            ),
        )


def shares(worlds: Worlds, posterior: Posterior) -> Floats:
    """Probability that each unit takes part, given the history."""
    weights = posterior.weights()
    found = np.empty(worlds.n)
    for units in _some_units(worlds):
        columns = worlds.columns(units).astype(np.float64)
        inside, outside = weights @ columns, weights @ (1 - columns)
        found[units] = inside / (inside + outside)
    return found


def _some_units(worlds: Worlds) -> Iterator[slice]:
    """All units in order, so many at a time that their columns stay small."""
    together = max(64, ENTRIES // worlds.m)
    for start in range(0, worlds.n, together):
        yield slice(start, min(start + together, worlds.n))
