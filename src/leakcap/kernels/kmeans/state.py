"""What K-Means in lockstep keeps of a group of worlds, and the states of a world; Python and compiled loops read it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats

__all__ = ["AWAY", "DONE", "PLAIN", "RUNNING", "AnchoredGroup", "CentredPool", "Numbers", "Reach", "Rivals"]

Numbers: TypeAlias = npt.NDArray[np.int64]
# A world's state. PLAIN: rounding or an empty cluster decides, only a plain fit can tell; AWAY: in another group now.
RUNNING, DONE, PLAIN, AWAY = 0, 1, 2, 3


class CentredPool(NamedTuple):
    """All rows around their mean: one below the other, in tiles, their lengths, and groups of rows of equal weight."""

    table: Floats
    tiles: Floats
    lengths: Floats
    longest: float
    groups: Numbers


class AnchoredGroup(NamedTuple):
    """Worlds that share an anchor, after some iterations."""

    members: Numbers
    mates: int  # world `mates + i` is the complement of world `i`, unless this is 0
    centres: Floats  # (worlds, k, d)
    limits: Floats  # a world stops when its centres move by less (squared)
    factors: Floats  # (worlds, groups): what a row of each group weighs
    state: Numbers
    passed: int


class Rivals(NamedTuple):
    """Rows and rivals, sorted by cluster, rival and margin: `starts` has a place for every bucket of every pair."""

    starts: Numbers
    order: Numbers  # rows
    alone: npt.NDArray[np.bool_]  # whether a row has no other rival
    slacks: Floats  # what rounding may do to a difference of squared distances
    tiles: Floats
    chosen: Numbers  # room for the rows that go to the rival in a world


class Reach(NamedTuple):
    """How far the centres of the running worlds are from the anchor's, and the farthest for each cluster."""

    moves: Floats
    widest: Floats
    sizes: Floats  # lengths that the centres of a cluster do not exceed
    own: Floats  # squared lengths of the centres
