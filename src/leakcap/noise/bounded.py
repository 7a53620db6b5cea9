"""The least noise for the most that anybody can bring: a function of declared bounds and of nothing else."""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Extent

__all__ = ["blocks_of", "charge", "least_deviations"]

ROUNDING = 1e-12  # relative: what sums of squares lose, with room to spare


@proves("pool")
def charge(extent: Extent, deviations: Floats) -> float:
    """Squared distance, in noise deviations, that one person can move the sums by at most; rounded up."""
    with np.errstate(over="ignore"):  # of next to no noise: no charge is finite, which is refused
        squares = (extent.limits / deviations) ** 2
    blocks, part = blocks_of(extent)
    largest = np.zeros(int(part.max()) + 1)
    np.maximum.at(largest, part, np.bincount(blocks, squares))
    return float(largest.sum()) * (1 + ROUNDING)


def least_deviations(extent: Extent, allowed: float) -> Floats:
    """Least weighted variance in all whose `charge` is at most `allowed`.

    Within a block, deviations squared are as limit over root weight; every block of a part may use what is allowed for
    the part, since only one of them moves; parts share what is allowed as the roots of what they cost.
    """
    root = extent.limits * np.sqrt(extent.weights)
    blocks, part = blocks_of(extent)
    cost = np.bincount(blocks, root)
    of_part = np.sqrt(np.bincount(part, cost**2))
    share = allowed * of_part / of_part.sum()
    variances = extent.limits / np.sqrt(extent.weights) * cost[blocks] / share[extent.part]
    found = np.sqrt(variances)
    return np.asarray(found * np.sqrt(charge(extent, found) / allowed) * (1 + ROUNDING))


def blocks_of(extent: Extent) -> tuple[Ints, Ints]:
    """The block of every number, and the part of every block."""
    _, first, blocks = np.unique(
        extent.part * (int(extent.block.max()) + 1) + extent.block, return_index=True, return_inverse=True
    )
    return blocks, extent.part[first]
