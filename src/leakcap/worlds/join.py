"""Several sets of worlds as one: complements stay in the second half."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from leakcap.ground.arrays import Ints
from leakcap.worlds.worldset import Worlds

__all__ = ["joined"]


def joined(blocks: Sequence[Worlds]) -> tuple[Worlds, Ints]:
    """All blocks as one set of worlds, and where each world was among the blocks."""
    if len(blocks) == 1:
        return blocks[0], np.arange(blocks[0].m)
    edges = np.cumsum([0, *(block.m for block in blocks)])
    places: Iterable[Ints] = [np.arange(a, b) for a, b in pairwise(edges)]
    if blocks[0].paired:  # complements go to the second half, in the order of the first
        halves = [np.split(place, 2) for place in places]
        places = [first for first, _ in halves] + [second for _, second in halves]
    order = np.concatenate(list(places))
    packed = np.concatenate([block.packed for block in blocks])[order]
    first_block = blocks[0]
    return replace(first_block, packed=packed), order
