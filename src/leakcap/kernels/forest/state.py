"""What the compiled loops of the forest are given and hand on: read by Python and by compiled loops."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SMOOTHING_PARTS", "FilledCells", "TreeInputs", "WorldGroup"]

SMOOTHING_PARTS = 1024  # smoothing is a multiple of one part in so many


class TreeInputs(NamedTuple):
    """What all nodes of a tree share."""

    codes: Any  # (features, n): cell of every row, which is bin times classes plus class
    nodes: Any  # (inner,): feature of each node
    logs: Any  # (n + 1,): k log k as whole numbers
    bins: int
    classes: int
    depth: int
    scales: Any  # (worlds, classes): what a row of each class counts in each world, as a whole number
    units: Any  # (worlds,): what a row counts on average, at least 1: penalties come in it
    near: int  # weight of the two neighbours of a cut, in multiples of 1 / SMOOTHING_PARTS
    penalties: Any  # (features, bins - 1): what each cut costs by itself; no columns where all are free


class FilledCells(NamedTuple):
    """The cells that hold rows, in their order."""

    bins: Any
    kinds: Any  # the class of each
    ends: Any  # the place behind its last row
    blocks: Any  # the word of its last row
    shifts: Any  # how far up that word must go to lose the rows behind
    before: Any  # the cell of the same class before this one; how many cells there are, if none
    closes: Any  # whether a cut can follow: the last cell of a bin, and not of the last bin


class WorldGroup(NamedTuple):
    """Worlds that go on together, and the rows of the pool among which theirs are."""

    words: Any  # (worlds, blocks): a multiple of eight worlds, the last ones possibly empty
    totals: Any  # (worlds, classes): rows of each class
    who: Any  # the number of each world
    rows: Any  # the pool's row at each place
