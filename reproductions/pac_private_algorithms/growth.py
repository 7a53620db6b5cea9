"""Trees whose penalty is relative to the rows of a node, as the paper's public code grows them.

A threshold `v` of the ladder costs the node `(1 - w1) H + w1 N + w2 v`, with the mean entropy `H` of a row after the
split and the mean `N` of that at the neighbouring thresholds; the least cost wins, the lower threshold among equals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Penalty", "grown"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Penalty:
    """What a split costs besides its entropy."""

    ladder: Floats  # the thresholds to choose from, the same for every feature
    w1: float
    w2: float


def grown(x: Floats, y: Labels, nodes: Labels, penalty: Penalty, classes: int) -> Floats:
    """Thresholds and leaves of each tree, flat; `nodes` are the features of the inner nodes, tree by tree."""
    steps = np.searchsorted(penalty.ladder, x, side="right")  # a row is below threshold j if its step is at most j
    found = []
    for features in nodes:
        inner = len(features)
        at, thresholds = np.zeros(len(x), dtype=np.intp), np.zeros(inner)
        for node in range(inner):
            here = np.flatnonzero(at == node)
            chosen = _best(steps[here, features[node]], y[here], penalty, classes)
            thresholds[node] = penalty.ladder[chosen]
            at[here] = 2 * node + 1 + (steps[here, features[node]] > chosen)
        leaves = np.zeros((inner + 1, classes))
        np.add.at(leaves, (at - inner, y), 1)
        leaves[leaves.sum(axis=1) == 0, 0] = 1  # a leaf without rows is of the first class
        shares = leaves / leaves.sum(axis=1, keepdims=True)
        found += [thresholds, shares.ravel()]
    return np.concatenate(found)


def _best(steps: Labels, y: Labels, penalty: Penalty, classes: int) -> int:
    """The place on the ladder where a node splits; the first where no row comes."""
    if not len(y):
        return 0
    size = len(penalty.ladder)
    counts = np.bincount(steps * classes + y, minlength=(size + 1) * classes).reshape(size + 1, classes)
    below = np.cumsum(counts[:size], axis=0)
    above = len(y) - below.sum(axis=1)
    right = counts.sum(axis=0) - below
    entropy = (below.sum(axis=1) * _entropy(below) + above * _entropy(right)) / len(y)
    beside = np.convolve(entropy, [1, 0, 1], "same") / np.convolve(np.ones(size), [1, 0, 1], "same")
    cost = (1 - penalty.w1) * entropy + penalty.w1 * beside + penalty.w2 * penalty.ladder
    return int(cost.argmin())


def _entropy(counts: npt.NDArray[np.int64]) -> Floats:
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -np.sum(share * np.log(np.where(share > 0, share, 1.0)), axis=1)
